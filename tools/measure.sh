#!/usr/bin/env bash
# Measures everything that README.md and docs report: one JSON file a step, all by one build, in a quarter of an hour on a
# machine with a GPU. It needs bash, coreutils, tar and the program gyre-bench there, Python with PyTorch for the steps
# that compare with it, and OpenSSL's libraries for the steps on NATS; no compiler, no git and no package of NATS.
#
#   tools/measure.sh --prepare DIR           here: fills DIR with what to carry: gyre-bench, what tools/gpu_test.sh takes, and
#                                            nats-server with a node and the NATS library
#   tools/measure.sh --list                  the steps, and how many seconds each is expected to take on one H200
#   tools/measure.sh [options]               there:
#     --bin DIR          the folder that --prepare filled (default: build/measure, which is filled first)
#     --out DIR          where the files go (default: bench/results/current; without --only its *.json are deleted
#                        first, but those that no step makes: gpu-test.json, nats-two-processors.json)
#     --only NAMES       these steps alone, by commas, with * and ?; may be given several times
#     --tar FILE         packs the files of this run
#
# A step that cannot run here (no GPU, no BAR, no program) is named and skipped. Prints each step's time.
# Exit: 0 every step passed or was skipped, 1 one failed, 2 bad usage.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

usage() {
  echo "measure.sh: $1; usage: tools/measure.sh [--prepare DIR | --list | --bin DIR --out DIR --only NAMES --tar FILE]" >&2
  exit 2
}

bin='' out='' prepare='' list='' tar='' only=()
while (($#)); do
  case "$1" in
    --bin | --out | --prepare | --tar | --only) (($# > 1)) || usage "$1 needs a value" ;;&
    --bin) bin=$2; shift ;;
    --out) out=$2; shift ;;
    --prepare) prepare=$2; shift ;;
    --tar) tar=$2; shift ;;
    --only) IFS=, read -ra names <<<"$2"; only+=("${names[@]}"); shift ;;
    --list) list=1 ;;
    *) usage "unknown argument $1" ;;
  esac
  shift
done

prepare_nats() {
  local to=$1 server
  if ! server="$(PATH="$PATH:/usr/sbin" command -v "${NATS_SERVER:-nats-server}")"; then
    echo "measure.sh: there is no nats-server here (Debian: nats-server): the steps on NATS will be skipped" >&2
    return
  fi
  (cd "$root" && cmake --build --preset gpu --target gyre-bench-nats gyre-nats -- --quiet >&2)
  for program in gyre-bench-nats gyre-nats; do strip -o "$to/$program" "$root/build/gpu/bin/$program"; done
  cp -L "$server" "$to/nats-server"
  ldd "$to/gyre-nats" | awk '/libnats|libprotobuf-c/ { print $3 }' | xargs cp -Lt "$to"
}
prepare() {
  local to=$1
  "$root/tools/gpu_test.sh" --prepare "$to" >&2
  local caf=OFF
  if [[ -f /usr/include/caf/all.hpp ]]; then
    caf=ON
  else
    echo "measure.sh: there is no CAF here (Debian: libcaf-dev): the page's table on Savina will have no figures of it" >&2
  fi
  (cd "$root" && cmake --preset gpu -DGYRE_BENCH_CAF=$caf >/dev/null && cmake --build --preset gpu --target gyre-bench -- --quiet >&2)
  strip -o "$to/gyre-bench" "$root/build/gpu/bin/gyre-bench"
  ldd "$to/gyre-bench" | awk '/libcaf/ { print $3 }' | xargs -r cp -Lt "$to"
  prepare_nats "$to"
  echo "$to has what a machine with a GPU needs beside this script: tools/measure.sh --bin DIR"
}

# name|seconds that it is expected to take on one H200|arguments of gyre-bench, or another program and its arguments. A
# step is stopped after four times as long and a minute, which compiling its actors may take.
steps=(
  'rtt-bar|18|rtt --engine cuda --transport bar --messages 300000 --interleave 5 --brief --unchecked --pin-quickest'
  'rtt-pinned|18|rtt --engine cuda --transport pinned --pollers 2 --messages 300000 --interleave 5 --brief --unchecked --pin-quickest'
  'rtt-alternatives|28|rtt --engine cuda --messages 30000 --interleave 5 --pin-quickest'
  'rtt-cpu|4|rtt --engine cpu --messages 100000 --interleave 5 --pin'
  'throughput-bar|14|throughput --engine cuda --transport bar --workers 1 16 132 --tells --messages 2000000 --interleave 3'
  'throughput-pinned|15|throughput --engine cuda --transport pinned --pollers 2 --workers 1 16 132 --tells --messages 2000000 --interleave 3'
  'sweep|10|sweep --engine cuda --workers 16 --seconds 0.5 --loads 0.1 0.25 0.5 0.7 0.9'
  'launch-bar|8|launch --engine cuda --transport bar --runs 8'
  'launch-pinned|8|launch --engine cuda --transport pinned --runs 8'
  'payload|54|payload --engine cuda --workers 32 --block 512 --bytes 1048576 16777216 67108864 --total-bytes 1073741824 --interleave 5'
  'inference|48|inference --messages 10000 --interleave 5'
  'inference-python|112|examples/inference/mlp.py --measure --rounds 5'
  'workers|8|workers --engine cuda --workers 1 132 --messages 100000 --interleave 3'
  'idle|12|idle --engine cuda --workers 132 --seconds 5'
  'sparse-cuda|17|sparse --engine cuda --messages 100 --interleave 2 --idle-seconds 1'
  'sparse-cpu|14|sparse --engine cpu --messages 100 --interleave 2 --idle-seconds 1'
  'rollback|20|rollback --engine cuda --messages 100000 --interleave 3'
  'api|15|api --engine cuda --messages 30000 --interleave 3'
  'views|6|views --engine cuda'
  'frames|4|frames --engine cpu --frames 500000'
  'nats-two-cpus|20|gyre-bench-nats --engine cpu --cpus 2 --size 64 --messages 2000 --rate-messages 10000 --interleave 10'
  'nats-cpu|40|gyre-bench-nats --engine cpu --messages 2000 --rate-messages 20000 --interleave 10'
  'nats-cpu-spin|16|gyre-bench-nats --engine cpu --wait spin --size 64 --messages 2000 --rate-messages 20000 --interleave 10'
  'nats-cuda|60|gyre-bench-nats --engine cuda --messages 2000 --rate-messages 20000 --interleave 10'
  'mailbox|45|mailbox --allowance 1 2'
  'actors|20|actors --engine cuda --workers 528 --slot-bytes 64 --messages 5000 --passes 20000 --floods 100000 --mass-floods 1000000 --tallies 65536 --interleave 3'
  'actors-pair|32|actors --engine cuda --workers 2 --slot-bytes 64 --messages 100000 --passes 100000 --floods 1000 --mass-floods 1000 --tallies 128 --interleave 10'
  'savina|75|savina --engine cuda --only counting fork-join-throughput big concurrent-dictionary --instances 1000 --size-percent 2 --interleave 1'
  'savina-larger|65|savina --engine cuda --only counting fork-join-throughput --instances 1000 --size-percent 10 --interleave 1'
  'counters|76|counters --engine cuda --threads 8'
  'soak|10|soak --engine cuda --workers 16 --threads 8 --messages 1e8'
)
if [[ $list ]]; then
  total=0
  for step in "${steps[@]}"; do
    IFS='|' read -r name seconds arguments <<<"$step"
    [[ $arguments == *.py\ * || $arguments == gyre-* ]] || arguments="gyre-bench $arguments"
    printf '%-18s %3d s  %s\n' "$name" "$seconds" "$arguments"
    total=$((total + seconds))
  done
  printf '%-18s %3d s\n' together "$total"
  exit
fi
if [[ $prepare ]]; then
  prepare "$prepare"
  exit
fi

selected() {  # whether step $1 was asked for
  local pattern
  ((${#only[@]})) || return 0
  for pattern in "${only[@]}"; do
    # shellcheck disable=SC2053
    [[ $1 == $pattern ]] && return 0
  done
  return 1
}
for pattern in "${only[@]}"; do
  for step in "${steps[@]}"; do
    # shellcheck disable=SC2053
    [[ ${step%%|*} == $pattern ]] && continue 2
  done
  usage "--only $pattern names no step; --list prints them"
done

if [[ -z $bin ]]; then
  bin="$root/build/measure"
  prepare "$bin"
fi
[[ -d $bin ]] || usage "--bin $bin is no folder; fill it by tools/measure.sh --prepare DIR"
bin="$(realpath "$bin")"
export LD_LIBRARY_PATH="$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"  # for libraries that --prepare put there
out="${out:-$root/bench/results/current}"
mkdir -p "$out"
out="$(realpath "$out")"
if ((${#only[@]} == 0)); then find "$out" -maxdepth 1 -name '*.json' ! -name gpu-test.json ! -name nats-two-processors.json -delete; fi
[[ -z $tar ]] || tar="$(realpath -m "$tar")"
logs="$(mktemp -d)"
trap 'rm -rf "$logs"' EXIT
cd "$out"  # each file has its command line, which names its file without a folder

measured=() skipped=0 failed=0 started=$EPOCHREALTIME
seconds_since() { awk -v a="${1/,/.}" -v b="${EPOCHREALTIME/,/.}" 'BEGIN { printf "%.1f", b - a }'; }
say() { printf '%-8s %-18s %6s s  %s\n' "$@"; }
for step in "${steps[@]}"; do
  IFS='|' read -r name seconds arguments <<<"$step"
  selected "$name" || continue
  read -ra words <<<"$arguments"
  if [[ ${words[0]} == *.py ]]; then
    needs="$bin/libgyre.so"
    words=(env PYTHONPATH="$bin/python" GYRE_LIBRARY="$needs" GYRE_ENGINE="$bin/gyre-engine"
      python3 "$root/${words[0]}" "${words[@]:1}"
      --commit "$(cat "$bin/commit.txt" 2>/dev/null || echo unknown)")
  elif [[ ${words[0]} == gyre-* ]]; then
    needs="$bin/${words[0]}"
    words=("$needs" "${words[@]:1}")
  else
    needs="$bin/gyre-bench"
    words=("$needs" "${words[@]}")
  fi
  if [[ ! -f $needs ]]; then
    say skipped "$name" 0.0 "$bin has no ${needs##*/}"
    skipped=$((skipped + 1))
    continue
  fi
  begin=$EPOCHREALTIME code=0
  rm -f "$name.json"
  timeout --kill-after=10 $((60 + 4 * seconds)) "${words[@]}" --json "$name.json" \
    >"$logs/$name" 2>&1 </dev/null || code=$?
  took="$(seconds_since "$begin")"
  case $code in
    0)
      if [[ -s $name.json ]]; then
        say measured "$name" "$took" "$name.json"
        measured+=("$name.json")
        continue
      fi
      why='it wrote no result' ;;
    3 | 77)  # this engine, transport or package is not available here; the file may have been made, empty
      rm -f "$name.json"
      say skipped "$name" "$took" "$(tail -n 1 "$logs/$name")"
      skipped=$((skipped + 1))
      continue ;;
    124 | 137) why="it ran past $((60 + 4 * seconds)) s" ;;
    *) why="exit code $code" ;;
  esac
  rm -f "$name.json"
  failed=$((failed + 1))
  tail -n 20 "$logs/$name" | sed 's/^/    | /'
  say failed "$name" "$took" "$why"
done

if [[ $tar ]]; then
  if ((${#measured[@]})); then tar -cf "$tar" "${measured[@]}"; else tar -cf "$tar" --files-from /dev/null; fi
  echo "the files are in $tar; unpack them by: tar -xf FILE -C bench/results/current"
fi
echo "${#measured[@]} measured, $failed failed, $skipped skipped, $(seconds_since "$started") s"
((failed == 0)) || exit 1
