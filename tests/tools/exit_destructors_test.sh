#!/usr/bin/env bash
# exit_destructors_test.sh FILE...: no object of these libraries is destroyed when the program exits. A global Runtime
# ends after the static objects of functions that its launch called, so its end must find none of them destroyed.
set -euo pipefail
checked=0
failures=0
for file; do
  checked=$((checked + 1))
  if found=$(nm -A "$file" 2>/dev/null | grep -E ' U (__cxa_atexit|atexit)$'); then
    failures=$((failures + 1))
    echo "FAILED: these register a destructor or a function for the exit; write «static T& object = *new T;»:"
    echo "$found"
  fi
done
((checked > 0)) || { echo "FAILED: no library was given"; exit 1; }
((failures == 0)) && echo "$checked files, none registers anything"
exit $((failures != 0))
