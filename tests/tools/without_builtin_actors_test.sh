#!/usr/bin/env bash
# without_builtin_actors_test.sh PROGRAM OTHER: a program that links gyre::runtime and actors of its own has nothing of
# the built-in actors in it. OTHER uses them, which shows that this test would find them.
set -euo pipefail
builtin='gyre_builtin_actors::|gyre::actors::(Echo|VectorAdd)|gyre::builtin_actors'
found() { nm -C "$1" | grep -E "$builtin" || true; }
[[ -n $(found "$2") ]] || { echo "FAILED: $2 uses the built-in actors, and no symbol of it says so"; exit 1; }
if [[ -n $(found "$1") ]]; then
  echo "FAILED: gyre::runtime brought the built-in actors into $1; let it use gyre_device_headers::sources:"
  found "$1" | head -n 5
  exit 1
fi
echo "no symbol of the built-in actors"
