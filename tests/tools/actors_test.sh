#!/usr/bin/env bash
# gyre actors beside a program with actors: what it prints and what its JSON holds, and what it says where nothing is.
# usage: actors_test.sh GYRE ACTORS_PROGRAM
set -euo pipefail
gyre=$(realpath "$1") program=$(realpath "$2")
dir=$(mktemp -d)
pid=
trap 'if [[ -n $pid ]]; then kill -KILL "$pid" 2>/dev/null || true; fi; rm -rf "$dir"' EXIT
export GYRE_STATS_DIR=$dir/stats
fail() { echo "actors_test: $1" >&2; shift; printf '%s\n' "$@" >&2; exit 1; }
# expect CODE TEXT ARGUMENT…: gyre actors ends with that code and says that on standard error.
expect() {
  local wanted=$1 text=$2 code=0
  shift 2
  "$gyre" actors "$@" >"$dir/out" 2>"$dir/err" || code=$?
  [[ $code -eq $wanted ]] || fail "gyre actors $* ends with $code, not $wanted" "$(cat "$dir/err")"
  grep -q -- "$text" "$dir/err" || fail "gyre actors $* does not say: $text" "$(cat "$dir/err")"
}

expect 1 "no runtime publishes its stats in $GYRE_STATS_DIR"

mkfifo "$dir/input"
"$program" 5 7 18446744073709551615 12 <"$dir/input" >"$dir/ready" &
pid=$!
exec 3>"$dir/input"
# Until the stats have all four; the test's time-out bounds it.
counted='import json, sys
(runtime,) = json.load(sys.stdin)
sys.exit(0 if runtime["actors"][0]["living"] == 4 else 1)'
until "$gyre" actors "$pid" --json - 2>/dev/null >"$dir/json" && python3 -c "$counted" <"$dir/json" 2>/dev/null; do
  kill -0 "$pid" 2>/dev/null || fail "the program ended before it could be watched"
done
python3 - "$dir/json" "$pid" <<'PYTHON' || fail "the JSON is not what is documented" "$(cat "$dir/json")"
import json, sys
(runtime,) = json.load(open(sys.argv[1]))
assert runtime["pid"] == int(sys.argv[2]) and runtime["process_there"] and "keys" not in runtime
counters, guests = runtime["actors"]
assert counters == {"actor": "gyre_counters::Counter", "living": 4, "created": 4, "workers": [1, 3]}, counters
assert guests["living"] == 0 and guests["workers"] == [0, 0], guests
PYTHON

"$gyre" actors "$pid" >"$dir/out"
grep -qE "^process $pid, active on .*, 2 workers \\($GYRE_STATS_DIR/" "$dir/out" || fail "no line of the process" "$(cat "$dir/out")"
grep -qE "^  gyre_counters::Counter +4 +4$" "$dir/out" || fail "no line of the counters" "$(cat "$dir/out")"
"$gyre" actors --type gyre_counters::Counter >"$dir/out"
printf '    %s\n' 5 7 12 18446744073709551615 | diff - <(grep '^    ' "$dir/out") || fail "not these keys" "$(cat "$dir/out")"
grep -q "^  4 keys of gyre_counters::Counter$" "$dir/out" || fail "no line of the keys" "$(cat "$dir/out")"
"$gyre" actors --type gyre_counters::Counter --most 3 >"$dir/out"
grep -q "^  3 keys of gyre_counters::Counter, and there are more than --most 3$" "$dir/out" || fail "nothing of the others" "$(cat "$dir/out")"
"$gyre" actors --type gyre_counters::Counter --json "$dir/json"
python3 - "$dir/json" <<'PYTHON' || fail "the JSON with keys is not what is documented" "$(cat "$dir/json")"
import json, sys
(runtime,) = json.load(open(sys.argv[1]))
assert runtime["type"] == "gyre_counters::Counter" and not runtime["more"]
assert runtime["keys"] == [5, 7, 12, 2**64 - 1], runtime["keys"]
PYTHON
expect 1 "has no actor type gyre_counters::Nobody; it has gyre_counters::Counter, gyre_counters::Guest" --type gyre_counters::Nobody
expect 2 "" --most 0

kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
"$gyre" actors "$pid" >"$dir/out"
grep -q "the process is gone" "$dir/out" || fail "no word of its end" "$(cat "$dir/out")"
expect 1 "its process does not listen" "$pid" --type gyre_counters::Counter
pid=
