#!/usr/bin/env bash
# Builds the program gyre, and nothing else, and runs `gyre validate`, with these arguments: VectorAdd requests to running workers, and every element
# of every response checked. On a GPU where there is one, else on CPU threads.
# Standard output is gyre's alone; what setting up and building say goes to standard error.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"  # the working directory stays: arguments may name files

build() (
  cd "$root"
  tools/setup.sh
  echo "validate: building (preset release); the first time this takes about 1 minute on 2 quick cores, 3 on slow ones" >&2
  log="$(cmake --preset release 2>&1)" || { echo "$log" >&2; echo "validate: configuring failed" >&2; exit 1; }
  quiet=(-- --quiet)
  if [[ -t 2 ]]; then quiet=(); fi  # on a terminal ninja shows its progress in one line
  cmake --build --preset release --target gyre "${quiet[@]}" >&2 || { echo "validate: the build failed" >&2; exit 1; }
)

build
exec "$root/build/release/bin/gyre" validate "$@"
