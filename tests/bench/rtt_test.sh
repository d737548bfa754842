#!/usr/bin/env bash
# gyre-bench rtt on the CPU engine: all rows and fields are there and make sense; bad usage exits with 2. No time is
# asserted. Use: rtt_test.sh GYRE_BENCH
set -euo pipefail
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$bench" rtt --engine cpu --messages 300 --size 64 --size 256 --gaps both --interleave 3 --json - >"$folder/rtt.json" 2>"$folder/text"

python3 - "$folder/rtt.json" <<'CHECK'
import json, sys
with open(sys.argv[1]) as file:
    document = json.load(file)

machine = document["machine"]
for field in ("cpu", "kernel", "compiler", "build", "date"):
    assert isinstance(machine[field], str) and machine[field], (field, machine)
for field, value in {"engine": "cpu", "transport": "heap", "wait": "spin", "gpu": "", "driver": "", "pinned": False,
                     "workers": 1, "block": 32, "slots": 256, "slot_bytes": 512}.items():
    assert machine[field] == value, (field, machine)
assert machine["command"] == "gyre-bench rtt --engine cpu --messages 300 --size 64 --size 256 --gaps both --interleave 3 --json -", machine
assert machine["commit"] == "unknown" or len(machine["commit"]) == 12 and int(machine["commit"], 16) >= 0, machine
assert machine["dirty"] in (True, False), machine
assert machine["cpus"] >= 1 and machine["clock_ns"] > 0, machine

rows = [row for row in document["rows"] if not row["name"].startswith("caf")]
found = sorted((row["name"], row["size"], row["gaps"]) for row in rows)
expected = [(name, size, gaps)
            for name, size in (("boost-spsc", 64), ("boost-spsc", 256), ("floor", 8), ("gyre", 64), ("gyre", 256),
                               ("gyre vector-add", 200))
            for gaps in ("none", "random")]
assert found == expected, found
for row in rows:
    assert row["transport"] == "heap" and row["wait"] == "spin" and row["checked"] is True, row
    assert row["messages"] == 300, row
    assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"], row
    assert 0 < row["mean_ns"] <= row["max_ns"] and row["messages_per_s"] > 0 and row["p50_ratio"] > 0, row
    assert row["name"] != "boost-spsc" or row["p50_ratio"] == row["p999_ratio"] == 1, row
    assert not row["name"].startswith("gyre") or row["p50_to_gyre"] == 1, row
    assert row["work"] == ("vector-add" if row["name"] == "gyre vector-add" else "echo"), row
    rounds = row["rounds"]
    assert len(rounds) == 3 and all(r["messages"] == 300 for r in rounds), row
    assert row["p50_ns"] == sorted(r["p50_ns"] for r in rounds)[1], row
    buckets = [tuple(map(int, bucket.split(":"))) for bucket in row["histogram_ns"].split()]
    assert sum(count for _, count in buckets) == 3 * 300 and buckets == sorted(buckets), row
    assert buckets[-1][0] <= max(r["max_ns"] for r in rounds) <= buckets[-1][0] * 1.008 + 1, row
assert document["reference"] == "boost-spsc"
CHECK

"$bench" rtt --engine cpu --messages 300 --brief --unchecked --json "$folder/unchecked.json" >"$folder/unchecked"
python3 - "$folder/unchecked.json" <<'CHECK'
import json, sys
with open(sys.argv[1]) as file:
    rows = {row["name"]: row for row in json.load(file)["rows"]}
assert sorted(rows) == ["boost-spsc", "gyre", "gyre unchecked"], rows
assert {name: row["checked"] for name, row in rows.items()} == {"boost-spsc": True, "gyre": True, "gyre unchecked": False}
unchecked = rows["gyre unchecked"]
assert unchecked["messages"] == 300 and unchecked["p50_to_gyre"] == unchecked["p50_ns"] / rows["gyre"]["p50_ns"], rows
CHECK
grep -q "every word of its reply is checked, but for gyre unchecked" "$folder/unchecked"

# Where this process may run on two CPUs, a round says on which of them it was measured, and how quick that was.
if [ "$(nproc)" -ge 2 ]; then
  "$bench" rtt --engine cpu --messages 200 --brief --interleave 2 --pin-quickest --json "$folder/quickest.json" >"$folder/quickest"
  grep -q "CPUs: before and after the 4 rounds a piece of arithmetic took" "$folder/quickest" || { cat "$folder/quickest"; exit 1; }
  python3 - "$folder/quickest.json" <<'CHECK'
import json, os, sys
with open(sys.argv[1]) as file:
    document = json.load(file)
assert document["machine"]["pinned"] is True and document["machine"]["pinned_to_quickest"] is True
for row in document["rows"]:
    assert len(row["rounds"]) == 2, row
    for r in row["rounds"]:
        assert {r["cpu"], r["baseline_cpu"]} <= os.sched_getaffinity(0) and r["cpu"] != r["baseline_cpu"], r
        assert len(r["arithmetic_ns"]) == 2 and min(r["arithmetic_ns"]) > 0, r
CHECK
fi

for word in machine: "waiting spin" "not measured:" p99.9 gyre boost-spsc floor; do
  grep -q -- "$word" "$folder/text" || { echo "the table lacks '$word':"; cat "$folder/text"; exit 1; }
done

# exits_with CODE TEXT ARGUMENTS...: that exit status, and an error that says TEXT.
exits_with() {
  local code=$1 text=$2 status=0
  shift 2
  "$bench" "$@" >"$folder/out" 2>"$folder/error" || status=$?
  if [ "$status" != "$code" ] || ! cat "$folder/out" "$folder/error" | grep -q -- "$text"; then
    echo "gyre-bench $*: exit $status, not $code with '$text':"
    cat "$folder/out" "$folder/error"
    exit 1
  fi
}
exits_with 2 "--size 63: must be a multiple of 8" rtt --engine cpu --size 63
exits_with 2 "--size 24: must be a multiple of 8" rtt --engine cpu --size 24
exits_with 2 "give --slot-bytes 576" rtt --engine cpu --size 360
exits_with 2 "--slots 100: must be a power of two" rtt --engine cpu --slots 100
exits_with 2 "--gaps" rtt --engine cpu --gaps some
exits_with 2 "--pollers" rtt --engine cpu --pollers 3
exits_with 2 "--interleave" rtt --engine cpu --interleave 0
exits_with 2 "--messages" rtt --engine cpu --messages 0
exits_with 2 "excludes" rtt --engine cpu --pin --pin-quickest
exits_with 2 "" rtt --no-such-option
exits_with 2 "" no-such-subcommand
exits_with 2 ""
exits_with 0 "--size" rtt --help
exits_with 0 "352" rtt --engine cpu --messages 10 --size 352

# Interrupted, it ends its threads and says so.
status=0
"$bench" rtt --engine cpu --messages 20000000 >"$folder/out" 2>&1 &
pid=$!
# Its thread that waits for SIGINT is there once the process blocks the signal.
until (( 0x$(sed -n 's/^SigBlk:\t*//p' "/proc/$pid/status") & 2 )); do read -r -t 0.01 <> <(:) || true; done
kill -INT "$pid"
wait "$pid" || status=$?
if [ "$status" != 130 ] || ! grep -q "interrupted" "$folder/out"; then
  echo "interrupted: exit $status, not 130:"
  cat "$folder/out"
  exit 1
fi
echo "gyre-bench rtt: as it should be"
