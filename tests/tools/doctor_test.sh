#!/usr/bin/env bash
# doctor_test.sh GYRE SOURCE_DIR GENERATED_DIR WITH_CUDA: what `gyre doctor` and `gyre errors` say, their JSON, and their
# exit codes, on a machine without a GPU; on one with a GPU only what does not depend on it.
set -euo pipefail
gyre="$(realpath "$1")"
source_dir="$(realpath "$2")"
generated_dir="$(realpath "$3")"
with_cuda="$4"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
unset GYRE_CACHE_DIR GYRE_ENGINE
export CUDA_MPS_PIPE_DIRECTORY="$dir/mps"
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
expect_not_in() { ! grep -qE -- "$2" "$1" || fail "no «$2» on std$1" "$(head -c 3000 "$1")"; }
# An expression on the JSON in file $1, which is `document` there.
expect_json() {
  python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" 2>/dev/null || fail "JSON with $2" "$(head -c 3000 "$1")"
}
# An actor that NVRTC takes, with no includes but a sibling's and Gyre's own.
write_actor() {
  mkdir -p actors
  cat >actors/half.hpp <<'ACTOR'
#pragma once
#include <gyre/device/builtin/echo.hpp>
#include "sibling.hpp"
namespace mine {
struct Half : gyre::actors::Echo {
  unsigned int state[sibling_words];
};
}  // namespace mine
ACTOR
  echo 'constexpr int sibling_words = 100;' >actors/sibling.hpp
}

# Errors: no GPU is needed.
run errors 700
expect_code 0
expect_in out '^CUDA_ERROR_ILLEGAL_ADDRESS \(700\), CUDA driver$'
expect_in out 'means: .*null'
expect_in out 'check: .*compute-sanitizer'
run errors 1 # a number of three sources
expect_in out '^ring_full \(1\), Gyre$'
expect_in out '^CUDA_ERROR_INVALID_VALUE \(1\)'
expect_in out '^NVRTC_ERROR_OUT_OF_MEMORY \(1\)'
expect_not_in out 'timed_out'
run errors timed_out
expect_in out '^timed_out \(20\), Gyre$'
run errors
expect_code 0
[[ $(wc -l <out) == $(grep -cE '^\| `' "$source_dir/docs/reference/errors.md") ]] || fail "as many as docs/reference/errors.md has" "$(wc -l <out)"
run errors 123456
expect_code 2
expect_in err '123456'

run doctor --help
expect_code 0
for option in --launch --actors --grid --block --shared --cluster --architecture --json; do
  expect_in out " $option "
done
run doctor --json no-such-folder/findings.json
expect_code 2
expect_in err 'no-such-folder/findings.json'
run doctor --architecture hopper
expect_code 2
expect_in err 'hopper.*sm_90'
run doctor --actors no-such-file.hpp --types my::Counter
expect_code 2
expect_in err 'no-such-file.hpp'
run doctor --launch --grid 3
expect_code 2

if nvidia-smi >/dev/null 2>&1; then
  echo "there is a GPU: skipping the checks of a machine that has none"
  run doctor --launch --json findings.json
  expect_in out '^ok +driver +libcuda of CUDA [0-9]+\.[0-9]+$'
  expect_in out '^ok +device 0 +.*compute capability [0-9]+\.[0-9], [0-9]+ multiprocessors, [0-9]+ MiB$'
  expect_in out '^ok +smallest kernel +compiled in .* wrote its word'
  expect_in out '^ok +gyre-engine +/.*/gyre-engine, of this Gyre'
  expect_in out 'the CUDA engine can be launched'
  expect_json findings.json 'document["cuda_usable"] is True'
  expect_code "$(python3 -c 'import json; print(min(json.load(open("findings.json"))["bad"], 1))')"
  run doctor --grid 2 --block 64 --json verdict.json
  expect_code 0
  expect_in out '^verdict: it can be launched$'
  expect_json verdict.json 'document["verdict"]["kernel"]["max_grid"] >= 2'
  run doctor --grid 100000 --block 1
  expect_code 1
  expect_in out '1 threads a block: must be a multiple of 32'
  expect_in out 'a grid of 100000 blocks: [0-9]+ blocks of 32 threads can be resident'
  expect_in out 'a grid of at most [0-9]+ blocks of 32 threads'
else
  # Alone: a line each, and what is missing.
  XDG_CACHE_HOME="$dir/cache" run doctor --json findings.json
  expect_code 3
  expect_in out '^ok +processor +[0-9]+ processors, with AVX$|^warn +processor +1 processor'
  expect_in out '^(ok|warn) +memory +[0-9]+ MiB of [0-9]+ MiB available$'
  expect_in out '^(ok|warn) +locked memory +(unlimited|limited to [0-9]+ KiB)$'
  expect_in out "^ok +cached kernels +$dir/cache/gyre \(will be made\)\$"
  expect_in out 'the CUDA engine cannot be launched here; the CPU engine \(--engine cpu\) works$'
  expect_json findings.json 'document["cuda_usable"] is False'
  expect_json findings.json 'document["bad"] == sum(check["health"] == "bad" for check in document["checks"]) > 0'
  expect_json findings.json 'all(check["remedy"] for check in document["checks"] if check["health"] in ("bad", "warn"))'
  if [[ $with_cuda == ON ]]; then
    expect_in out '^bad +kernel module +.*the NVIDIA driver is not loaded$'
    expect_in out '^bad +device files +/dev has 0 of nvidia0'
    expect_in out '^bad +driver +loading the CUDA driver: libcuda.so.1 was not found; install'
    expect_in out '^ +→ until then --engine cpu works$'
    expect_in out '^ok +gyre-engine +/.*/gyre-engine, of this Gyre \([0-9.]+\)$'
    expect_in out "^ok +MPS +does not run \\($dir/mps/control\\): .* takes turns .*a device fault ends one process alone\$"
    expect_in out '^ +→ nvidia-cuda-mps-control -d starts it'
    expect_in out '^(ok|warn) +toolkit +NVRTC [0-9]+\.[0-9]+; Gyre was built with the headers of CUDA|^bad +toolkit +loading NVRTC'
  else
    expect_in out '^bad +toolkit +this Gyre was built without the CUDA toolkit$'
  fi

  if [[ $with_cuda == ON ]]; then
    # A socket that nobody has open any more, and one that somebody has.
    mkdir -p mps
    python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("mps/control")'
    run doctor
    expect_in out '^ok +MPS +does not run'
    rm mps/control
    python3 -c 'import socket, time
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind("mps/control")
listener.listen()
time.sleep(300)' &
    daemon=$!
    for _ in $(seq 100); do [[ -S mps/control ]] && break || sleep 0.1; done
    run doctor
    expect_in out "^ok +MPS +runs \\($dir/mps/control\\): .*a device fault of one ends them all\$"
    kill "$daemon"
    rm mps/control
    # A program gyre-engine that is not there, and one of another Gyre.
    GYRE_ENGINE=/nowhere/gyre-engine run doctor --json findings.json
    expect_in out '^(warn|bad) +gyre-engine +.*there is no program gyre-engine at /nowhere/gyre-engine'
    expect_json findings.json '[check["remedy"] != "" for check in document["checks"] if check["what"] == "gyre-engine"] == [True]'
    GYRE_ENGINE=/bin/true run doctor
    expect_in out '^(warn|bad) +gyre-engine +.*/bin/true did not say which Gyre it is of'
  fi

  # The folder of cached kernels.
  mkdir -m 755 -p cache/gyre
  XDG_CACHE_HOME="$dir/cache" run doctor
  expect_in out "^warn +cached kernels +$dir/cache/gyre has mode 0755"
  expect_in out "^ +→ chmod 700 $dir/cache/gyre\$"
  chmod 700 cache/gyre
  XDG_CACHE_HOME="$dir/cache" run doctor
  expect_in out "^ok +cached kernels +$dir/cache/gyre\$"
  HOME= XDG_CACHE_HOME= run doctor
  expect_in out '^warn +cached kernels +none of GYRE_CACHE_DIR, XDG_CACHE_HOME and HOME is an absolute path'
  GYRE_CACHE_DIR="$dir/own" XDG_CACHE_HOME="$dir/cache" run doctor
  expect_in out "^ok +cached kernels +$dir/own \(will be made\)\$"

  # JSON on standard output, the text on standard error.
  run doctor --launch --json -
  expect_code 3
  expect_in err '^bad +smallest kernel'
  expect_json out '[check["health"] for check in document["checks"] if check["what"] == "smallest kernel"] == ["bad"]'

  run doctor --grid 5 --json verdict.json
  expect_code 3
  expect_in out '^verdict: it cannot be launched$'
  expect_json verdict.json 'document["verdict"]["ok"] is False and document["verdict"]["grid"] == 5'
  if [[ $with_cuda == ON ]]; then
    run doctor --grid 6 --block 33 --cluster 4
    expect_code 3
    expect_in out '33 threads a block: must be a multiple of 32'
    expect_in out 'a grid of 6 blocks in clusters of 4: it must be a multiple of that'
  fi

  if [[ $with_cuda == ON ]] && ! grep -q '^bad *toolkit' <("$gyre" doctor); then
    # Plans for a GPU that is not here: as far as compiling tells.
    run doctor --grid 12 --block 256 --cluster 4 --architecture sm_90 --json verdict.json
    expect_code 0
    expect_in out 'compiled for compute capability 9.0: [0-9]+ registers'
    expect_in out '^verdict: nothing wrong as far as it could be checked$'
    expect_in out 'there is no device here$'
    expect_json verdict.json '16 < document["verdict"]["kernel"]["registers"] <= 255'
    expect_json verdict.json '"max_grid" not in document["verdict"]["kernel"]'
    write_actor
    run doctor --actors actors/half.hpp --types mine::Half --grid 10 --block 2048 --cluster 16 --architecture 80
    expect_code 1
    expect_in out '2048 threads a block: the device allows 1024'
    expect_in out 'clusters of 16 blocks: the device has no clusters'
    expect_in out 'clusters of 16 blocks: at most 8'
    expect_in out '10 blocks in clusters of 16'

    # Actors of a file: includes beside it and in folders that are named.
    run doctor --actors actors/half.hpp --architecture sm_90
    expect_code 2
    expect_in err '--types'
    run doctor --actors actors/half.hpp --types mine::Half --architecture sm_90
    expect_code 0
    expect_in out 'kernel gyre::worker_kernel<mine::Half>$'
    expect_in out '[1-9][0-9]+ registers'
    run doctor --actors "$source_dir/examples/messages/summary.hpp" --types station::Summary \
      --include "$generated_dir" --architecture sm_120 --block 128
    expect_code 0
    expect_in out 'kernel gyre::worker_kernel<station::Summary>$'
    expect_in out 'compiled for compute capability 12.0'
    echo 'constexpr int sibling_words = undeclared;' >actors/sibling.hpp
    run doctor --actors actors/half.hpp --types mine::Half --architecture sm_90
    expect_code 1
    expect_in out 'identifier "undeclared" is undefined'
    expect_in out 'sibling.hpp\(1\)'
  fi
fi

if ((failures)); then
  echo "$failures checks failed"
  exit 1
fi
echo "ok"
