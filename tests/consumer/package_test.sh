#!/usr/bin/env bash
# package_test.sh BUILD_DIR SOURCE_DIR COMPILER...: Gyre is installed from BUILD_DIR, moved elsewhere, and a project that
# knows nothing else is built with each compiler and run. The first compiler must be installed: what it built, programs in
# C and in Python with NumPy ask as well. Another compiler that is not installed is named and left out.
set -euo pipefail
build="$(realpath "$1")" source="$(realpath "$2")"
shift 2
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
  echo "FAILED: $1"
  [[ ! -f log ]] || tail -n 60 log
  exit 1
}

cmake --install "$build" --prefix "$dir/installed" >log 2>&1 || fail "installing"
mv installed gyre
if grep -rlIF -e "$source" -e "$build" -e "$dir/installed" gyre; then
  fail "the installed files above name the folder they were made in"
fi
for file in include/gyre/gyre.hpp include/gyre/testing.hpp include/gyre/messages/vector_add.official.hpp include/gyre/messages/buffer.capnp; do
  [[ -f gyre/$file && ! -L gyre/$file ]] || fail "$file is not installed as a file"
done
if grep -rlE '#include <(cuda|nvrtc|vulkan|fmt|spdlog|CLI|nlohmann|prometheus|nats/)' gyre/include; then
  fail "the headers above include what users need not have"
fi
timeout 120 gyre/bin/gyre validate --engine cpu --messages 1000 >log 2>&1 || fail "running the installed gyre"

# The project, without the tests beside it.
mkdir project
cp -R "$source"/tests/consumer/{CMakeLists.txt,main.c,main.cpp,node.cpp,plugin.cpp,steps.cpp,main.py,actors,schemas,imports} project/

# configure BINARY_DIR COMPILER OPTION...: of the project.
configure() {
  cmake -G Ninja -S project -B "$1" "-DCMAKE_PREFIX_PATH=$dir/gyre" "-DCMAKE_CXX_COMPILER=$2" "${@:3}" >log 2>&1
}

# Without a build type whatever links Gyre is optimised, and configuring warns; a build type decides for itself.
optimises() { grep -q '"command": ".* -O2 .*/main\.cpp' build-type/compile_commands.json; }
configure build-type "$1" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON || fail "configuring without a build type"
grep -q 'CMAKE_BUILD_TYPE is empty' log || fail "no warning of a missing build type"
optimises || fail "without a build type the actors' program is not optimised"
configure build-type "$1" -DCMAKE_BUILD_TYPE=Debug || fail "configuring with build type Debug"
! grep -q 'CMAKE_BUILD_TYPE is empty' log || fail "build type Debug is warned of"
! optimises || fail "build type Debug is optimised"

# A program that travels: of a static Gyre; another one says that it cannot.
build_type=(-DCMAKE_BUILD_TYPE=Debug)
if grep -q '^set(GYRE_STATIC ON)' gyre/lib*/cmake/gyre/gyre-config.cmake; then
  build_type+=(-DTILL_STATIC=ON)
else
  ! configure build-static "$1" -DTILL_STATIC=ON || fail "gyre_static_program is accepted, and Gyre is not static"
  grep -q 'gyre_static_program(consumer): this Gyre was built with GYRE_STATIC=OFF' log ||
    fail "gyre_static_program does not say why it refuses"
fi

tested=0
for compiler; do
  if ! command -v "$compiler" >/dev/null; then
    ((tested > 0)) || fail "$compiler is not installed"
    echo "$compiler is not installed: left out"
    continue
  fi
  binary="build-$(basename "$compiler")"
  configure "$binary" "$compiler" "${build_type[@]}" || fail "configuring with $compiler"
  targets=(consumer)
  if ((tested == 0)); then targets+=(consumer_c consumer_steps till_plugin); fi
  if [[ $(find gyre -name gyre-nats-targets.cmake) ]]; then
    targets+=(consumer_nats)  # built with GYRE_NATS
  fi
  cmake --build "$binary" --parallel 2 --target "${targets[@]}" >log 2>&1 || fail "building with $compiler"
  timeout 120 "$binary/consumer" >out 2>&1 || fail "running what $compiler built: $(cat out)"
  for line in 'sold: 24' 'sold, in tens: 30' 'rounded: to tens' 'prices: 3 60 -900 '; do
    grep -qxF -- "$line" out || fail "the line «$line» is missing from what $compiler built: $(cat out)"
  done
  if ((tested == 0)); then
    timeout 120 "$binary/consumer_steps" >steps_out 2>&1 || fail "stepping what $compiler built: $(cat steps_out)"
    diff steps_out <(printf 'worker 1: till::Till 1, OrderRequest\nsold: 24\n') || fail "the steps are the above"
  fi
  if [[ " ${targets[*]} " == *" consumer_nats"* ]]; then
    timeout 120 "$binary/consumer_nats" >nats_out 2>&1 || fail "running the node that $compiler built: $(cat nats_out)"
    for line in 'till_Till with key 1000003 is in shard 49' 'connecting to NATS (nats://127.0.0.1:1)'; do
      grep -qF -- "$line" nats_out || fail "the line «$line» is missing from the node that $compiler built: $(cat nats_out)"
    done
  fi
  grep -qE 'compiled for (sm_90$|a GPU:)' out || fail "nothing said of NVRTC: $(cat out)"
  ! grep -qx 'compiled for sm_90' out || grep -qx 'compiled ahead for sm_90' out ||
    fail "NVRTC is here, and $compiler's build compiled nothing ahead: $(cat out)"
  if [[ " ${build_type[*]} " == *" -DTILL_STATIC=ON "* ]]; then
    needed=$(readelf -d "$binary/consumer" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|ld-linux-x86-64)\.so' || true)
    [[ -z $needed ]] || fail "a program that is to travel needs $needed"
  fi
  tested=$((tested + 1))
  echo "$compiler: ok"
done

# The first tutorial's folder, copied as it says.
cp -R "$source/examples/first_actor" first_actor
cmake -G Ninja -S first_actor -B build-first "-DCMAKE_PREFIX_PATH=$dir/gyre" "-DCMAKE_CXX_COMPILER=$1" \
  -DCMAKE_BUILD_TYPE=Debug >log 2>&1 ||
  fail "configuring examples/first_actor on its own"
cmake --build build-first --parallel 2 >log 2>&1 || fail "building examples/first_actor on its own"
timeout 120 build-first/example_first_actor cpu >out 2>&1 || fail "running examples/first_actor: $(cat out)"
diff first_actor/expected.txt out || fail "examples/first_actor on its own prints the above"

# Without CMake, by pkg-config: the C++ runtime with the built-in actors, and the C interface.
by_pkg_config() {
  command -v pkg-config >/dev/null || fail "pkg-config is not installed (Debian: pkg-config)"
  PKG_CONFIG_PATH="$(dirname "$(find "$dir/gyre" -name gyre.pc)")"
  export PKG_CONFIG_PATH
  [[ $(pkg-config --modversion gyre gyre-c | sort -u) == $(gyre/bin/gyre --version | sed -n '1 s/^gyre //p') ]] ||
    fail "pkg-config says another version than gyre --version"
  c_compiler="${1/clang++/clang}"
  read -ra flags <<<"$(pkg-config --cflags --libs gyre)"
  "$1" "$source/examples/embed.cpp" -o embed "${flags[@]}" >log 2>&1 || fail "building examples/embed.cpp by pkg-config"
  timeout 120 ./embed >out 2>&1 || fail "running examples/embed.cpp: $(cat out)"
  grep -q '^10 40 90 from ' out || fail "examples/embed.cpp printed: $(cat out)"
  read -ra flags <<<"$(pkg-config --cflags --libs gyre-c)"
  "${c_compiler/g++/gcc}" "$source/examples/c/main.c" -o c_main "${flags[@]}" >log 2>&1 ||
    fail "building examples/c/main.c by pkg-config"
  LD_LIBRARY_PATH="$(pkg-config --variable=libdir gyre-c)" timeout 120 ./c_main cpu >out 2>&1 ||
    fail "running examples/c/main.c: $(cat out)"
  grep -q '10, \?40, \?90' out || fail "examples/c/main.c printed: $(cat out)"
  echo "pkg-config: ok"
}
if (($# > 1)); then by_pkg_config "$1"; fi  # in the slow tier, where there are two compilers

plugin="build-$(basename "$1")/libtill_plugin.so"
timeout 120 "build-$(basename "$1")/consumer_c" "$plugin" project >out 2>&1 || fail "running the program in C: $(cat out)"
grep -qxF '{"pieces":24,"rounding":"none"}' out || fail "the program in C printed: $(cat out)"
echo "C: ok"

for python in /usr/bin/python3 python3; do
  if "$python" -c 'import setuptools, wheel, pip, numpy' 2>/dev/null; then break; fi
  python=""
done
[[ $python ]] || fail "no python3 has numpy, pip, setuptools and wheel (Debian: python3-numpy, python3-pip)"
# asks_in_python PYTHONPATH: the program in Python asks the same actors.
asks_in_python() {
  env -u GYRE_LIBRARY PYTHONPATH="$1" timeout 120 "$python" project/main.py "$plugin" project >out 2>&1 ||
    fail "running the program in Python: $(cat out)"
  for line in 'sold: 24' 'prices: 3 60 -900' 'sums: 100000'; do
    grep -qxF -- "$line" out || fail "the line «$line» is missing from the program in Python: $(cat out)"
  done
}
asks_in_python "$dir/gyre/lib/python3/dist-packages"
mkdir -p tree/runtime
cp "$source/pyproject.toml" "$source/README.md" tree
cp -R "$source/runtime/python" tree/runtime/python
library=$(echo gyre/lib*/libgyre.so gyre/lib/*/libgyre.so)
GYRE_LIBRARY="$(realpath ${library%% *})" PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip install --no-index --quiet \
  --no-build-isolation --no-deps --target site ./tree >log 2>&1 || fail "pip install"
asks_in_python "$dir/site"
echo "Python: ok"
echo ok
