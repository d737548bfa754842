#!/usr/bin/env bash
# gyre stat beside gyre-bench throughput: what it prints and what its JSON holds, and what it says where nothing is.
# usage: stat_test.sh GYRE GYRE_BENCH COUNTING_PROGRAM
set -euo pipefail
gyre=$(realpath "$1") bench=$(realpath "$2") counting=$(realpath "$3")
dir=$(mktemp -d)
pid=
trap 'if [[ -n $pid ]]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
export GYRE_STATS_DIR=$dir/stats
fail() { echo "stat_test: $1" >&2; shift; printf '%s\n' "$@" >&2; exit 1; }

code=0
"$gyre" stat >"$dir/out" 2>"$dir/err" || code=$?
[[ $code -eq 1 ]] || fail "with no runtime it exits with $code, not 1" "$(cat "$dir/err")"
grep -q "no runtime publishes its stats in $GYRE_STATS_DIR" "$dir/err" || fail "no word of the folder" "$(cat "$dir/err")"

"$bench" throughput --engine cpu --workers 2 --tells --messages 100000000 --timeout 60000 --stats >/dev/null 2>&1 &
pid=$!
# Until a runtime has said that it handled something; the test's time-out bounds it.
handled='import json, sys
runtimes = json.load(sys.stdin)
sys.exit(0 if any(h["processed"] for r in runtimes for w in r["workers"] for h in w["handlers"]) else 1)'
until "$gyre" stat "$pid" --json - 2>/dev/null >"$dir/json" && python3 -c "$handled" <"$dir/json"; do
  kill -0 "$pid" 2>/dev/null || fail "the benchmark ended before it could be watched"
done
python3 - "$dir/json" "$pid" <<'PYTHON' || fail "the JSON is not what is documented" "$(head -c 3000 "$dir/json")"
import json, sys
runtime = json.load(open(sys.argv[1]))[-1]
assert runtime["pid"] == int(sys.argv[2]) and runtime["process_there"] and not runtime["stale"]
assert runtime["engine"] == "cpu" and runtime["transport"] == "heap" and runtime["slots"] == 256
assert runtime["memory"]["region"] > 1 << 20 and runtime["memory"]["actors"] > 0, runtime["memory"]
assert runtime["memory"]["device_free"] is None and runtime["memory"]["buffers"] == [0, 0, 0, 0], runtime["memory"]
assert runtime["asks"]["accepted"] + runtime["tells"]["accepted"] > 0
for worker in runtime["workers"]:
    assert worker["depth_high_water"] <= runtime["slots"]
    for handler in worker["handlers"]:
        assert handler["received"] == handler["processed"] + handler["failed"] + handler["expired"]
        assert sum(handler["times_log2_ns"]) == handler["processed"]
PYTHON
"$gyre" stat "$pid" --workers >"$dir/out"
grep -q "^process $pid, active on CPU, " "$dir/out" || fail "no line of the process" "$(cat "$dir/out")"
grep -q "^  memory region [0-9.]* MiB, BAR 0.0 MiB, actors " "$dir/out" || fail "no line of the memory" "$(cat "$dir/out")"
grep -q "Ping" "$dir/out" || fail "no line of the handler" "$(cat "$dir/out")"
"$gyre" stat --list | grep -q "^$pid $GYRE_STATS_DIR/$pid-" || fail "it is not in the list"
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
"$gyre" stat "$pid" >"$dir/out"
grep -q "the process is gone" "$dir/out" || fail "no word of its end" "$(cat "$dir/out")"
pid=
for file in "$GYRE_STATS_DIR"/*; do truncate -s 100 "$file"; done
code=0
"$gyre" stat "$file" >"$dir/out" 2>"$dir/err" || code=$?
[[ $code -eq 1 ]] || fail "of a damaged file it exits with $code, not 1"
grep -q "damaged, or cut short" "$dir/err" || fail "no word of the damage" "$(cat "$dir/err")"

# Counts of a program's own; it ends with its standard input.
rm -rf "$GYRE_STATS_DIR"
mkfifo "$dir/input"
"$counting" <"$dir/input" &
pid=$!
exec 3>"$dir/input"
counts='import json, sys
(runtime,) = json.load(sys.stdin)
sys.exit(0 if runtime["program"] == {"cache": {"hits": 41, "entries": 12}} else 1)'
until "$gyre" stat "$pid" --json - 2>/dev/null >"$dir/json" && python3 -c "$counts" <"$dir/json" 2>/dev/null; do
  kill -0 "$pid" 2>/dev/null || fail "the program ended before it could be watched"
done
"$gyre" stat "$pid" >"$dir/out"
grep -qx "  cache" "$dir/out" || fail "no line of the section" "$(cat "$dir/out")"
grep -qE "^    hits +41$" "$dir/out" || fail "no line of a counter" "$(cat "$dir/out")"
grep -qE "^    entries +12$" "$dir/out" || fail "no line of a gauge" "$(cat "$dir/out")"
exec 3>&-
wait "$pid" || fail "the program did not end well"
pid=
