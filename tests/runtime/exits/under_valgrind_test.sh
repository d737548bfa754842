#!/usr/bin/env bash
# under_valgrind_test.sh PROGRAM CASE...: no case of the program reads, writes or frees memory that is not its own.
set -euo pipefail
command -v valgrind >/dev/null || { echo "valgrind is not installed: skipped"; exit 77; }
program=$1
shift
failures=0
for name; do
  status=0
  report=$(timeout --kill-after=5 280 valgrind --quiet --error-exitcode=99 "$program" "$name" 2>&1 >/dev/null) || status=$?
  [[ $status -ne 77 ]] || exit 77
  if [[ $status -ne 0 ]]; then
    failures=$((failures + 1))
    echo "FAILED: $name: status $status"
    echo "$report"
  fi
done
((failures == 0)) && echo "$# cases, no error"
exit $((failures != 0))
