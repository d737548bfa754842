#!/usr/bin/env bash
# debian_packages_test.sh BUILD_DIR VERSION: CPack makes the Debian packages of BUILD_DIR; each holds what it should, and
# no two hold the same file. Skipped where the tools that make packages are missing.
set -euo pipefail
build=$1 version=$2
for tool in dpkg-deb dpkg-shlibdeps file; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (tools/setup.sh --package)"; exit 77; }
done
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$build"
cpack --config CPackConfig.cmake -B "$dir" >"$dir/log" 2>&1 || { cat "$dir/log"; echo "FAILED: cpack"; exit 1; }

failures=0
fail() { echo "FAILED: $*"; failures=$((failures + 1)); }
declare -A wanted=(
  [gyre]='/bin/gyre /bin/gyre-bench /bash-completion/completions/gyre /bash-completion/completions/gyre-bench'
  [gyre-runtime]='/libgyre.so.0 /dist-packages/gyre/__init__.py /dist-packages/gyre/libgyre.so'
  [gyre-dev]='/bin/capnpc-gyre /include/gyre/gyre.hpp /include/gyre/gyre.h /libgyre_runtime.a /libgyre.so
              /cmake/gyre/gyre-config.cmake /pkgconfig/gyre.pc /pkgconfig/gyre-c.pc'
)
if [[ -x $build/bin/gyre-nats ]]; then  # built with GYRE_NATS
  wanted[gyre-nats]='/bin/gyre-nats /bin/gyre-ask /bash-completion/completions/gyre-nats /bash-completion/completions/gyre-ask'
  wanted[gyre-dev]+=' /include/gyre/runtime/nats/gateway.hpp /libgyre_nats.a /cmake/gyre/gyre-nats-targets.cmake'
fi
[[ ! -x $build/bin/gyre-engine ]] || wanted[gyre-runtime]+=' /libexec/gyre/gyre-engine'  # built with CUDA
for package in "${!wanted[@]}"; do
  deb="$(echo "$dir/${package}_${version}_"*.deb)"
  [[ -f $deb ]] || { fail "there is no package $package"; continue; }
  dpkg-deb -c "$deb" | awk '$1 !~ /^d/ { print $6 }' >"$dir/$package.files"
  for file in ${wanted[$package]}; do
    grep -q -- "$file\$" "$dir/$package.files" || fail "$package has no file …$file"
  done
done
twice="$(sort "$dir"/*.files | uniq -d)"
[[ -z $twice ]] || fail "in two packages: $twice"
depends="$(dpkg-deb -f "$dir/gyre-dev_${version}_"*.deb Depends)"
for package in "gyre-runtime (= $version)" capnproto libcapnp-dev libboost-dev libfmt-dev; do
  [[ $depends == *"$package"* ]] || fail "gyre-dev does not depend on $package, only on $depends"
done
[[ $(dpkg-deb -f "$dir/gyre_${version}_"*.deb Depends) == *libc6* ]] || fail "gyre does not depend on the C library"
((failures == 0)) && echo ok
exit $((failures != 0))
