#!/usr/bin/env bash
# notebook_test.sh PYTHON GYRE NOTEBOOK: the notebook's actor, as its text has it, compiles for the GPU where NVRTC is, and for
# CPU threads, where the notebook runs to its end. PYTHONPATH and GYRE_LIBRARY name the package.
set -euo pipefail
python=$1 gyre=$2 notebook=$3
fail() { echo "FAILED: $*"; exit 1; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir notebook
"$python" - "$notebook" <<'EOF'
import ast
import sys

texts = {}
for part in ast.parse(open(sys.argv[1]).read()).body:
    if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant):
        texts[part.targets[0].id] = part.value.value
open("notebook/scorer.capnp", "w").write(texts["SCHEMA"])
open("scorer.hpp", "w").write(texts["SOURCE"])
EOF
actor=(--actors scorer.hpp --types notebook::Scorer --schema notebook/scorer.capnp)
"$gyre" inspect "${actor[@]}" >out 2>&1 || { code=$?; [[ $code == 3 ]] || { cat out; fail "gyre inspect: exit code $code"; }; }
"$gyre" validate --build-library scorer.so "${actor[@]}"
"$python" "$notebook" "$dir/scorer.so" >out || { cat out; fail "the notebook failed"; }
cat out
grep -qF "{'outputs': 4}" out || fail "no reply to Learn"
grep -qF "as NumPy computes them: True" out || fail "the scores are wrong"
grep -qF "it is float32 of shape (16,), and float64 of shape (8,) is given" out || fail "a wrong shape is not named"
grep -qF "check_failed: " out || fail "a check that fails is not named"
grep -qF "every message accounted for: True" out || fail "the books do not balance"
