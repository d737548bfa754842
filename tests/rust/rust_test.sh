#!/usr/bin/env bash
# rust_test.sh RUSTC EXAMPLE_DIR LIBRARY_DIR: the Rust example compiles without a warning, and adds on the CPU engine.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" --edition 2021 -D warnings "$2/main.rs" -o "$dir/example" -L "$3"
LD_LIBRARY_PATH=$3 timeout 60 "$dir/example" cpu | tee "$dir/out"
failures=0
expect() {
  grep -qE -- "$1" "$dir/out" || { echo "FAILED: no line is like «$1»"; failures=1; }
}
expect '^gyre [0-9]+\.[0-9]+\.[0-9]+ on .'
for n in 0 1 2 3; do expect "^$n: .*\"result\" ?: ?\\[ ?$((10 + n)), ?$((20 + n)), ?$((30 + n)) ?\\]"; done
expect '^status 4: unknown_actor: .*'
expect '^the books balance$'
exit $failures
