#!/usr/bin/env bash
# gpu_test_script_test.sh SOURCE_DIR: how tools/gpu_test.sh counts what its steps do, with programs that only print; and
# what it says where there is no GPU.
set -euo pipefail
script="$(realpath "$1")/tools/gpu_test.sh"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
mkdir bin
failures=0

fail() {
  echo "FAILED: $1"
  echo "  expected: $2"
  echo "  seen:     $3"
  failures=$((failures + 1))
}

# Programs as on a machine with a GPU and without BAR: $BAR says what the launch over it says. The suite has five cases,
# of which two are in the first part, and two in the second, which runs one. On pinned memory one of the first part is skipped, on unified
# memory one fails; a fault is without its last words.
cat >bin/gyre <<'PROGRAM'
#!/usr/bin/env bash
case "$*" in
  doctor*) echo 'ok    toolkit                NVRTC 13.0; Gyre was built with the headers of CUDA 13.0'
    echo 'ok    smallest kernel        ran' ;;
  *'--transport bar'*) echo "gyre: launching with --transport bar: $BAR" >&2; exit 3 ;;
  *) echo '84 passed, 0 failed, 0 skipped; uptime 0.31 s' ;;
esac
PROGRAM
cat >bin/gyre-gpu-tests <<'PROGRAM'
#!/usr/bin/env bash
[[ ! -f no_gpu ]] || { echo 'skipped: no CUDA device here'; exit 77; }
case "${1-}" in
  --list-tests) exit ;;
  --list-test-names-only) printf 'case %s\n' 1 2 '3, as it is' 4 5; exit 5 ;;
  --durations) names="$(tr '\n' ';' <"$4")" ;;
  *) exit ;;
esac
case "$GYRE_TEST_TRANSPORT $names" in
  'pinned case 1;case 4;') echo 'skipped case: on two GPUs: one GPU here'; echo 'All tests passed (5 assertions in 2 test cases)' ;;
  'pinned case 2;case 5;') echo 'All tests passed (5 assertions in 1 test case)' ;;
  'pinned case 3\, as it is;') echo 'All tests passed (5 assertions in 1 test case)' ;;
  unified*) echo 'test cases: 2 | 1 passed | 1 failed'; exit 1 ;;
  bar*) echo "gyre::EngineUnavailable: $BAR"; exit 1 ;;
  *) exit 2 ;;
esac
PROGRAM
printf '#!/bin/sh\nexit 77\n' >bin/gyre-gpu-fault
printf '#!/bin/sh\nexit 1\n' >bin/gyre-engine
printf '#!/bin/sh\nexit 77\n' >bin/gyre-gpu-relaunch
printf '#!/bin/sh\nexit 77\n' >bin/gyre-gpu-process
cat >bin/gyre-gpu-ahead <<'PROGRAM'
#!/usr/bin/env bash
case "${2-}" in
  groups) what='cooperative groups' ;;
  halves) what='fp16 and bf16' ;;
  matrices) what='tensor cores' ;;
  cub) what=CUB ;;
  *) what=built-in ;;
esac
case "$1" in
  ahead) what+=', compiled ahead' ;;
  cached) what+=', found compiled' ;;
  *) what+=', compiled' ;;
esac
[[ $* != *hidden ]] || [[ ! -s $(ldconfig -p | sed -n 's/.*=> \(.*libnvrtc.so.1[23]\)$/\1/p' | head -1) ]] ||
  [[ $LD_LIBRARY_PATH == */libraries* ]] || { echo 'skipped: NVRTC is found'; exit 77; }
echo "$what: the first reply came 12.5 ms after the program began; the actors took 1.0 ms"
PROGRAM
cat >bin/example_faults <<'PROGRAM'
#!/usr/bin/env bash
if [[ $1 == null ]]; then words=; else words='worker 0 was last busy with faults::Faulty, key 3, message Provoke'; fi
echo 'the fault, after 1 ms: engine_failed'
echo "Runtime::failure(): CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED; $words"
echo 'terminated in 0 ms, state failed; the books balance'
PROGRAM
chmod +x bin/*
echo 0123456789ab >bin/commit.txt

# Runs the script with these arguments: fills $code, the file out, and $last with its last line.
run() {
  code=0
  timeout --kill-after=5 100 "$script" --bin bin --out summary.json "$@" >out 2>err </dev/null || code=$?
  last="$(tail -n 1 out)"
}
expect() { [[ "$last, exit $code" == "$2" ]] || fail "$1" "$2" "$last, exit $code; $(cat out err)"; }
expect_json() {
  python3 -c 'import json, sys
document = json.load(open("summary.json"))
steps = {step["name"]: step for step in document["steps"]}
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1" || fail 'the summary' "$1" "$(cat summary.json)"
}

BAR='loading libvulkan.so.1: install libvulkan1' run --only 'doctor-launch,validate-*,suite-bar-1,suite-pinned-1' --only fault-trap
expect 'what is missing is skipped, a case too' '5 passed, 0 failed, 3 skipped, exit 0'
expect_json 'document["commit"] == "0123456789ab" and document["nvrtc"] == "13.0" and document["passed"] == 5'
expect_json 'steps["validate-bar"]["result"] == "skipped" and "libvulkan1" in steps["validate-bar"]["says"]'
expect_json 'steps["suite-bar-1"]["result"] == "skipped" and steps["suite-pinned-1"]["cases_skipped"] == 1'
expect_json 'steps["fault-trap"]["result"] == "passed"'

run --only compiled-ahead
expect 'the first replies of programs compiled ahead and not' '1 passed, 0 failed, 0 skipped, exit 0'
expect_json '"first replies: built-in compiled ahead 12.5 ms, built-in compiled 12.5 ms" in steps["compiled-ahead"]["says"]'
expect_json '"CUB compiled 12.5 ms, CUB found compiled 12.5 ms" in steps["compiled-ahead"]["says"]'
rm summary.json
BAR='loading libvulkan.so.1: install libvulkan1' run --only 'doctor-launch,validate-*,suite-bar-1,suite-pinned-1' --only fault-trap

run --only suite-unified-2 --only fault-null --only 'device-fault-pinned' --more
expect 'steps that fail fail, and those from before stay' '5 passed, 2 failed, 4 skipped, exit 1'
expect_json '"exit code 1" in steps["suite-unified-2"]["says"] and "last busy" in steps["fault-null"]["says"]'
expect_json 'steps["suite-pinned-1"]["result"] == "passed" and len(steps) == 10 and document["failed"] == 2'

BAR='testing device memory that the host writes (BAR1), zeroed: line 0' run --only 'suite-bar-1,validate-bar'
expect 'BAR that fails its own test is not skipped' '0 passed, 2 failed, 0 skipped, exit 1'

run --only 'suite-pinned-*'
expect 'a part of the suite that runs other cases than are listed fails' '2 passed, 1 failed, 1 skipped, exit 1'
expect_json 'steps["suite-pinned-2"]["result"] == "failed" and steps["suite-pinned-3"]["result"] == "passed"'

sed -i 's/0123456789ab/other/' summary.json
run --only suite-pinned-1 --more
expect 'steps of another commit are not mixed' '0 passed, 0 failed, 0 skipped, exit 2'

touch no_gpu
run --only 'suite-*'
expect 'without a GPU' '0 passed, 0 failed, 9 skipped, exit 77'
code=0
timeout 20 "$script" --bin bin --only nothing >out 2>err || code=$?
last="$(grep -c 'names no step' err)"
expect 'a step that is not there' '1, exit 2'

((failures == 0)) || exit 1
echo "gpu_test.sh counts as it documents"
