#!/usr/bin/env bash
# readme_example_test.sh README EXAMPLE: the README's first C++ block is the example, to the letter.
set -euo pipefail
shown=$(awk '/^```cpp$/ {inside = 1; next} /^```$/ {if (inside) exit} inside' "$1")
if [[ $shown != "$(cat "$2")" ]]; then
  echo "the C++ block of $1 is not $2:"
  diff <(echo "$shown") "$2" || true
  exit 1
fi
