#!/usr/bin/env bash
# pip_test.sh PYTHON GYRE_SOURCE_DIR LIBRARY [ENGINE]: the package installs by pip, without a network, into a folder of its
# own, with the library and gyre-engine in it, and works from there. They are not built anew.
set -euo pipefail
python=$1 gyre=$2 library=$3 engine=${4-}
if ! "$python" -c 'import setuptools, wheel, pip' 2>/dev/null; then
  echo "skipped: $python has no pip, setuptools or wheel (Debian: python3-pip)"
  exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/tree/runtime" "$dir/site"
cp "$gyre/pyproject.toml" "$gyre/README.md" "$dir/tree"
cp -R "$gyre/runtime/python" "$dir/tree/runtime/python"
cd "$dir"
GYRE_LIBRARY=$library GYRE_ENGINE=$engine PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip install --no-index --no-build-isolation --no-deps \
  --quiet --target "$dir/site" "$dir/tree"
[[ -f $dir/site/gyre/libgyre.so ]] || { echo "FAILED: the library was not installed"; exit 1; }
[[ ! $engine || -x $dir/site/gyre/gyre-engine ]] || { echo "FAILED: gyre-engine was not installed"; exit 1; }
[[ -f $dir/site/gyre/py.typed ]] || { echo "FAILED: py.typed, by which type checkers find the hints, was not installed"; exit 1; }
ls "$dir/site"
out=$(env -u GYRE_LIBRARY PYTHONPATH="$dir/site" "$python" -c '
import gyre
with gyre.launch(engine="cpu") as runtime:
    print(gyre.__file__, gyre.__version__,
          runtime.client().ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", {"a": [1, 2], "b": [3, 4]})["result"])
')
echo "$out"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$gyre/pyproject.toml")
[[ $out == "$dir/site/gyre/__init__.py $version [4.0, 6.0]" ]] || { echo "FAILED: it should be $version, from $dir"; exit 1; }
