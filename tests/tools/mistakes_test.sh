#!/usr/bin/env bash
# mistakes_test.sh SOURCE_DIR CAPNP CAPNPC_GYRE FIRST_ACTOR: what the tutorials say that you see of a mistake is seen
# where the mistake is made.
set -euo pipefail
source=$1 capnp=$2 plugin=$3 program=$4
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0

# seen PAGE TEXT: the page has the text, and so has what was printed.
seen() {
  if ! grep -qF -- "$2" "$source/docs/tutorials/$1"; then
    echo "FAILED: $1 does not say: $2"
  elif ! tr -s ' \n' '  ' <out | grep -qF -- "$2"; then
    echo "FAILED: $1 says: $2"
    echo "  and this was printed:"
    sed 's/^/  | /' out
  else
    return 0
  fi
  failures=$((failures + 1))
}

schema=$source/examples/first_actor/average.capnp
grep -v 'Cxx' "$schema" >average.capnp
if "$capnp" compile "-o$plugin:$dir" average.capnp >out 2>&1; then echo "it compiles" >out; fi
seen 01-first-actor.md 'capnpc-gyre: average.capnp: no C++ namespace; add: using Cxx = import "/capnp/c++.capnp"; $Cxx.namespace("your::name");'

sed 's/:List(Float64)/:AnyPointer/' "$schema" >average.capnp
if "$capnp" compile "-o$plugin:$dir" average.capnp >out 2>&1; then echo "it compiles" >out; fi
seen 02-messages.md 'struct Add: field numbers is :AnyPointer, which is not supported; give it a type, or send it as Data'

if cmake -G Ninja -S "$source/examples/first_actor" -B build -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >out 2>&1; then
  echo "Gyre is installed on this system: skipping the mistake of one where it is not"
else
  seen 01-first-actor.md 'Could not find a package configuration file provided by "gyre"'
fi

if nvidia-smi >/dev/null 2>&1; then
  echo "there is a GPU: skipping the mistake of a machine that has none"
elif "$program" cuda >out 2>&1; then
  echo "FAILED: $program cuda succeeds on a machine without a GPU"
  failures=$((failures + 1))
elif grep -qF 'built without the CUDA toolkit' out; then
  echo "built without CUDA: skipping the mistake of a machine without a driver"
else
  seen 01-first-actor.md 'loading the CUDA driver: libcuda.so.1 was not found'
fi

((failures == 0)) && echo ok
exit $((failures != 0))
