#!/usr/bin/env bash
# without_nats_test.sh SOURCE_DIR BUILD_DIR COMPILER FILE...: the gateway to NATS is outside the core. No symbol of it or of
# the NATS library is in the FILEs, libraries and programs of BUILD_DIR; <gyre/gyre.hpp> includes none of its headers; a
# build without GYRE_NATS does not look for libnats, compiles nothing of the gateway and installs no file of it.
set -euo pipefail
source=$1 build=$2 compiler=$3
shift 3
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }

# Symbols: the library's begin so, and the gateway's namespace is gyre::nats.
for file; do
  [[ $file ]] || continue
  nm "$file" >"$dir/symbols" 2>/dev/null || true
  nm -D "$file" >>"$dir/symbols" 2>/dev/null || true
  [[ $(wc -l <"$dir/symbols") -gt 10 ]] || fail "nm lists no symbols of $file"
  if grep -E ' (nats[A-Z_]|kvStore|jsCtx|js_)|4gyre4nats' "$dir/symbols" | head -3 | grep .; then
    fail "$file has the symbols above"
  fi
  if readelf -d "$file" 2>/dev/null | grep -q 'NEEDED.*nats'; then fail "$file needs libnats"; fi
done

# Headers.
includes=(-I "$build/include" -I "$build/generated" -I "$build/actor_headers")
printf '#include <gyre/gyre.hpp>\n' >"$dir/includes.cpp"
"$compiler" -std=c++20 "${includes[@]}" -M "$dir/includes.cpp" >"$dir/headers" || fail "<gyre/gyre.hpp> does not compile"
grep -q 'runtime/client\.hpp' "$dir/headers" || fail "the compiler lists no headers"
if grep -o '[^ ]*nats[^ ]*' "$dir/headers" | sed "s|^$source/||; s|^$build/||" | grep nats; then
  fail "<gyre/gyre.hpp> includes the headers above"
fi

# A build without it.
without=$dir/without
cmake -G Ninja -S "$source" -B "$without" -DCMAKE_CXX_COMPILER="$compiler" -DGYRE_NATS=OFF -DGYRE_TESTS=OFF -DGYRE_BENCH=OFF \
  -DGYRE_EXAMPLES=OFF -DCMAKE_EXPORT_COMPILE_COMMANDS=ON >"$dir/log" 2>&1 || { cat "$dir/log"; fail "configuring"; exit 1; }
if grep -i '^NATS_' "$without/CMakeCache.txt"; then fail "a build without GYRE_NATS looks for libnats"; fi
if grep -oE '"[^"]*nats[^"]*\.cpp"' "$without/compile_commands.json" | sed "s|$source||" | grep nats; then
  fail "a build without GYRE_NATS compiles the files above"
fi
if grep -vi 'nats.*EXCLUDE' "$without/cmake_install.cmake" | sed "s|$source||; s|$without||" | grep -i nats; then
  fail "a build without GYRE_NATS installs the files above"
fi
# Its headers are in a folder that is installed as a whole.
mkdir "$dir/installed"
sed -n '/TYPE DIRECTORY FILES/p' "$without/cmake_install.cmake" | grep '/runtime/"' >"$dir/install_headers.cmake" ||
  fail "runtime's headers are not installed as a folder"
sed -i 's|DESTINATION "[^"]*"|DESTINATION "'"$dir"'/installed"|' "$dir/install_headers.cmake"
cmake -P "$dir/install_headers.cmake" >"$dir/log" 2>&1 || { cat "$dir/log"; fail "installing runtime's headers"; }
[[ -f $dir/installed/runtime/client.hpp || -f $dir/installed/client.hpp ]] || fail "runtime's headers were not installed"
if find "$dir/installed" -path '*nats*' | grep .; then fail "a build without GYRE_NATS installs the files above"; fi
((failures == 0)) && echo ok
exit $((failures != 0))
