#!/usr/bin/env bash
# Runs everything that needs a GPU, and writes one summary file.
#   tools/gpu_test.sh --prepare DIR     where compilers are: builds preset gpu and fills DIR with what the rest needs
#   tools/gpu_test.sh [--bin DIR] [--out FILE.json] [--quick] [--only NAMES] [--more] [--logs DIR]
#                                       where the GPU is; without --bin it prepares build/gpu-test first
#   tools/gpu_test.sh --list            prints the steps
# DIR is carried to the machine with the GPU as it is: programs, actor libraries, the commit. That machine needs the
# driver, NVRTC, and the shared libraries that `ldd DIR/gyre` names; neither a compiler nor Cap'n Proto.
#   --out FILE    the summary; default bench/results/current/gpu-test.json
#   --quick       leaves out the steps that take minutes
#   --only NAMES  steps by name, as 'validate-*,fault-null'; repeatable
#   --more        keeps the steps that FILE already has of the same card and commit, and adds those that run now
#   --logs DIR    each step's output; default: a temporary folder, which stays where a step failed
# A step is skipped, with the reason, where the machine lacks what it needs: a second GPU, BAR, PyTorch, compute-sanitizer
# ($COMPUTE_SANITIZER, $PATH or the toolkit). Where a transport is there and fails its own test, the step fails.
# The last line is `N passed, N failed, N skipped`: steps, and with them each test case that a suite skipped.
# Exit: 0 none failed, 1 some failed, 2 bad usage, 77 no CUDA device here.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"

say() { echo "gpu_test: $*" >&2; }
usage() {
  say "$*; usage: tools/gpu_test.sh [--prepare DIR | --list | --bin DIR --out FILE --quick --only NAMES --more --logs DIR]"
  exit 2
}

bin='' out='' quick='' more='' logs='' prepare='' list='' only=()
while (($#)); do
  case "$1" in
    --bin | --out | --logs | --prepare | --only) (($# > 1)) || usage "$1 needs a value" ;;&
    --bin) bin=$2; shift ;;
    --out) out=$2; shift ;;
    --logs) logs=$2; shift ;;
    --prepare) prepare=$2; shift ;;
    --only) IFS=, read -ra names <<<"$2"; only+=("${names[@]}"); shift ;;
    --quick) quick=1 ;;
    --more) more=1 ;;
    --list) list=1 ;;
    *) usage "unknown argument $1" ;;
  esac
  shift
done

commit_of_tree() {
  local commit
  commit="$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null)" || return 1
  [[ -z $(git -C "$root" status --porcelain --untracked-files=no 2>/dev/null) ]] || commit+=" and changes"
  echo "$commit"
}

# Fills folder $1 with stripped programs of preset gpu, libraries of actors, and the commit they are of.
programs=(gyre gyre-engine gyre-gpu-tests gyre-gpu-fault gyre-gpu-relaunch gyre-gpu-process gyre-gpu-ahead example_faults)
prepare() {
  local to="$1" from="$root/build/gpu/bin" log
  (
    cd "$root"
    log="$(cmake --preset gpu 2>&1)" || { echo "$log" >&2; say "configuring preset gpu failed"; exit 1; }
    cmake --build --preset gpu --target "${programs[@]}" gyre_askers gyre_python_package -- --quiet >&2 || { say "building preset gpu failed"; exit 1; }
  )
  mkdir -p "$to"
  to="$(realpath "$to")"
  for program in "${programs[@]}"; do strip -o "$to/$program" "$from/$program"; done
  # For Python: shared libraries, with Cap'n Proto's beside them.
  strip -o "$to/libgyre.so" "$root/build/gpu/runtime/c/libgyre.so"
  strip -o "$to/libgyre_askers.so" "$root/build/gpu/tests/libgyre_askers.so"
  mkdir -p "$to/python"
  cp -rL "$root/build/gpu/python_package/gyre" "$to/python/"
  ldd "$to/libgyre.so" | awk '/libcapnp|libkj/ { print $3 }' | xargs cp -Lt "$to"
  library() {  # NAME.so, and what gyre validate --build-library gets
    local name="$1"
    shift
    "$from/gyre" validate --build-library "$to/$name" "$@" >&2  # beside capnpc-gyre, which compiles schemas
  }
  local debugging="$root/examples/debugging" tests="$root/tests"
  library good.so --actors "$debugging/good.hpp" --types debugging::Good --schema "$debugging/smooth.capnp"
  library wrong.so --actors "$debugging/wrong.hpp" --types debugging::Wrong --schema "$debugging/smooth.capnp"
  library mirror.so --actors "$tests/support/actors/mirror.hpp" --types gyre_test::Mirror --include "$tests" \
    --schema "$tests/messages/kinds.capnp" --schema "$tests/messages/kinds_enums.capnp"
  commit_of_tree >"$to/commit.txt" || echo unknown >"$to/commit.txt"
  say "$to has what a machine with a GPU needs beside this script: tools/gpu_test.sh --bin DIR"
}
if [[ $prepare ]]; then
  prepare "$prepare"
  exit
fi

transports=(bar pinned unified)
suite_parts=(1 2 3)  # each takes minutes, most of them to compile actors and to launch after each call that fails
faults=(none null trap check endless compile)
# name|in --quick too
steps=(doctor-launch:quick)
for transport in "${transports[@]}"; do steps+=("validate-$transport:quick"); done
for fault in "${faults[@]}"; do steps+=("fault-$fault:quick"); done
for transport in "${transports[@]}"; do steps+=("device-fault-$transport:quick"); done
for transport in bar pinned; do
  steps+=("relaunch-$transport:quick" "kills-$transport:quick" "together-$transport:quick" "programs-$transport:quick")
done
for transport in "${transports[@]}"; do steps+=("against-cpu-$transport:quick"); done
steps+=(compiled-ahead:quick beside-torch:quick tensors:quick networks:quick against-cpu-finds-a-wrong-actor:quick)
for part in "${suite_parts[@]}"; do steps+=("suite-bar-$part:quick"); done
for transport in pinned unified; do
  for part in "${suite_parts[@]}"; do steps+=("suite-$transport-$part:"); done
done
steps+=(signals:quick
  million-actors: grid-sums: grid-barriers: launch-time:quick memcheck-pinned:quick memcheck-bar: racecheck-pinned:
  racecheck-unified:)
if [[ $list ]]; then
  printf '%s\n' "${steps[@]%%:*}"
  exit
fi

if [[ -z $bin ]]; then
  bin="$root/build/gpu-test"
  prepare "$bin"
fi
bin="$(realpath "$bin")"
for program in "${programs[@]}"; do
  [[ -x $bin/$program ]] || usage "--bin $bin has no program $program; fill it by tools/gpu_test.sh --prepare DIR"
done

# Whether the step $1 was asked for.
selected() {
  local pattern
  if ((${#only[@]})); then
    for pattern in "${only[@]}"; do
      # shellcheck disable=SC2053
      [[ $1 == $pattern ]] && return 0
    done
    return 1
  fi
  [[ -z $quick || " ${steps[*]} " == *" $1:quick "* ]]
}
for pattern in "${only[@]}"; do
  for step in "${steps[@]}"; do
    # shellcheck disable=SC2053
    [[ ${step%%:*} == $pattern ]] && continue 2
  done
  usage "--only $pattern names no step; --list prints them"
done

passed=0 failed=0 skipped=0 results=()
trap 'echo "$passed passed, $failed failed, $skipped skipped"' EXIT  # however it ends

if (($(timeout 60 "$bin/gyre-gpu-tests" --list-tests >/dev/null 2>&1; echo $?) == 77)); then
  for step in "${steps[@]}"; do
    if selected "${step%%:*}"; then skipped=$((skipped + 1)); fi
  done
  say "no CUDA device here: every step is skipped"
  exit 77
fi

# A JSON string of $1.
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  text=${text//$'\n'/ }
  text=${text//$'\t'/ }
  printf '"%s"' "$(tr -d '\000-\037' <<<"$text")"
}

card='' driver=''
if card="$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null)"; then
  driver="$(nvidia-smi --query-gpu=driver_version --format=csv,noheader | sed -n 1p)"
  gpus="$(wc -l <<<"$card")"
  card="$(sed -n 1p <<<"$card")"
fi
doctor="$(timeout 120 "$bin/gyre" doctor 2>&1 || true)"
commit="$(cat "$bin/commit.txt" 2>/dev/null || commit_of_tree || echo unknown)"
cuda="$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' || true)"
nvrtc="$(sed -n 's/.*NVRTC \([0-9.]*[0-9]\).*/\1/p' <<<"$doctor" | head -1)"
out="${out:-$root/bench/results/current/gpu-test.json}"
keep_logs=1
if [[ -z $logs ]]; then
  logs="$(mktemp -d)"
  keep_logs=''
fi
mkdir -p "$logs" "$(dirname "$out")"
heading="  \"card\": $(quoted "$card"),
  \"cards\": ${gpus:-1},
  \"driver\": $(quoted "$driver"),
  \"cuda_of_driver\": $(quoted "$cuda"),
  \"nvrtc\": $(quoted "$nvrtc"),
  \"commit\": $(quoted "$commit"),"

write_summary() {
  local n
  {
    printf '{\n%s\n' "$heading"
    printf '  "date": "%s",\n' "$(date -u +%FT%TZ)"
    printf '  "passed": %d,\n  "failed": %d,\n  "skipped": %d,\n' "$passed" "$failed" "$skipped"
    printf '  "doctor": [\n'
    sed -e '/^ *$/d' -e "s#$bin/#bin/#g" <<<"$doctor" | while IFS= read -r line; do printf '    %s,\n' "$(quoted "$line")"; done | sed '$ s/,$//'
    printf '  ],\n  "steps": [\n'
    for ((n = 0; n < ${#results[@]}; ++n)); do
      printf '    %s%s\n' "${results[n]}" "$([[ $n == $((${#results[@]} - 1)) ]] || echo ,)"
    done
    printf '  ]\n}\n'
  } >"$out.new"
  mv "$out.new" "$out"
}

# Counts the step $1 with result $2, $3 seconds, what it says $4 and how many cases it skipped $5.
note() {
  case "$2" in
    passed) passed=$((passed + 1)) ;;
    failed) failed=$((failed + 1)) ;;
    skipped) skipped=$((skipped + 1)) ;;
  esac
  skipped=$((skipped + ${5:-0}))
  results+=("{\"name\": $(quoted "$1"), \"result\": \"$2\", \"seconds\": $3, \"cases_skipped\": ${5:-0}, \"says\": $(quoted "$4")}")
  printf '%-8s %-34s %7s s  %s\n' "$2" "$1" "$3" "$4"
  write_summary
}

if [[ $more && -f $out ]]; then
  if [[ $(<"$out") != "{"$'\n'"$heading"* ]]; then
    usage "--more: $out is of another card, driver or commit"
  fi
  while IFS= read -r line; do
    line="${line#"    "}"
    line="${line%,}"
    name="$(sed 's/^{"name": "\([^"]*\)".*/\1/' <<<"$line")"
    if selected "$name"; then continue; fi
    case "$line" in
      *'"result": "passed"'*) passed=$((passed + 1)) ;;
      *'"result": "failed"'*) failed=$((failed + 1)) ;;
      *) skipped=$((skipped + 1)) ;;
    esac
    skipped=$((skipped + $(sed 's/.*"cases_skipped": \([0-9]*\).*/\1/' <<<"$line")))
    results+=("$line")
  done < <(grep '^    {"name": ' "$out")
fi

# What a step's output must have, each a regular expression; what its exit code must be. Both hold for the next step.
expected=() wanted=0

# Runs the step $1, for at most $2 seconds: the command that follows. Exit code 77 is a step that was skipped.
step() {
  local name=$1 limit=$2 code=0 result=passed says missing='' begin end cases pattern
  shift 2
  if selected "$name"; then
    local log="$logs/$name.log"
    [[ ! -t 2 ]] || printf 'running  %s\r' "$name" >&2
    begin=$EPOCHREALTIME
    timeout --kill-after=10 "$limit" "$@" >"$log" 2>&1 </dev/null || code=$?
    end=$EPOCHREALTIME
    cases="$(grep -c '^skipped case: ' "$log" || true)"
    says="$(grep -E '^(All tests passed|test cases:|skipped|✗|[0-9]+ passed|gyre::Error|gyre: )' "$log" | tail -1 || true)"
    for pattern in "${expected[@]}"; do
      if ! grep -qE -- "$pattern" "$log"; then missing+=" «$pattern»"; fi
    done
    if ((code == 77)); then
      result=skipped
      cases=0
    elif ((code == 124 || code == 137)) && ((code != wanted)); then
      result=failed
      says="it ran past $limit s"
    elif ((code != wanted)); then
      result=failed
      says="exit code $code, $wanted expected; $says"
    elif [[ $missing ]]; then
      result=failed
      says="its output lacks$missing"
    fi
    [[ $result != failed ]] || tail -n 40 "$log" | sed 's/^/    | /'
    note "$name" "$result" "$(awk -v a="${begin/,/.}" -v b="${end/,/.}" 'BEGIN { printf "%.1f", b - a }')" "$says" "$cases"
  fi
  expected=() wanted=0
}
skip() {
  if selected "$1"; then note "$1" skipped 0 "$2" 0; fi
  expected=() wanted=0
}

# How a transport is asked for: unified memory is in process only.
transport_options() {
  if [[ $1 == unified ]]; then echo '--transport unified --isolation in_process'; else echo "--transport $1"; fi
}
export -f transport_options

# Fills $missing: why the transport $1 is not on this machine; empty where it is, be it that it fails its test.
declare -A known_missing
find_missing() {
  if [[ -z ${known_missing[$1]+known} ]]; then
    local said code=0
    # shellcheck disable=SC2046
    said="$(timeout 120 "$bin/gyre" validate --engine cuda $(transport_options "$1") --messages 1 2>&1 >/dev/null)" || code=$?
    if ((code != 3)) || [[ $said == *"testing device memory that the host writes"* ]]; then said=''; fi
    known_missing[$1]="$said"
  fi
  missing="${known_missing[$1]}"
}
# A step as above, on the transport $1.
step_on() {
  local transport=$1 missing
  if ! selected "$2"; then
    step "$2" 1 true
    return
  fi
  find_missing "$transport"
  if [[ $missing ]]; then skip "$2" "$missing"; else step "${@:2}"; fi
}

say "on ${card:-a GPU}, commit $commit; the summary goes to $out"
expected=('^ok +smallest kernel')
step doctor-launch 120 "$bin/gyre" doctor --launch

for transport in "${transports[@]}"; do
  expected=('^[1-9][0-9]* passed, 0 failed')
  # shellcheck disable=SC2046
  step_on "$transport" "validate-$transport" 300 "$bin/gyre" validate --engine cuda $(transport_options "$transport")
done

# What a sender sees of each fault: its code, and the worker's last words.
last_words='last busy with faults::Faulty, key 3, message Provoke'
balance='the books balance$'
expected=('^afterwards: survived 4 times' "$balance")
step fault-none 60 "$bin/example_faults" none
expected=('^(the fault|behind it), .*engine_failed' 'CUDA_ERROR_ILLEGAL_ADDRESS' "$last_words" "state failed.*$balance")
step fault-null 60 "$bin/example_faults" null
expected=('^(the fault|behind it), .*engine_failed' 'CUDA_ERROR_LAUNCH_FAILED' "$last_words" "state failed.*$balance")
step fault-trap 60 "$bin/example_faults" trap
expected=('check_failed: .*faults/faulty.hpp line [0-9]+' '^afterwards: survived 3 times' "$balance")
step fault-check 60 "$bin/example_faults" check
expected=('^afterwards, .*timed_out' 'a worker is stuck' "$balance")
step fault-endless 60 "$bin/example_faults" endless
expected=('NVRTC_ERROR_COMPILATION' 'has no member "number_of_faults"')
wanted=1
step fault-compile 60 "$bin/example_faults" compile
for transport in "${transports[@]}"; do
  step_on "$transport" "device-fault-$transport" 120 "$bin/gyre-gpu-fault" "$transport"
done
for transport in bar pinned; do  # an engine process dies in each way; its program is killed; two share the GPU
  step_on "$transport" "relaunch-$transport" 240 "$bin/gyre-gpu-relaunch" "$transport" 10
  step_on "$transport" "kills-$transport" 120 "$bin/gyre-gpu-process" kills "$transport" 20
  step_on "$transport" "together-$transport" 60 "$bin/gyre-gpu-process" together "$transport" 5
  step_on "$transport" "programs-$transport" 60 "$bin/gyre-gpu-process" programs "$transport" 5
done

# Programs compiled ahead where neither NVRTC nor the toolkit can be found, and the first reply beside that of programs
# whose actors are compiled at launch, or found in the cache.
hide_toolkit() {  # runs its arguments where NVRTC's files are empty, and the toolkit's folder too
  unset CUDA_HOME GYRE_CUDA_PATH
  local libraries="$hidden/libraries" script='
    set -e
    { ldconfig -p | sed -n "s/.*=> \(.*libnvrtc.*\)/\1/p"; ls -d ${LD_LIBRARY_PATH//:/\/libnvrtc* }/libnvrtc* 2>/dev/null || true; } |
      xargs -r realpath -q | sort -u | while IFS= read -r file; do mount --bind /dev/null "$file"; done
    if [[ -d /usr/local/cuda ]]; then mount --bind "$1" "$(realpath /usr/local/cuda)"; fi
    exec "${@:2}"'
  if unshare -m true 2>/dev/null; then
    unshare -m bash -c "$script" _ "$hidden/empty" "$@"
  elif unshare -Urm true 2>/dev/null; then
    unshare -Urm bash -c "$script" _ "$hidden/empty" "$@"
  else  # the linker takes these in place of those that the system has; not of what lies in /usr/local/cuda
    mkdir -p "$libraries"
    touch "$libraries"/libnvrtc.so.1{2,3}
    LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" "$@"
  fi
}
first_replies() {  # of each set of actors, by where its machine code comes from
  local subject
  for subject in '' groups halves matrices cub; do
    # shellcheck disable=SC2086
    hide_toolkit "$bin/gyre-gpu-ahead" ahead $subject hidden
    # shellcheck disable=SC2086
    "$bin/gyre-gpu-ahead" compiled $subject
    # shellcheck disable=SC2086
    "$bin/gyre-gpu-ahead" cached $subject
  done
}
if selected compiled-ahead; then
  export bin
  hidden="$(mktemp -d)"
  mkdir "$hidden/empty"
  export hidden
  export -f hide_toolkit first_replies
  for what in built-in 'cooperative groups' 'fp16 and bf16' 'tensor cores' CUB; do
    expected+=("^$what, compiled ahead: " "^$what, compiled: " "^$what, found compiled: ")
  done
  step compiled-ahead 400 bash -c "set -eo pipefail
    export GYRE_CACHE_DIR='$hidden/cache'
    first_replies | tee '$hidden/said'
    sed -n 's/^\(.*\), \(.*\): the first reply came \(.*\) after the program began.*/\1 \2 \3/p' '$hidden/said' |
      paste -sd, | sed 's/,/, /g; s/^/15 passed, first replies: /'"
  rm -rf "$hidden"
fi

if ! selected beside-torch; then
  :
elif [[ ! -f $bin/libgyre_askers.so ]]; then
  skip beside-torch "$bin has no libgyre_askers.so; tools/gpu_test.sh --prepare makes it"
elif ! python3 -c 'import torch' 2>/dev/null; then
  skip beside-torch 'PyTorch is not installed'
else  # the first run compiles
  step beside-torch 300 bash -c "set -e
    export GYRE_LIBRARY='$bin/libgyre.so' GYRE_ASKERS='$bin/libgyre_askers.so' GYRE_ENGINE='$bin/gyre-engine'
    export LD_LIBRARY_PATH='$bin'\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
    cd '$logs'
    for order in alone alone torch-first gyre-first; do
      python3 '$root/tests/gpu/beside_torch.py' --out \$order.json --order \$order
    done
    python3 '$root/tests/gpu/beside_torch.py' --compare alone.json torch-first.json gyre-first.json"
fi

# Device memory of the driver, and tensors of the packages that are installed, as buffers.
if ! selected tensors; then
  :
elif [[ ! -f $bin/libgyre.so ]]; then
  skip tensors "$bin has no libgyre.so; tools/gpu_test.sh --prepare makes it"
elif ! python3 -c 'import numpy' 2>/dev/null; then
  skip tensors 'NumPy is not installed'
else
  step tensors 600 env GYRE_LIBRARY="$bin/libgyre.so" GYRE_ENGINE="$bin/gyre-engine" \
    LD_LIBRARY_PATH="$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" python3 "$root/tests/gpu/tensors.py"
fi

# Networks that PyTorch trains, as actors, against PyTorch's own scores.
if ! selected networks; then
  :
elif [[ ! -f $bin/libgyre.so ]]; then
  skip networks "$bin has no libgyre.so; tools/gpu_test.sh --prepare makes it"
elif ! python3 -c 'import numpy, torch' 2>/dev/null; then
  skip networks 'NumPy or PyTorch is not installed'
else
  step networks 600 env GYRE_LIBRARY="$bin/libgyre.so" GYRE_ENGINE="$bin/gyre-engine" \
    PYTHONPATH="$bin/python" LD_LIBRARY_PATH="$bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    python3 "$root/examples/inference/mlp.py"
fi

# The CPU's answers and CUDA's, of actors that read and write every kind of field, and of one that computes.
if [[ -f $bin/mirror.so && -f $bin/good.so && -f $bin/wrong.so ]]; then
  against() { "$bin/gyre" validate --engine cuda --against cpu "$@"; }
  export -f against
  export bin
  smooth='--block 128 --list-length 300 --max-reply-bytes 4096 --keys 4'
  for transport in "${transports[@]}"; do
    expected=('^✓ 5000 messages .* 0 not$' '^✓ 1000 messages .* 0 not$')
    step_on "$transport" "against-cpu-$transport" 300 bash -c "set -e
      against $(transport_options $transport) --actors $bin/mirror.so --random 5000 --any-bits --max-reply-bytes 65536
      against $(transport_options $transport) --actors $bin/good.so $smooth"
  done
  expected=('^✗ 1000 messages .* [1-9][0-9]* not$')
  wanted=1
  step against-cpu-finds-a-wrong-actor 120 bash -c "against --actors $bin/wrong.so $smooth"
else
  for step in against-cpu-bar against-cpu-pinned against-cpu-unified against-cpu-finds-a-wrong-actor; do
    skip $step "$bin has no actor libraries; tools/gpu_test.sh --prepare makes them"
  done
fi

# Runs every $2th case of the suite, from the one numbered $1 on. Fails where other than those ran.
part_of_suite() {
  local program="$bin/gyre-gpu-tests" listed
  if "$program" --help | grep -q -- --shard-count; then  # Catch2 3
    "$program" --durations yes --shard-count "$2" --shard-index "$(($1 - 1))"
    return
  fi
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  # The exit code is the number of cases listed. A comma ends a name, also in quotes.
  { "$program" --list-test-names-only || true; } | awk "NR % $2 == $1 % $2" | sed 's/,/\\,/g' >"$folder/names"
  "$program" --durations yes --input-file "$folder/names" | tee "$folder/said"
  listed="$(wc -l <"$folder/names")"
  grep -qE "^All tests passed .* in $listed test cases?\)" "$folder/said" || { echo "other than the $listed cases listed ran"; exit 1; }
}
export -f part_of_suite
for transport in "${transports[@]}"; do
  for part in "${suite_parts[@]}"; do
    expected=('^All tests passed')
    step_on "$transport" "suite-$transport-$part" 400 env bin="$bin" GYRE_TEST_TRANSPORT="$transport" \
      bash -c "set -eo pipefail; part_of_suite $part ${#suite_parts[@]}"
  done
done
step signals 300 "$root/tests/tools/signals_test.sh" "$bin/gyre" cuda
expected=('^All tests passed')
step million-actors 300 "$bin/gyre-gpu-tests" '[million]'
expected=('^All tests passed')
step grid-sums 300 "$bin/gyre-gpu-tests" '[grid-sums]'
expected=('^All tests passed')
step grid-barriers 120 "$bin/gyre-gpu-tests" '[barriers]'
expected=('^All tests passed')
step launch-time 120 "$bin/gyre-gpu-tests" '[launch-time]'

# compute-sanitizer knows the memory that there was when a kernel was launched. So it gets actors without buffers:
# `gyre validate` of the built-in actors and the suites allocate buffers beside live workers, and memcheck would call
# each access to them out of bounds. API errors are not reported: launching asks the driver for some on purpose
# (cuFuncGetParamInfo until it has no more). racecheck looks at shared memory alone, of all transports.
sanitizer="${COMPUTE_SANITIZER:-}"
if [[ -z $sanitizer ]]; then
  for candidate in compute-sanitizer "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
    "${CUDA_HOME:-/usr/local/cuda}/compute-sanitizer/compute-sanitizer"; do
    if command -v "$candidate" >/dev/null; then sanitizer=$candidate; break; fi
  done
fi
# racecheck reads machine code, from which ptxas takes each __syncwarp() that it proves needless: of a block of one warp
# it warns of hazards that the source orders. In a block of four warps barriers stay, and a race between warps is an
# error, so only errors count. It looks at the process that it starts.
checked() {  # TOOL TRANSPORT
  local options=(--error-exitcode 9) block=32
  expected=('ERROR SUMMARY: 0 errors' '^✓ 200 messages .* 0 not$')
  if [[ $1 == racecheck ]]; then
    options=() block=128
    expected=('RACECHECK SUMMARY: [0-9]+ hazards? displayed \(0 errors' '^✓ 200 messages .* 0 not$')
  fi
  step_on "$2" "$1-$2" 400 "$sanitizer" --tool "$1" --report-api-errors no "${options[@]}" \
    "$bin/gyre" validate --engine cuda --against cpu --isolation in_process --transport "$2" --block "$block" --timeout 120000 \
    --actors "$bin/mirror.so" --random 200 --max-reply-bytes 65536
}
for step in memcheck:pinned memcheck:bar racecheck:pinned racecheck:unified; do
  if [[ -z $sanitizer ]]; then
    skip "${step/:/-}" 'compute-sanitizer is not installed'
  elif [[ ! -f $bin/mirror.so ]]; then
    skip "${step/:/-}" "$bin has no actor libraries; tools/gpu_test.sh --prepare makes them"
  else
    checked "${step%:*}" "${step#*:}"
  fi
done

if ((failed)) || [[ $keep_logs ]]; then say "logs are in $logs"; else rm -rf "$logs"; fi
say "the summary is in $out"
((failed == 0)) || exit 1
