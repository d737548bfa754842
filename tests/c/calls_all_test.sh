#!/usr/bin/env bash
# calls_all_test.sh LIBRARY SOURCE HEADER: SOURCE calls every function that the library exports, the library exports
# every function of HEADER, and nothing else.
set -euo pipefail
exported=$(nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sed 's/@.*//' | sort -u)
others=$(nm -D --defined-only "$1" | awk '$2 != "T" && $2 != "A" { print $3 }')
declared=$(grep -oE '^GYRE_API [^(]*\bgyre_[a-z_0-9]+\(' "$3" | grep -oE 'gyre_[a-z_0-9]+\($' | tr -d '(' | sort -u)
failures=0
fail() {
  echo "FAILED: $1"
  failures=$((failures + 1))
}
[[ $(wc -l <<<"$exported") -ge 30 ]] || fail "the library exports fewer functions than it has: $exported"
[[ -z $others ]] || fail "the library exports what is no function: $others"
diff <(echo "$exported") <(echo "$declared") || fail "the library exports what the header does not declare (<), or not all of it (>)"
for function in $exported; do
  grep -qE "\b$function\b" "$2" || fail "$2 does not call $function"
done
[[ $failures -eq 0 ]] && echo "$(wc -l <<<"$exported") functions, all called"
exit $((failures != 0))
