#!/usr/bin/env bash
# validate_test.sh GYRE: what `gyre validate` prints where, its JSON, and its exit codes.
set -euo pipefail
gyre="$(realpath "$1")"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
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
  timeout --kill-after=5 60 "$gyre" "$@" >out 2>err </dev/null || code=$?
}
expect_code() { [[ $code == "$1" ]] || fail "exit code $1" "$code; standard error: $(head -c 2000 err)"; }
expect_empty() { [[ ! -s $1 ]] || fail "nothing on std$1" "$(head -c 500 "$1")"; }
expect_in() { grep -qF -- "$2" "$1" || fail "«$2» on std$1" "$(head -c 2000 "$1")"; }

# Checks the JSON in file $1, of a CPU run with $2 messages in the random case; prints what is wrong.
check_json() {
  local wrong
  wrong="$(python3 - "$@" 2>&1 <<'PYTHON'
import json, sys

with open(sys.argv[1]) as file:
    document = json.load(file)
messages = int(sys.argv[2])
text, number, whole = str, (int, float), int
shape = {
    "engine": text, "device": text, "transport": text, "workers": whole, "region_bytes": whole, "uptime_s": number,
    "timings": {"compile_ms": number, "compiled_from_cache": bool, "compiled_ahead": bool, "launch_ms": number, "first_reply_ms": number, "terminate_ms": number},
    "cases": [{"name": text, "n": whole, "operation": text, "path": text, "passed": bool, "skipped": bool, "messages": whole,
               "send_ns": number, "receive_ns": number, "latency_ns": number}],
    "passed": whole, "failed": whole, "skipped": whole,
    "asks": {"accepted": whole, "answered": whole, "error_replies": whole, "timed_out": whole,
             "dead_letters": whole, "late_replies": whole},
    "tells": {"accepted": whole, "processed": whole, "dead_letters": whole},
}

def expect(what, expected, seen):
    if expected != seen:
        print(f"{what}: expected {expected}, seen {seen}")

def check(where, value, form):
    """Other keys than the form's are allowed."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return expect(where, "an object", value)
        for key, inner in form.items():
            if key in value:
                check(f"{where}.{key}", value[key], inner)
            else:
                expect(where, f"key {key}", f"only {', '.join(value)}")
    elif isinstance(form, list):
        if not isinstance(value, list) or not value:
            return expect(where, "a list that is not empty", value)
        for i, inner in enumerate(value):
            check(f"{where}[{i}]", inner, form[0])
    elif not isinstance(value, form) or (isinstance(value, bool) and form is not bool):
        expect(where, form, repr(value))
    elif form in (number, whole) and value < 0:
        expect(where, "0 or more", value)

check("$", document, shape)
asks, tells, cases = document["asks"], document["tells"], document["cases"]
expect("engine", "cpu", document["engine"])
expect("transport", "heap", document["transport"])
expect("cases that failed", [], [case for case in cases if not case["passed"]])
expect("passed", sum(case["passed"] for case in cases), document["passed"])
expect("failed and skipped", (0, 0), (document["failed"], document["skipped"]))
expect("messages of each random case", {messages},
       {case["messages"] for case in cases if case["name"].startswith("random sizes")})
expect("asks.accepted = answered + error_replies + timed_out + dead_letters",
       asks["answered"] + asks["error_replies"] + asks["timed_out"] + asks["dead_letters"], asks["accepted"])
expect("asks.timed_out and dead_letters", (0, 0), (asks["timed_out"], asks["dead_letters"]))
if not 0 < asks["error_replies"] < asks["answered"]:
    expect("asks.error_replies", "some, for the bad messages", asks["error_replies"])
for bad in ("truncated", "bits flipped", "bad handles", "unknown"):
    expect(f"a case of messages {bad}", True, any(case["name"].startswith(bad) for case in cases))
kinds = {"device", "pinned", "unified"}
expect("paths", {"inline", "arena", "-"} | kinds, {case["path"] for case in cases})
expect("a case of 2^20 elements", {"arena"} | kinds, {case["path"] for case in cases if case["n"] == 1 << 20})
expect("100 elements in buffers, every operation", {(kind, operation) for kind in kinds
       for operation in ("add", "subtract", "multiply", "divide")},
       {(case["path"], case["operation"]) for case in cases if case["n"] == 100 and case["path"] in kinds})
expect("asks.late_replies", 0, asks["late_replies"])
expect("tells.accepted = processed + dead_letters", tells["processed"] + tells["dead_letters"], tells["accepted"])
counted = sum(case["messages"] for case in cases)
if not counted <= asks["accepted"]:
    expect("asks.accepted", f"at least the {counted} messages of the cases", asks["accepted"])
PYTHON
  )" || true
  [[ -z $wrong ]] || fail "JSON as documented in std$1" "$wrong"
}

# JSON on standard output; the text then on standard error.
run validate --engine cpu --messages 2000 --json -
expect_code 0
check_json out 2000
expect_in err '0 failed'
expect_in err 'asks: '

# JSON in a file, the text on standard output; --slots makes it one launch.
run validate --engine cpu --messages 10 --slots 256 --json results.json
expect_code 0
if [[ -f results.json ]]; then check_json results.json 10; else fail 'a file results.json' "$(ls)"; fi
expect_in out '0 failed'
expect_in out 'three laps of 256 slots'
expect_empty err

run validate --engine cpu --messages 10 --slots 256 --json no-such-folder/results.json
expect_code 2
expect_in err 'no-such-folder/results.json'

# Bad usage: exit code 2, and the message on standard error alone says what is wrong.
bad_usage() {
  local says="$1"
  shift
  run "$@"
  expect_code 2
  expect_empty out
  expect_in err "$says"
}
bad_usage '--no-such-flag' validate --no-such-flag
bad_usage 'no-such-engine' validate --engine no-such-engine
bad_usage '--workers' validate --engine cpu --workers some
bad_usage '--slots 100' validate --slots 100
bad_usage '--slot-bytes 63' validate --slot-bytes 63
bad_usage '--block 1' validate --block 1
expect_in err 'multiple of 32'
bad_usage '--transport' validate --transport pinned --engine cpu
bad_usage '--slots 100' validate --slots 100 --block 1 # all that is wrong, at once
expect_in err '--block 1'
for number in nan -nan inf; do
  bad_usage "--atol: $number is no finite number" validate --against cpu --actors a.so --atol "$number"
  bad_usage "--rtol: $number is no finite number" validate --against cpu --actors a.so --rtol "$number"
  bad_usage "--interval: $number is no finite number" stat --watch --interval "$number"
done
bad_usage '--random' validate --against cpu --actors a.so --random 0
bad_usage 'subcommand' # none
bad_usage 'subcommand' no-such-command

run validate --help
expect_code 0
expect_in out '--engine'
expect_empty err

# A CUDA engine that cannot be had: no fall-back; the message says why and what to do.
if nvidia-smi >/dev/null 2>&1; then
  echo "there is a GPU: skipping the checks of a machine that has none"
else
  run validate --engine cuda
  expect_code 3
  expect_empty out
  expect_in err CUDA
  expect_in err install
  expect_in err '--engine cpu'
fi

if ((failures)); then
  echo "$failures checks failed"
  exit 1
fi
echo "ok"
