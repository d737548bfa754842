#!/usr/bin/env bash
# build.sh FOLDER: builds the client, FOLDER/ask. Debian: gcc g++ capnproto libcapnp-dev libnats-dev
set -euo pipefail
cd "$(dirname "$0")"
out=$1 schemas=../../first_actor
mkdir -p "$out"
capnp compile -oc++:"$out" --src-prefix="$schemas" "$schemas/average.capnp"
for file in ask client; do
  cc -std=c11 -D_POSIX_C_SOURCE=200809L -O2 -Wall -Wextra -c "$file.c" -o "$out/$file.o"
done
c++ -std=c++17 -O2 -Wall -Wextra -I"$out" body.cpp "$out/average.capnp.c++" "$out"/{ask,client}.o -o "$out/ask" \
  -lnats -lcapnp -lkj -lpthread
