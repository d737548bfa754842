#!/usr/bin/env bash
# Installs the Debian packages that building, running and testing Gyre need, where one is missing: Debian 12 and up,
# Ubuntu 24.04 and up. --all adds what only `tools/test.sh --all` needs, --package what tools/package.sh needs.
# It never installs a GPU driver or the CUDA toolkit; it says whether the toolkit's headers are there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build      # the build
  capnproto libcapnp-dev     # messages: the schema compiler; library and headers
  libboost-dev               # headers of Boost.Lockfree and Boost.Outcome
  libfmt-dev                 # text
  libcli11-dev nlohmann-json3-dev  # the command-line tools: options, JSON
  prometheus-cpp-dev         # the Prometheus endpoint (--metrics)
  libelf-dev                 # machine code of the GPU, which `gyre inspect` and tests read
  libvulkan-dev              # headers, for device memory that the host writes (--transport bar)
  catch2 relacy-dev          # the tests: unit tests; the ring's memory-model tests
  libboost-context-dev       # the tests: a warp's threads as fibers
  python3                    # the tests: reads JSON and counts results
  clang lld                  # the tests: they compile and link them in the least time
  pkg-config                 # the tests: a program that finds an installed Gyre without CMake
  doxygen                    # the tests: the API reference, which must have no warnings
  python3-numpy python3-pip  # the Python package: its tests; installing it
  python3-dev                # its extension, by which prepared asks take less time
  libnats-dev nats-server openssl  # the gateway to NATS; the tests' servers, and their certificates
)
packages_for_all=(
  golang-go golang-github-nats-io-go-nats-dev  # the example of a client in Go
  libclang-rt-dev            # by clang: the sanitizer build, and the fuzzers
  valgrind                   # exit paths once more, for the memory that they use
)
packages_for_packaging=(
  dpkg-dev file              # dependencies of Debian packages: which packages the programs' libraries are of
  help2man                   # manual pages, from what --help prints
)

say() { echo "setup: $*" >&2; }

case "${1-}" in
  '') ;;
  --all) packages+=("${packages_for_all[@]}" "${packages_for_packaging[@]}") ;;
  --package) packages+=("${packages_for_packaging[@]}") ;;
  *) say "unknown argument $1; usage: tools/setup.sh [--all | --package]"; exit 2 ;;
esac

missing=()
if command -v dpkg-query >/dev/null; then
  installed=" $(dpkg-query -W -f '${db:Status-Status}=${Package} ' "${packages[@]}" 2>/dev/null || true)"
  for package in "${packages[@]}"; do
    [[ $installed == *" installed=$package "* ]] || missing+=("$package")
  done
else
  say "this is neither Debian nor Ubuntu, and packages are installed on those alone. Install what Debian calls"
  say "    ${packages[*]}"
  say "then: cmake --preset release && cmake --build --preset release && build/release/bin/gyre validate"
  exit 2
fi

if ((${#missing[@]})); then
  install=(apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 "${missing[@]}")
  if ((EUID == 0)); then
    as_root=(env DEBIAN_FRONTEND=noninteractive)
  elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n env DEBIAN_FRONTEND=noninteractive)
  else
    say "packages are missing, and only root can install them. Run this, then start again:"
    say "    sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}"
    exit 2
  fi
  say "installing ${#missing[@]} packages, which takes about a minute: ${missing[*]}"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # Keeps what apt-get says. On a terminal its last line is shown.
  keep_log() {
    local line
    while IFS= read -r line; do
      echo "$line" >>"$log"
      if [[ -t 2 ]]; then printf '\r\e[Ksetup: %s' "${line:0:70}" >&2; fi
    done
    if [[ -t 2 ]]; then printf '\r\e[K' >&2; fi
  }
  # One broken source of several need not matter: the installation decides.
  if ! { "${as_root[@]}" apt-get update || true; "${as_root[@]}" "${install[@]}"; } </dev/null 2>&1 | keep_log; then
    cat "$log" >&2
    say "apt-get could not install ${missing[*]}; its messages are above."
    say "Gyre needs Debian 12 or Ubuntu 24.04, or later; on Ubuntu the component 'universe' must be enabled."
    exit 1
  fi
fi

for folder in "${CUDA_HOME:+$CUDA_HOME/include}" /usr/local/cuda/include /usr/include; do
  if [[ -f $folder/nvrtc.h && -f $folder/cuda.h ]]; then
    say "CUDA toolkit headers found in $folder: building with the CUDA engine and the CPU engine"
    exit
  fi
done
say "no CUDA toolkit headers (CUDA_HOME, /usr/local/cuda): building with the CPU engine alone"
