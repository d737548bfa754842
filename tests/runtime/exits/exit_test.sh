#!/usr/bin/env bash
# exit_test.sh EXPECTED PROGRAM ARGUMENT...: the program, a process of its own, ends by itself with status 0 within two
# minutes, prints EXPECTED and nothing else, and writes nothing to standard error. Nor does a process that it started stay:
# such a process holds standard error open. Exit 77: the program says so.
# With $GYRE_TEST_UNDER the program runs under that command.
set -euo pipefail
expected=$1
shift
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
status=0
exec 3> >(exec timeout 180 cat >"$errors")
reader=$!
printed=$(timeout --kill-after=5 120 ${GYRE_TEST_UNDER-} "$@" 2>&3 3>&-) || status=$?
exec 3>&-
wait "$reader" || status=124
[[ $status -ne 77 ]] || exit 77
failed=
[[ $status -eq 0 ]] || failed="it ended with status $status (124: it, or what it started, did not end)"
[[ $printed == "$expected" ]] || failed+="; it printed «$printed», not «$expected»"
[[ ! -s $errors ]] || failed+="; its errors are below"
if [[ -n $failed ]]; then
  echo "FAILED: $*: $failed" >&2
  cat "$errors" >&2
  exit 1
fi
