#!/usr/bin/env bash
# show.sh GYRE LIBRARIES [build]: runs gyre inspect and gyre validate --against on a good, a slow and a wrong actor.
# With `build` it first makes their libraries in the folder LIBRARIES, which needs a C++ compiler and capnp. Without, it
# needs the program, the libraries and, for --against, a GPU.
set -u
gyre="$(realpath "$1")"
here="$(realpath "$(dirname "$0")")"
mkdir -p "$2"
cd "$2" || exit 1

# Runs gyre, and prints the command as a person would type it.
show() {
  echo "\$ gyre $*"
  "$gyre" "$@" 2>&1
  echo "(exit $?)"
  echo
}

if [[ ${3-} == build ]]; then
  cp "$here"/*.hpp "$here"/*.capnp .
  for actor in Good Slow Wrong; do
    show validate --build-library "${actor,}.so" --actors "${actor,}.hpp" --types "debugging::$actor" --schema smooth.capnp
  done
fi
show inspect --actors good.so --arch sm_90 --block 128 --sms 132 --keep good
show inspect --actors slow.so --arch sm_90 --block 128 --sms 132 --diff good
show inspect --actors wrong.so --arch sm_90 --block 128 --sms 132 --diff good
show inspect --actors good.so --arch sm_90 --block 1024 --sms 132
show validate --engine cpu --against cpu --actors slow.so --other good.so
for actor in good slow wrong; do
  show validate --against cpu --actors $actor.so --block 128 --list-length 300 --max-reply-bytes 4096 --keys 4
done
show validate --against cpu --actors good.so --atol 1e-6 --rtol 1e-6 --any-bits --slot-bytes 4096
