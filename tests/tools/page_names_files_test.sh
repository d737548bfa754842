#!/usr/bin/env bash
# page_names_files_test.sh SOURCE_DIR PAGE...: the files that pages name are there: `tests/…`, `runtime/…` and the like,
# and what their links lead to. A * stands for any extension.
set -euo pipefail
shopt -s nullglob
cd "$1"
shift
failures=0
named=0
for page; do
  while IFS= read -r name; do
    named=$((named + 1))
    found=($name)
    if ((${#found[@]} == 0)) || [[ ! -e ${found[0]} ]]; then
      echo "FAILED: $page names $name, and there is none"
      failures=$((failures + 1))
    fi
  done < <(
    grep -oE '`(tests|runtime|device|bridge|messages|tools|bench|examples|docs|cmake)/[A-Za-z0-9_./*-]+' "$page" | tr -d '`' || true
    sed '/^```/,/^```/d' "$page" | grep -oE '[^`]\]\([A-Za-z0-9_./-]+[)#]' |
      sed "s|.*](\(.*\).|$(dirname "$page")/\1|" || true
  )
done
[[ $named -gt 0 ]] || { echo "FAILED: no page names a file"; failures=1; }
((failures == 0)) && echo "$named files named, all there"
exit $((failures != 0))
