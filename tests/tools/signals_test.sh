#!/usr/bin/env bash
# signals_test.sh GYRE ENGINE [RUNS]: SIGINT at any moment of `gyre validate` ends it within 5 s, with exit code 130
# and nothing left behind: no process, nothing in /dev/shm. At launch, in the flood, at the drain, and at RUNS (default
# 30) random moments. Exit code 77, skipped, where this engine is not available.
set -euo pipefail
gyre="$(realpath "$1")"
engine="$2"
runs="${3:-30}"
limit_us=5000000     # to end after SIGINT
patience_us=60000000 # to reach a phase, and for a run that is not interrupted

dir="$(mktemp -d)"
pid=''
trap 'if [[ -n $pid ]]; then kill -KILL "$pid" "-$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
mkfifo "$dir/never"
exec {never}<>"$dir/never" # nothing is ever written to it: reading with a time-out is a sleep without a process

now_us() { REPLY="${EPOCHREALTIME/[.,]/}"; }
sleep_us() { read -r -t "$(printf '%d.%06d' $(($1 / 1000000)) $(($1 % 1000000)))" -u "$never" _ || true; }

fail() {
  echo "FAILED: $phase: $1"
  echo "--- what gyre printed:"
  cat "$dir/out"
  exit 1
}

is_gyre() { [[ "$(readlink "/proc/$pid/exe")" == "$gyre" ]]; }
group_lives() { kill -0 -- "-$pid" 2>/dev/null; }
printed() { mapfile -d '' -t text <"$dir/out" && [[ ${text[*]} == *"$1"* ]]; }

# Starts gyre validate with $1 messages in the random case, as a process group of its own.
start() {
  : >"$dir/out"
  shm_before="$(ls -A /dev/shm)"
  # A shell starts what runs in its background with SIGINT ignored.
  setsid env --default-signal=INT "$gyre" validate --engine "$engine" --slots 256 --messages "$1" >"$dir/out" 2>&1 &
  pid=$!
  until is_gyre || ! kill -0 "$pid" 2>/dev/null; do sleep_us 200; done
}

# Waits till condition $1 … holds; fails when gyre ends before.
wait_until() {
  now_us
  local deadline=$((REPLY + patience_us))
  until "$@"; do
    group_lives || "$@" || fail "gyre ended before: $*"
    now_us
    ((REPLY < deadline)) || fail "waited $((patience_us / 1000000)) s for: $*"
    sleep_us 200
  done
}

# True once the process is gyre and has blocked SIGINT: a thread of its own waits for it.
handles_interrupts() {
  local blocked
  is_gyre && blocked="$(sed -n 's/^SigBlk:\t*//p' "/proc/$pid/status")" && ((0x${blocked:-0} & 2))
}

# shellcheck disable=SC2012
new_in_shm() { REPLY="$(comm -13 <(sort <<<"$shm_before") <(ls -A /dev/shm | sort))"; [[ -n $REPLY ]]; }

# Interrupts gyre and checks that it ends in time and leaves nothing; its exit code is then in $code.
interrupt() {
  local begin
  now_us
  begin=$REPLY
  kill -INT "$pid" 2>/dev/null || true # it may have ended already
  while group_lives || new_in_shm; do
    now_us
    if ((REPLY - begin > limit_us)); then
      ! group_lives || fail "expected no process 5 s after SIGINT, and it still runs"
      ! new_in_shm || fail "expected /dev/shm as it was 5 s after SIGINT, and there is: $REPLY"
    fi
    sleep_us 500
  done
  now_us
  took_ms=$(((REPLY - begin) / 1000))
  code=0
  wait "$pid" 2>/dev/null || code=$?
  pid=''
}

expect_code() {
  [[ " $* " == *" $code "* ]] || fail "expected exit code ${*}, got $code"
}
expect_printed() { printed "$1" || fail "expected it to print «$1»"; }

code=0
timeout 60 "$gyre" validate --engine "$engine" --slots 256 --messages 1 >"$dir/out" 2>&1 || code=$?
if ((code == 3)); then
  echo "skipped: $(cat "$dir/out")"
  exit 77
fi

endless=4000000000 # messages: such a run ends by the signal or not at all

phase='launch, at the very start'
start $endless
interrupt
expect_code 130 # also what the shell says of a process that SIGINT killed, before the handler was there
echo "ok: $phase: $took_ms ms"

phase='launch, as soon as the handler is installed'
start $endless
wait_until handles_interrupts
interrupt
expect_code 130
expect_printed interrupted
echo "ok: $phase: $took_ms ms"

phase='just launched'
start $endless
wait_until printed 'launched'
interrupt
expect_code 130
expect_printed interrupted
expect_printed terminated
echo "ok: $phase: $took_ms ms"

phase='flood'
start $endless
wait_until printed 'three laps'
interrupt
expect_code 130
expect_printed 'random sizes'
expect_printed interrupted
expect_printed terminated
echo "ok: $phase: $took_ms ms"

phase='two signals'
start $endless
wait_until printed 'three laps'
kill -INT "$pid"
interrupt
expect_code 130
echo "ok: $phase: $took_ms ms"

# The drain follows the last row at once.
phase='drain'
for ((run = 0; run < 10; ++run)); do
  start 2000
  wait_until printed 'random sizes'
  interrupt
  expect_code 0 130
  echo "ok: $phase, run $run: exit $code, $took_ms ms"
done

# How long a whole run takes, and then signals within that time.
phase='not interrupted'
start 2000
now_us
begin=$REPLY
while group_lives; do
  now_us
  ((REPLY - begin < patience_us)) || fail "expected it to end within $((patience_us / 1000000)) s"
  sleep_us 200
done
wait "$pid" || fail "expected exit code 0, got $?"
now_us
run_us=$((REPLY - begin))
phase='random moment'
RANDOM=1
declare -A seen=()
for ((run = 0; run < runs; ++run)); do
  start 2000
  moment_us=$(((RANDOM << 15 | RANDOM) * run_us / (1 << 30)))
  sleep_us "$moment_us"
  phase="random moment, $moment_us us after the start"
  interrupt
  expect_code 0 130
  seen[$code]=$((${seen[$code]:-0} + 1))
done
echo "ok: $runs random moments of $((run_us / 1000)) ms: ${seen[0]:-0} ended before, ${seen[130]:-0} were interrupted"
