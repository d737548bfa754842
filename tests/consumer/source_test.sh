#!/usr/bin/env bash
# source_test.sh GYRE_SOURCE_DIR [CMAKE_OPTION...]: another project adds a source tree of Gyre, builds, runs, and builds
# anew what a changed schema is imported by.
set -euo pipefail
gyre="$(realpath "$1")"
shift
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cp -R "$gyre/tests/consumer" "$dir/project"
cd "$dir"
generated=build/generated/till/schemas

fail() {
  echo "FAILED: $1"
  [[ ! -f log ]] || tail -n 60 log
  exit 1
}

build() {
  cmake --build build --parallel 2 --target consumer >log 2>&1 || fail "building $1"
}

# Sleeps past the resolution of the file system's times, and notes the time.
mark() {
  sleep 0.05
  touch mark
  sleep 0.05
}
expect_new() {
  [[ $1 -nt mark ]] || fail "$1 was not made anew when $2 changed"
}

# Of Gyre's own actors one architecture: it compiles for half a minute as it is.
cmake -S project -B build -DGYRE_SOURCE_DIR="$gyre" -DGYRE_ARCHITECTURES=90 "$@" >log 2>&1 || fail "configuring"
[[ ! -e build/bin && ! -e build/compile_commands.json ]] || fail "Gyre's settings reach the other project"
build "the project"

timeout 120 build/consumer >out 2>&1 || fail "running: $(cat out)"
cat out
for line in 'sold: 24' 'sold, in tens: 30' 'rounded: to tens' 'prices: 3 60 -900 '; do
  grep -qxF -- "$line" out || fail "the line «$line» is missing"
done
grep -qE 'compiled for (sm_90$|a GPU:)' out || fail "nothing said of NVRTC"
ahead=''
if grep -qx 'compiled for sm_90' out; then
  ahead=build/generated/till_ahead_90.inc
  grep -qx 'compiled ahead for sm_90' out || fail "NVRTC is here, and nothing was compiled ahead"
fi

mark
build "again"
[[ -z $(find build/generated build/consumer -newer mark) ]] || fail "with nothing changed something was made anew"

touch project/schemas/rounding.capnp
build "after a sibling changed"
for header in rounding order old/order adjust-v1.0,draft; do
  expect_new "$generated/$header.view.hpp" rounding.capnp
done
expect_new build/generated/till_sources.cpp rounding.capnp

mark
sed -i 's/dozen @1;/dozen @1; gross @2;/' project/imports/shop/units.capnp
build "after a schema of another target changed"
expect_new build/generated/shop/units.view.hpp units.capnp
expect_new "$generated/order.view.hpp" units.capnp
[[ ! "$generated/rounding.view.hpp" -nt mark ]] || fail "rounding.capnp was compiled anew, and does not import units"
grep -q GROSS build/generated/till_sources.cpp || fail "the embedded text is the old one"

mark
echo '// changed' >>project/actors/pieces.hpp
build "after a helper header changed"
expect_new build/generated/till_sources.cpp pieces.hpp
expect_new build/consumer pieces.hpp
[[ ! $ahead ]] || expect_new $ahead pieces.hpp
timeout 120 build/consumer >out 2>&1 || fail "running again: $(cat out)"
echo ok
