#!/usr/bin/env bash
# build.sh FOLDER: builds the client, FOLDER/ask, with Debian's packages and no network. Debian: golang-go
# golang-github-nats-io-go-nats-dev. It also runs capnp (Debian: capnproto).
set -euo pipefail
mkdir -p "$1"
out=$(realpath "$1")
cd "$(dirname "$0")"
GO111MODULE=off GOPATH=/usr/share/gocode GOCACHE=${GOCACHE-$out/cache} go build -o "$out/ask" .
