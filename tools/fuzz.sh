#!/usr/bin/env bash
# tools/fuzz.sh FUZZER [SEEDS …]: runs a fuzzer of the preset fuzz for GYRE_FUZZ_SECONDS (60), from the seeds.
#   cmake --preset fuzz && cmake --build --preset fuzz
#   GYRE_FUZZ_SECONDS=1800 tools/fuzz.sh build/fuzz/bin/reader_fuzz build/fuzz/tests/fuzz/seeds/reader_fuzz
# What it learns stays in build/fuzz/corpus/, and is where the next run goes on from. Exit 0: nothing was found;
# otherwise the input is in build/fuzz/found/, and `FUZZER input` runs it again.
set -euo pipefail
(($#)) || { echo "usage: tools/fuzz.sh FUZZER [SEEDS …]" >&2; exit 2; }
fuzzer="$(realpath "$1")"
shift
tree="$(dirname "$(dirname "$fuzzer")")"
name="$(basename "$fuzzer")"
corpus="$tree/corpus/$name"
found="$tree/found"
mkdir -p "$corpus" "$found"
exec "$fuzzer" -max_total_time="${GYRE_FUZZ_SECONDS:-60}" -timeout=10 -max_len=4096 -rss_limit_mb=2048 \
  -malloc_limit_mb=256 -print_final_stats=1 -artifact_prefix="$found/$name-" "$corpus" "$@"
