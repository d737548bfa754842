#!/usr/bin/env bash
# inspect_test.sh GYRE SOURCE_DIR WITH_CUDA PLUGIN: what `gyre inspect` prints, its JSON and its exit codes. No GPU is needed;
# without NVRTC only that it says so.
set -euo pipefail
gyre="$(realpath "$1")"
examples="$(realpath "$2")/examples/debugging"
with_cuda="$3"
plugin="$(realpath "$4")"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$examples"/*.hpp "$examples"/*.capnp .
failures=0

fail() {
  echo "FAILED: gyre $command"
  echo "  expected: $1"
  echo "  seen:     $2"
  failures=$((failures + 1))
}

# Runs gyre with these arguments: fills $code and the files out and err.
run() {
  command="$*"
  code=0
  timeout --kill-after=5 120 "$gyre" "$@" >out 2>err </dev/null || code=$?
}
expect_code() { [[ $code == "$1" ]] || fail "exit code $1" "$code; standard error: $(head -c 2000 err)"; }
expect_in() { grep -qE -- "$2" "$1" || fail "«$2» on std$1" "$(head -c 3000 "$1")"; }
expect_json() {
  python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" 2>/dev/null || fail "JSON with $2" "$(head -c 3000 "$1")"
}

run inspect --help
expect_code 0
for option in --actors --types --schema --include --program --arch --block --sms --ptx --keep --diff --json; do
  expect_in out " $option "
done
run inspect --arch hopper
if [[ $with_cuda != ON ]] || "$gyre" doctor | grep -q '^bad *toolkit'; then
  run inspect
  expect_code 3
  echo "skipped case: what gyre inspect prints of a kernel: NVRTC is not installed"
  exit $((failures != 0))
fi
expect_code 2
expect_in err 'hopper.*sm_90'
for block in 0 33 2048; do
  run inspect --block "$block" --slot-bytes 100
  expect_code 2
  expect_in err "--block $block: must be a multiple of 32 \\(a warp\\), 32 to 1024"
  expect_in err '--slot-bytes 100: must be a multiple of 64'
done

good=(--actors good.hpp --types debugging::Good --schema smooth.capnp --arch sm_90)
slow=(--actors slow.hpp --types debugging::Slow --schema smooth.capnp --arch sm_90)

# The messages in hand: one, or where an actor of one warp says that several may be handled at once, many.
sed 's/^struct Good {/&\n  static constexpr bool side_by_side = true;/' good.hpp >beside.hpp
beside=(--actors beside.hpp --types debugging::Good --schema smooth.capnp --arch sm_90)
run inspect "${beside[@]}" --keep kept_beside
expect_in out '^  shared memory .* 14336 dynamic a block$'
run inspect --program kept_beside
expect_in out '^  shared memory .* 14336 dynamic a block$'
run inspect --program kept_beside --slot-bytes 1024
expect_in out '^  shared memory .* 26624 dynamic a block$'

# What a message needs besides its actor's state: a copy of that, and scratch memory.
sed 's/^struct Good {/&\n  static constexpr bool rollback_on_error = true;\n  static constexpr uint32_t scratch_bytes = 1000, max_reply_bytes = 4096;\n  uint64_t rest[40] = {};/' \
  good.hpp >undone.hpp
run inspect --actors undone.hpp --types debugging::Good --schema smooth.capnp --arch sm_90 --json undone.json
expect_in out '^  device memory +1536 bytes a worker, for the message in hand$'
expect_in out '^  actor debugging::Good: 320 bytes of state, 1 handler, 1,008 bytes of scratch memory a message, rolled back on errors'
expect_json undone.json 'document["inspection"]["actors"][0]["rollback_bytes"] == 320'
expect_json undone.json 'document["inspection"]["actors"][0]["scratch_bytes"] == 1008'
expect_json undone.json 'document["inspection"]["actors"][0]["handlers"][0]["max_reply_bytes"] == 4096'
expect_json undone.json 'document["inspection"]["working_bytes"] == 1536'

run inspect "${good[@]}" --block 128 --sms 132 --keep kept --json good.json
expect_code 0
expect_in out '^kernel gyre::worker_kernel<debugging::Good>$'
expect_in out '^  lowered name +_Z[A-Za-z0-9_]+$'
expect_in out '^  compiled +for sm_90, 128 threads a block, by NVRTC [0-9]+\.[0-9]+'
expect_in out '^  registers +[0-9]+ a thread$'
expect_in out '^  spills +0 bytes stored, 0 bytes loaded$'
expect_in out '^  actor debugging::Good: 0 bytes of state, 1 handler'
expect_in out '^occupancy: [1-9][0-9]* blocks a multiprocessor by NVIDIA'
expect_in out '^grid: at most [0-9]+ blocks on 132 multiprocessors'
expect_json good.json 'document["max_grid"] == 132 * document.get("driver_occupancy", document["occupancy"]["blocks"]) > 0'
expect_json good.json '16 < document["inspection"]["registers"] <= 255'
expect_json good.json 'document["inspection"]["code_bytes"] > 1000'
expect_json good.json 'document["inspection"]["ptx_instructions"]["global and generic memory"] > 0'
if grep -q '"accepted"' good.json; then
  expect_in out '^ptxas: release [0-9.]+ takes the PTX: [0-9]+ registers'
  expect_json good.json 'document["inspection"]["ptxas"]["accepted"] is True'
fi
for file in kernel.cu kernel.ptx kernel.cubin options.txt compile.log; do
  [[ -s kept/$file ]] || fail "kept/$file" "$(ls kept)"
done

# What was kept is inspected as what was compiled; ptxas, where it is not there, is said by name.
CUDA_HOME=/nonexistent PATH=/usr/bin:/bin run inspect --program kept --json kept.json
expect_code 0
command -v /usr/bin/ptxas >/dev/null || expect_in out '^ptxas: not found'
python3 - <<'PYTHON' || fail "the same from kept/" "$(diff good.json kept.json)"
import json
first, second = (json.load(open(name))["inspection"] for name in ("good.json", "kept.json"))
for one in (first, second):
    del one["ptxas"]
assert first == second
PYTHON

# The slow one: its window lies in local memory, and shows in the difference.
run inspect "${slow[@]}" --block 128 --diff kept --json slow.json
expect_code 0
expect_json slow.json 'document["inspection"]["frame_bytes"] >= 2048'
expect_json slow.json 'document["inspection"]["ptx_instructions"]["local memory"] > 0'
expect_in out '^from kept to slow.hpp$'
expect_in out '^  stack frame a thread, bytes +[0-9]+ +2,[0-9]+  \+2,'
expect_in out '^  ~ the kernel \([0-9,]+ instructions, [0-9,]+ before\)$'
run inspect --program kept --diff kept
expect_code 0
expect_in out 'PTX functions: 0 added, 0 removed, 0 changed, [1-9][0-9]* the same$'

# A plugin of the C interface has its actors' text with it.
run inspect --actors "$plugin" --arch sm_90
expect_code 0
expect_in out '^kernel gyre::worker_kernel<averages::Average>$'
expect_in out '^  actor averages::Average: [1-9][0-9]* bytes of state, 1 handler'
expect_in out '^  shared memory .* 768 dynamic a block$'

# A handler that is not inlined has a line of its own; a block of several warps has one message in hand; the PTX goes to standard output alone.
sed 's/GYRE_DEVICE void on/GYRE_CALLED_FUNCTION void on/' beside.hpp >called.hpp
run inspect --actors called.hpp --types debugging::Good --schema smooth.capnp --arch sm_80 --block 128 --ptx
expect_code 0
expect_in err '^    [0-9,]+ bytes  debugging::Good::on\(gyre::Context'
expect_in err '^  shared memory .* 768 dynamic a block$'
expect_in out '^\.target sm_80'
expect_in out '\.entry _Z'

# Errors.
run inspect --actors good.hpp --types debugging::Bad --schema smooth.capnp --arch sm_90
expect_code 1
expect_in err 'Bad'
run inspect --program nothing-here
expect_code 1
expect_in err 'it has no kernel.ptx'
run inspect --actors good.hpp --schema smooth.capnp
expect_code 2
expect_in err '--types'
run inspect --actors good.hpp --types debugging::Good --arch sm_90
expect_code 1
expect_in err 'smooth.view.hpp'

if ((failures)); then
  echo "$failures checks failed"
  exit 1
fi
echo "ok"
