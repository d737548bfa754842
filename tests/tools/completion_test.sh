#!/usr/bin/env bash
# completion_test.sh COMPLETION_FILE GYRE GYRE_BENCH [GYRE_NATS GYRE_ASK]: bash completes subcommands, options and values from the programs' help.
set -euo pipefail
# shellcheck disable=SC1090
source "$1"
gyre=$2 bench=$3
failures=0

# check EXPECTED PROGRAM WORD...: completing the last WORD offers each word of EXPECTED, in any order among others; nothing
# where EXPECTED is empty.
check() {
  local expected=$1 found
  shift
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _gyre "$1"
  found=" ${COMPREPLY[*]} "
  for word in $expected; do
    if [[ $found != *" $word "* ]]; then
      echo "FAILED: completing «${*:2}» does not offer $word; it offers:$found"
      failures=$((failures + 1))
    fi
  done
  if [[ ! $expected && ${#COMPREPLY[@]} -gt 0 ]]; then
    echo "FAILED: completing «${*:2}» offers$found, not nothing"
    failures=$((failures + 1))
  fi
}

check 'validate doctor inspect errors stat' "$gyre" ''
check 'validate' "$gyre" va
check '--engine --transport --messages --json' "$gyre" validate --
check '--transport' "$gyre" validate --tr
check 'auto cuda cpu' "$gyre" validate --engine ''
check 'bar' "$gyre" validate --transport b
check '' "$gyre" validate --engine x
check 'rtt throughput launch' "$bench" ''
check '--interleave' "$bench" rtt --inter
if (($# > 3)); then
  check '--namespace --durable-in-flight' "$4" --
  check 'auto cuda cpu' "$4" --engine ''
  check '--engine' "$4" --namespace test --en
  check '--durable' "$5" my::Counter --dur
fi
((failures == 0)) && echo ok
exit $((failures != 0))
