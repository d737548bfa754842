#!/usr/bin/env bash
# revisions_test.sh REVISION_1 REVISION_2 ENGINE: programs of two revisions of one schema ask each other, and each
# itself; see program.hpp.
set -euo pipefail
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
programs=("" "$1" "$2")
failures=0
for asking in 1 2; do
  for serving in 1 2; do
    if "${programs[asking]}" request >"$dir/orders" &&
      "${programs[serving]}" serve --engine "$3" <"$dir/orders" >"$dir/receipts" &&
      "${programs[asking]}" check "$serving" <"$dir/receipts"; then
      echo "revision $asking asks revision $serving: right"
    else
      echo "FAILED: revision $asking asks revision $serving"
      failures=$((failures + 1))
    fi
  done
done
exit $((failures != 0))
