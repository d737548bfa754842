#!/usr/bin/env bash
# cmake/write_build_commit.cmake: the commit, whether files changed since, "unknown" outside git, and a header that is
# left alone where nothing changed. Use: build_commit_test.sh SOURCE_DIR CMAKE
set -euo pipefail
script=$1/cmake/write_build_commit.cmake
cmake=$2
if ! command -v git >/dev/null; then echo "skipped: git is not installed"; exit 77; fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_CEILING_DIRECTORIES=$folder
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# says TREE COMMIT DIRTY: what the header has after the script has run for folder TREE.
says() {
  "$cmake" -DSOURCE="$folder/$1" -DOUT="$folder/value.hpp" -P "$script"
  local expected="#define GYRE_BUILD_COMMIT \"$2\""$'\n'"#define GYRE_BUILD_DIRTY $3"
  [ "$(cat "$folder/value.hpp")" = "$expected" ] || { echo "of $1, not $2 $3:"; cat "$folder/value.hpp"; exit 1; }
}
commit() { git -C "$folder/tree" -c user.name=t -c user.email=t@example.org commit -qam "$1"; }

mkdir -p "$folder/plain" "$folder/tree/inside"
says plain unknown false
git -C "$folder/tree" init -q
says tree unknown false  # no commit yet
echo one >"$folder/tree/file"
git -C "$folder/tree" add file
commit one
first=$(git -C "$folder/tree" rev-parse --short=12 HEAD)
says tree "$first" false
touch -d '2001-01-01' "$folder/value.hpp"
says tree "$first" false
[ "$(date -r "$folder/value.hpp" +%Y)" = 2001 ] || { echo "the header was written though nothing changed"; exit 1; }
touch "$folder/tree/not-under-version-control"
says tree "$first" false
echo two >"$folder/tree/file"
says tree "$first" true
commit two
second=$(git -C "$folder/tree" rev-parse --short=12 HEAD)
[ "$first" != "$second" ]
says tree "$second" false
says tree/inside unknown false  # another project's repository
echo "the commit of a build: as it should be"
