#!/usr/bin/env bash
# mistakes_test.sh FILE COMPILERS FLAG...: by each of COMPILERS that is installed FILE compiles without a mistake, and not
# with any of its mistakes: the compiler prints what the file expects.
set -euo pipefail
file=$1 compilers=$2
shift 2
flags=("$@")
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
  echo "FAILED: $1"
  sed 's/^/  | /' "$dir/log"
  failures=$((failures + 1))
}

# compile MISTAKE
compile() {
  {
    echo "#include \"$file\""
    # What a set of the actors instantiates.
    [[ $file != *mistakes.hpp ]] || echo '#include <gyre/device/actor/description.hpp>
constexpr auto described = gyre::describe<gyre_mistakes::Sender, gyre_mistakes::Keeper>();
static_assert(described.header.actors == 2);'
  } >"$dir/source.cpp"
  "$by" -std=c++20 -fsyntax-only -w "-DMISTAKE=$1" "${flags[@]}" -include "$dir/headers.hpp" "$dir/source.cpp" \
    >"$dir/log" 2>&1
}

# Compiles the headers that every mistake includes once; both compilers find the result beside headers.hpp.
precompile() {
  awk '/^#if MISTAKE/ { exit } /^#include/' "$file" >"$dir/headers.hpp"
  "$by" -std=c++20 -w "${flags[@]}" -x c++-header "$dir/headers.hpp" -o "$dir/headers.hpp.gch" >"$dir/log" 2>&1
}

mistakes=0
for by in $compilers; do
  command -v "$by" >/dev/null || continue
  precompile || fail "$by does not compile the headers of $file"
  compile 0 || fail "$by does not compile $file without a mistake"
  mistakes=0
  while IFS='|' read -r number names says; do
    mistakes=$((mistakes + 1))
    if compile "$number"; then
      fail "$by compiles mistake $number of $file"
      continue
    fi
    IFS=, read -ra expected <<<"$names"
    for text in "${expected[@]# }" "$says"; do
      grep -qF -- "$text" "$dir/log" || fail "$by, mistake $number of $file: expected: $text"
    done
  done < <(awk '
    match($0, /^#(el)?if MISTAKE == [0-9]+/) { number = $NF }
    sub(/^ *\/\/ names: /, "") { names = $0 }
    sub(/^ *\/\/ says: /, "") { print number "|" names "|" $0 }' "$file")
done
if ((mistakes == 0)); then
  echo "FAILED: $file has no mistakes, or there is no compiler"
  exit 1
fi
((failures == 0)) && echo "ok: $mistakes mistakes"
exit $((failures != 0))
