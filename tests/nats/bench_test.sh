#!/usr/bin/env bash
# gyre-bench-nats on the CPU engine with few messages: rows and fields are there and make sense; bad usage exits with 2.
# No time is asserted. Use: bench_test.sh GYRE_BENCH_NATS GYRE_NATS
set -euo pipefail
bench=$1 node=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
status=0
"$bench" --engine cpu --node "$node" --messages 100 --rate-messages 500 --in-flight 8 --interleave 2 \
  --size 64 --size 100000 --size 2000000 --arena-bytes 67108864 --json "$folder/result.json" >"$folder/text" 2>&1 || status=$?
if [ "$status" = 77 ]; then cat "$folder/text"; exit 77; fi
[ "$status" = 0 ] || { echo "gyre-bench-nats: exit $status"; cat "$folder/text"; exit 1; }
python3 - "$folder/result.json" <<'CHECK'
import json, sys
with open(sys.argv[1]) as file:
    document = json.load(file)
rows = document["rows"]
def one(**wanted):
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, rows)
    return found[0]
assert document["benchmark"] == "nats" and document["machine"]["engine"] == "cpu", document
assert 1 <= len(set(document["machine"]["futex_cpus"])) <= 2, document["machine"]
for size in (64, 100000, 2000000):
    for name in ("bare", "bare, headers", "gateway", "gyre"):
        row = one(kind="round trip", name=name, size=size)
        assert row["messages"] == (100 if size == 64 else 2) and len(row["rounds"]) == 2, row
        assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"] and row["p50_ratio"] > 0, row
        assert ("over_bare_ns" in row) == (name == "gateway"), row
assert one(kind="round trip", name="futex")["p50_ns"] > 0
for name in ("bare", "bare, headers", "gateway"):
    row = one(kind="rate", name=name)
    assert row["in_flight"] == 8 and len(row["rounds"]) == 2 and min(row["rounds"]) <= row["messages_per_s"] <= max(row["rounds"]), row
    assert row["rate_ratio"] > 0, row
assert len(rows) == 13 + 3, rows
CHECK
for word in machine: "not measured:"; do
  grep -q -- "$word" "$folder/text" || { echo "it does not say '$word':"; cat "$folder/text"; exit 1; }
done

# exits_with CODE TEXT ARGUMENTS...: that exit status, and an error that says TEXT.
exits_with() {
  local code=$1 text=$2 status=0
  shift 2
  "$bench" "$@" >"$folder/out" 2>&1 || status=$?
  if [ "$status" != "$code" ] || ! grep -q -- "$text" "$folder/out"; then
    echo "gyre-bench-nats $*: exit $status, not $code with '$text':"
    cat "$folder/out"
    exit 1
  fi
}
exits_with 2 "--size 33: must be a multiple of 8, 32 to" --engine cpu --node "$node" --size 33
exits_with 2 "--cpus 5000: this process may run on" --engine cpu --node "$node" --cpus 5000
exits_with 2 "--in-flight" --engine cpu --node "$node" --in-flight 0
exits_with 1 "/no/such/node ended with exit code 127" --engine cpu --node /no/such/node
echo "gyre-bench-nats: as it should be"
