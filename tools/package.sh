#!/usr/bin/env bash
# tools/package.sh: makes the Debian packages gyre, gyre-runtime, gyre-nats and gyre-dev, and prints their files. Install them by
#   sudo apt-get install ./gyre*.deb
# They fit the Debian or Ubuntu release they were made on.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { echo "package: $*" >&2; }

tools/setup.sh --package
say "building (preset package)"
log="$(cmake --preset package 2>&1)" || { echo "$log" >&2; say "configuring preset package failed"; exit 1; }
cmake --build --preset package -- --quiet >&2 || { say "building preset package failed"; exit 1; }
rm -f build/package/*.deb
log="$(cd build/package && cpack --config CPackConfig.cmake 2>&1)" || { echo "$log" >&2; say "packing failed"; exit 1; }
ls build/package/*.deb
