#!/usr/bin/env bash
# dotnet_test.sh MCS MONO SAMPLE_DIR LIBRARY_DIR: the .NET sample compiles, and adds on the CPU engine.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
"$1" -out:"$dir/sample.exe" "$3"/*.cs
out=$(LD_LIBRARY_PATH=$4 "$2" "$dir/sample.exe" cpu)
echo "$out"
[[ $out == *"36000 sums, all right; the books balance" ]]
