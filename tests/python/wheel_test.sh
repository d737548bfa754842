#!/usr/bin/env bash
# wheel_test.sh PYTHON GYRE_SOURCE_DIR WHAT: a wheel installs in a fresh virtual environment without a compiler and without a
# network, and asks actors there by what lies in it. WHAT is one of
#   WHEEL.whl                      a wheel
#   LIBRARY ENGINE EXTENSION       files to pack. Of libgyre_fake_cuda.so, actors are asked on the fake driver too
#   BUILD_DIR                      a build, which is installed first: the library finds what it needs in the wheel
set -euo pipefail
python=$1 gyre=$2 library=$3 engine=${4-} extension=${5-}
fail() { echo "FAILED: $*"; exit 1; }
if ! "$python" -c 'import setuptools, wheel, pip, venv, numpy' 2>/dev/null; then
  echo "skipped: $python has no pip, setuptools, wheel, venv or NumPy (Debian: python3-pip, python3-venv, python3-numpy)"
  exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
if [[ -d $library ]]; then
  cmake --install "$library" --component runtime --prefix "$dir/installed" >/dev/null
  library=$(readlink -f "$(find "$dir/installed" -name 'libgyre.so.*' | head -n 1)")
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1
if [[ $library == *.whl ]]; then  # as tools/wheel.sh makes them
  made=$library
else
  mkdir -p "$dir/tree/runtime"
  cp "$gyre/pyproject.toml" "$gyre/README.md" "$dir/tree"
  cp -R "$gyre/runtime/python" "$dir/tree/runtime/python"
  GYRE_LIBRARY=$library GYRE_ENGINE=$engine GYRE_PYTHON_EXTENSION=$extension "$python" -m pip wheel --no-index --quiet \
    --no-build-isolation --no-deps --wheel-dir "$dir" "$dir/tree"
  made=$(echo "$dir"/*.whl)
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$gyre/pyproject.toml")
[[ $(basename "$made") == gyre-$version-py3-none-manylinux_*_x86_64.whl ]] || fail "the wheel is named $(basename "$made")"

"$python" -m venv --without-pip "$dir/venv"
cd "$dir"
# No compiler, no CMake: nothing is on the path. No network: --no-index.
clean=(env -i HOME="$dir" PATH="$dir/venv/bin" TMPDIR="$dir" PIP_DISABLE_PIP_VERSION_CHECK=1)
"${clean[@]}" "$python" -m pip --python "$dir/venv/bin/python" install --no-index --quiet "$made"
site=$(echo "$dir"/venv/lib/python3*/site-packages/gyre)
[[ ! $engine || -x $site/gyre-engine ]] || fail "there is no gyre-engine that can be started in $site"
cat >program.py <<'EOF'
import os
import sys

import gyre

place = os.path.dirname(gyre.__file__)
for engine in sys.argv[2:]:
    with gyre.launch(engine=engine, workers=1) as runtime:
        client = runtime.client()
        reply = client.ask("gyre::actors::VectorAdd", 1, "VectorAddRequest", {"a": [1, 2], "b": [3, 4]})
        print(engine, runtime.info()["engine"], reply["result"])
        if sys.argv[1] == "prepared":  # needs NumPy
            ask = client.prepare("gyre::actors::VectorAdd", 1, "VectorAddRequest", a=2, b=2)
            ask.request.a[:], ask.request.b[:] = [1, 2], [3, 4]
            print(ask().result.tolist(), type(ask).__bases__[0].__module__)
        if engine == "cuda":  # in a process of its own, whose program is the wheel's
            children = open(f"/proc/self/task/{os.getpid()}/children").read().split()
            print(any(os.path.realpath(f"/proc/{child}/exe").startswith(place) for child in children))
loaded = {line.split()[-1] for line in open("/proc/self/maps") if "/" in line}
print(sorted(os.path.basename(path) for path in loaded if path.startswith(place)))
print("elsewhere:", sorted(path for path in loaded if "capnp" in path and not path.startswith(place)))
EOF
engines=(cpu)
[[ $library != *fake_cuda* ]] || engines+=(cuda)
"${clean[@]}" "$dir/venv/bin/python" program.py plain "${engines[@]}" >out || { cat out; fail "the program failed"; }
cat out
grep -qF "cpu cpu [4.0, 6.0]" out || fail "no reply of the CPU engine"
grep -qF "'libgyre.so'" out || fail "it loaded another library"
if [[ $library == *fake_cuda* ]]; then
  grep -qF "cuda cuda [4.0, 6.0]" out || fail "no reply on the fake driver"
  grep -qx True out || fail "the engine's program is not the wheel's"
else  # an installed library finds what it needs beside itself
  grep -qx 'elsewhere: \[\]' out || fail "libraries of the system were loaded"
  grep -q "'libcapnp-.*.so'" out || fail "the wheel's Cap'n Proto was not loaded"
fi
numpy=$("$python" -c 'import numpy, os; print(os.path.dirname(os.path.dirname(numpy.__file__)))')
"${clean[@]}" PYTHONPATH="$numpy" "$dir/venv/bin/python" program.py prepared "${engines[@]}" >out || { cat out; fail "the program failed"; }
cat out
grep -qF "[4.0, 6.0] gyre._ask" out || fail "a prepared ask does not go by the extension"
