#!/usr/bin/env bash
# tools/wheel.sh: makes a wheel of the Python package with the library, gyre-engine, the extension and the libraries that these
# need, and prints its file. Install it by `pip install FILE`, on Linux with this machine's C library or a later one; that
# builds nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "wheel: $*" >&2; }

tools/setup.sh
build=build/wheel
say "building (preset release, in $build)"
log="$(cmake --preset release -B $build -DGYRE_TOOLS=OFF -DGYRE_BENCH=OFF -DGYRE_EXAMPLES=OFF 2>&1)" ||
  { echo "$log" >&2; say "configuring failed"; exit 1; }
cmake --build $build -- --quiet >&2 || { say "building failed"; exit 1; }
rm -rf $build/installed $build/tree $build/*.whl
cmake --install $build --component runtime --prefix $build/installed >/dev/null
# From a copy of its own: what pip writes beside the sources stays out of the tree.
mkdir -p $build/tree/runtime
cp pyproject.toml README.md $build/tree
cp -R runtime/python $build/tree/runtime/python
library=$(readlink -f "$(find "$PWD/$build/installed" -name 'libgyre.so.*' | head -n 1)")
log="$(GYRE_LIBRARY=$library /usr/bin/python3 -m pip wheel --no-index --no-build-isolation --no-deps --wheel-dir $build \
  $build/tree 2>&1)" || { echo "$log" >&2; say "packing failed"; exit 1; }
ls $build/*.whl
