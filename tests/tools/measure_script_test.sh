#!/usr/bin/env bash
# measure_script_test.sh SOURCE_DIR: what tools/measure.sh runs, keeps, skips and packs, with a gyre-bench that only
# writes its arguments.
set -euo pipefail
script="$(realpath "$1")/tools/measure.sh"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir bin
cat >bin/gyre-bench <<'PROGRAM'
#!/usr/bin/env bash
# Has no BAR; sparse fails; idle writes nothing.
[[ "$*" != *'--transport bar'* ]] || { : >"${@: -1}"; echo 'gyre-bench: launching with --transport bar: not here' >&2; exit 3; }
case $1 in
  sparse) echo 'half a result' >"${@: -1}"; echo 'a reply is wrong'; exit 1 ;;
  idle) exit 0 ;;
esac
printf '{"arguments": "%s"}\n' "$*" >"${@: -1}"
PROGRAM
chmod +x bin/gyre-bench
die() { echo "FAILED: $1"; cat out; exit 1; }
# run CODE ARGUMENTS...
run() {
  local expected=$1 code=0
  shift
  "$script" "$@" >out 2>&1 </dev/null || code=$?
  [[ $code == "$expected" ]] || die "exit $code instead of $expected: $*"
}
says() { grep -qE -- "$1" out || die "it does not say '$1'"; }

mkdir -p results
echo old >results/rtt-pinned.json
echo old >results/gone.json
echo kept | tee results/gpu-test.json >results/nats-two-processors.json
run 1 --bin bin --out results --tar all.tar
says '^skipped +rtt-bar .*launching with --transport bar: not here'
says '^measured +rtt-pinned +[0-9.]+ s +rtt-pinned.json'
says '^failed +sparse-cpu .*exit code 1'
says 'a reply is wrong'
says '^failed +idle .*it wrote no result'
says '^20 measured, 3 failed, 8 skipped, [0-9.]+ s$'
says '^skipped +inference-python .*bin has no libgyre.so'
says '^skipped +nats-cuda .*bin has no gyre-bench-nats'
[[ $(cat results/{gpu-test,nats-two-processors}.json | sort -u) == kept && ! -e results/gone.json && ! -e results/sparse-cpu.json && ! -e results/rtt-bar.json ]] || die 'other files stay, or do not'
grep -q 'rtt --engine cuda --transport pinned .* --json rtt-pinned.json"' results/rtt-pinned.json || die 'another command'
[[ $(tar -tf all.tar | sort) == "$(find results -name '*.json' ! -name gpu-test.json ! -name nats-two-processors.json -printf '%f\n' | sort)" ]] || die 'the tar has other files'

run 0 --bin bin --out results --only 'rtt-*' --tar some.tar
[[ $(tar -tf some.tar | tr '\n' ' ') == 'rtt-pinned.json rtt-alternatives.json rtt-cpu.json ' ]] || die 'the tar of --only'
[[ -e results/frames.json ]] || die 'files of other steps are gone after --only'
run 0 --bin bin --out empty --only rtt-bar --tar none.tar
says '^0 measured, 0 failed, 1 skipped'
# Another program, with the libraries that were carried with it.
cat >bin/gyre-bench-nats <<'PROGRAM'
#!/usr/bin/env bash
[[ ":$LD_LIBRARY_PATH:" == *":$(dirname "$0"):"* ]] || exit 1
[[ "$*" != *'--engine cuda'* ]] || { echo 'there is no nats-server'; exit 77; }
printf '{"arguments": "%s"}\n' "$*" >"${@: -1}"
PROGRAM
chmod +x bin/gyre-bench-nats
run 0 --bin bin --out results --only 'nats-*'
says '^skipped +nats-cuda .*there is no nats-server'
grep -q '"--engine cpu --cpus 2 .* --json nats-two-cpus.json"' results/nats-two-cpus.json || die 'another command'
run 2 --bin bin --only nothing-of-this-name
run 2 --bin nowhere
run 2 --tar
rm bin/gyre-bench
run 0 --bin bin --out results --only frames
says '^skipped +frames .*has no gyre-bench'

# Every step's time is stated, and all of them take at most a quarter of an hour.
run 0 --list
(($(awk '/^together/ { print $2 }' out) <= 900)) || die 'too long'
echo 'measure.sh: as it should be'
