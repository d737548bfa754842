#!/usr/bin/env bash
# api_reference_test.sh DOXYGEN DOXYFILE SOURCE_DIR: Doxygen writes the API reference without a warning, of all that
# <gyre/gyre.hpp> includes. Variables, types, functions without parameters, and copying and moving may speak by their
# names alone, and what takes Gyre's own types (detail::) is nobody else's to call; classes, and functions with
# parameters, must say what they are.
set -euo pipefail
doxygen=$1 doxyfile=$2 source=$3
command -v "$doxygen" >/dev/null || { echo "$doxygen: there is no Doxygen; install it (Debian: doxygen)"; exit 1; }

out=$(sed -n 's/^OUTPUT_DIRECTORY *= *//p' "$doxyfile")
rm -rf "$out"
mkdir -p "$out"
log=$("$doxygen" "$doxyfile" 2>&1) || { echo "FAILED: $doxygen $doxyfile"; echo "$log"; exit 1; }
by_name='Member [A-Za-z_]+(\[[0-9]+\])? \((variable|typedef)\) of'
by_name+='|Member [A-Za-z_]+\(\)( const)?( noexcept)? \(function\) of|Member operator[^(]+\(\) const \(function\) of'
by_name+='|Member ([A-Za-z]+\((const )?[A-Za-z]+ &|operator=\()[^,]*\)( noexcept)?(=default)? \(function\) of'
by_name+='|Member [A-Za-z]+\([^()]*detail::[^()]*\) \(function\) of'
warnings=$(grep -vE "$by_name" <<<"$log" | grep . || true)
if [[ -n $warnings ]]; then
  echo "FAILED: $(wc -l <<<"$warnings") warnings:"
  echo "$warnings"
  exit 1
fi

# It says something of each of these, and misses no header of the API.
for page in classgyre_1_1Runtime classgyre_1_1Client structgyre_1_1Options classgyre_1_1Context classgyre_1_1Buffer; do
  [[ -s $out/$page.html ]] || { echo "FAILED: there is no page $page.html in $out"; exit 1; }
done
while IFS= read -r header; do
  grep -qF "$source/$header\"" "$doxyfile" ||
    { echo "FAILED: gyre.hpp includes $header; add it to public_headers in cmake/gyre_api_reference.cmake"; exit 1; }
done < <(sed -n 's|^#include <gyre/\(.*\)>.*|\1|p' "$source/runtime/gyre.hpp")
echo "$(find "$out" -name '*.html' | wc -l) pages in $out, no warning"
