#!/usr/bin/env bash
# debian_packages_test.sh BUILD_DIR VERSION: CPack makes the Debian packages of BUILD_DIR; each holds what it should, no
# two hold the same file, and their programs run from an empty folder. Skipped where the tools that make packages are
# missing.
set -euo pipefail
build=$1 version=$2 script="$(realpath "$0")"
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

# Programs start gyre-engine, which the package gyre-runtime has, and refuse that of another version.
for package in gyre gyre-nats; do
  [[ -n ${wanted[$package]:-} ]] || continue
  [[ $(dpkg-deb -f "$dir/${package}_${version}_"*.deb Depends) == *"gyre-runtime (= $version)"* ]] ||
    fail "$package does not depend on gyre-runtime (= $version)"
done

# All packages in one folder. Programs find Gyre's libraries there, and other packages' where the system has them.
root="$dir/root"
for package in "${!wanted[@]}"; do
  dpkg-deb -x "$(echo "$dir/${package}_${version}_"*.deb)" "$root"
done
for program in gyre gyre-nats gyre-ask; do
  [[ -x $root/usr/bin/$program ]] || continue
  libraries="$(ldd "$root/usr/bin/$program")"
  ! grep -q -e 'not found' -e "$PWD" <<<"$libraries" ||
    fail "$program lacks a library, or finds one in the build folder: $libraries"
  "$root/usr/bin/$program" --help >"$dir/help" 2>&1 || fail "$program --help: $(tail -n 5 "$dir/help")"
  grep -q -- --json "$dir/help" || [[ $program != gyre-nats ]] || fail "gyre-nats --help names no --json"
done
timeout 120 "$root/usr/bin/gyre" validate --engine cpu --messages 1000 >"$dir/log" 2>&1 ||
  fail "gyre validate: $(tail -n 5 "$dir/log")"
if [[ -n ${wanted[gyre-nats]:-} ]]; then
  status=0
  python3 "$(dirname "$script")/installed_nats_test.py" "$root" >"$dir/log" 2>&1 || status=$?
  # Without nats-server it is skipped.
  ((status == 0 || status == 77)) || fail "gyre-nats: $(tail -n 20 "$dir/log")"
fi
((failures == 0)) && echo ok
exit $((failures != 0))
