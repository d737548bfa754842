#!/usr/bin/env bash
# add_actors_errors_test.sh GYRE_SOURCE_DIR: how gyre_add_messages and gyre_add_actors refuse what cannot be right.
set -euo pipefail
gyre="$(realpath "$1")"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir -p project/one project/two
touch project/{a,one/a,two/a,b}.capnp project/a.hpp project/a.txt
failures=0

# refuses CALLS PATTERN...: configuring a project that makes these calls fails, with a message that says each pattern.
refuses() {
  local calls="${1//) /)$'\n'}" seen pattern
  shift
  cat >project/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.25)
project(errors LANGUAGES NONE)
include($gyre/cmake/gyre_add_actors.cmake)
$calls
END
  rm -rf build
  if cmake -G Ninja -S project -B build >log 2>&1; then
    echo "FAILED: $calls: was accepted"
    failures=$((failures + 1))
    return
  fi
  seen="$(tr -s ' \n' ' ' <log)" # CMake breaks the lines
  for pattern; do
    [[ $seen == *"$pattern"* ]] && continue
    echo "FAILED: $calls"
    echo "  expected: $pattern"
    echo "  seen:     $seen"
    failures=$((failures + 1))
  done
}

refuses 'gyre_add_messages(m)' 'gyre_add_messages(m): no SCHEMAS; name the .capnp files'
refuses 'gyre_add_messages(m SCHEMAS PREFIX my)' 'gyre_add_messages(m): no SCHEMAS'
refuses 'gyre_add_actors(m SCHEMAS a.capnp)' 'gyre_add_actors(m): no SOURCES; name the headers'
refuses 'gyre_add_messages(m a.capnp b.capnp)' 'gyre_add_messages(m): unknown arguments: a.capnp b.capnp;'
refuses 'gyre_add_actors(m a.hpp)' 'gyre_add_actors(m): unknown arguments: a.hpp;'
refuses 'add_custom_target(m) gyre_add_messages(m SCHEMAS a.capnp)' 'gyre_add_messages(m): there is a target of this name'
refuses 'gyre_add_actors(my-actors SOURCES a.hpp)' 'gyre_add_actors(my-actors): ' 'my-actors is not an identifier'

refuses 'gyre_add_messages(m SCHEMAS a.capnp none.capnp)' 'file none.capnp does not exist' 'project/none.capnp' 'create it'
refuses 'gyre_add_messages(m SCHEMAS one)' 'file one does not exist'
refuses 'gyre_add_messages(m SCHEMAS a.txt)' 'schema a.txt does not end in .capnp; rename it'
refuses 'gyre_add_messages(m SCHEMAS a.capnp IMPORT_DIRS none)' 'import directory none does not exist' 'correct IMPORT_DIRS'
refuses 'gyre_add_actors(m SOURCES none.hpp)' 'gyre_add_actors(m): file none.hpp does not exist'
refuses 'gyre_add_actors(m SOURCES a.hpp HEADERS none.hpp)' 'gyre_add_actors(m): file none.hpp does not exist'

refuses 'gyre_add_messages(m SCHEMAS a.capnp MESSAGES none)' 'MESSAGES none: there is no such target; call'
refuses 'add_custom_target(other) gyre_add_messages(m SCHEMAS a.capnp MESSAGES other)' \
  'MESSAGES other: this target was not made by gyre_add_messages; name one that was'
refuses 'add_custom_target(other) gyre_add_actors(m SOURCES a.hpp MESSAGES other)' 'gyre_add_actors(m): MESSAGES other: this'

refuses 'gyre_add_messages(m SCHEMAS one/a.capnp two/a.capnp IMPORT_DIRS one two)' 'would be included as <a.capnp.h>' \
  'one/a.capnp' 'two/a.capnp' 'another PREFIX'
refuses 'gyre_add_messages(m SCHEMAS a.capnp PREFIX my) gyre_add_messages(n SCHEMAS a.capnp PREFIX my/)' \
  'gyre_add_messages(n): ' 'would be included as <my/a.capnp.h>'

refuses 'gyre_add_actors(m SOURCES a.hpp SETS my::A)' 'ARCHITECTURES are missing; say for which'
refuses 'gyre_add_actors(m SOURCES a.hpp OPTIONAL)' 'ARCHITECTURES are missing'
refuses 'gyre_add_actors(m SOURCES a.hpp ARCHITECTURES 90)' 'ARCHITECTURES without SETS; say which'
refuses 'gyre_add_actors(m SOURCES a.hpp ARCHITECTURES sm_90 SETS my::A)' 'ARCHITECTURES sm_90: a compute capability is a'
refuses 'gyre_add_actors(m SOURCES a.hpp ARCHITECTURES 90 SETS my::A THREADS 33)' 'THREADS 33: a block has a multiple of 32'
refuses 'gyre_add_actors(m SOURCES a.hpp ARCHITECTURES 90 SETS my::A)' 'need a Gyre with the CUDA engine' 'or say OPTIONAL'

if ((failures)); then
  echo "$failures checks failed"
  exit 1
fi
echo ok
