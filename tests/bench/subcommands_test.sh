#!/usr/bin/env bash
# gyre-bench's subcommands but rtt and views, on the CPU engine with few messages: rows and fields are there and make
# sense; bad usage exits with 2. No time is asserted. Use: subcommands_test.sh GYRE_BENCH
set -euo pipefail
bench=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cpu=(--engine cpu --json "$folder/result.json")

# measures NAME ARGUMENTS...: runs that subcommand, then the Python on standard input with `rows` and `document`.
measures() {
  local name=$1
  rm -f "$folder/result.json"
  "$bench" "$@" "${cpu[@]}" >"$folder/text" 2>&1 || { echo "gyre-bench $*: exit $?"; cat "$folder/text"; exit 1; }
  { cat <<'HEAD'; cat; } >"$folder/check.py"
import json, sys
with open(sys.argv[1]) as file:
    document = json.load(file)
rows = document["rows"]
assert document["benchmark"] == sys.argv[2], document["benchmark"]
assert document["machine"]["engine"] == "cpu", document["machine"]
def one(**wanted):
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    assert len(found) == 1, (wanted, rows)
    return found[0]
HEAD
  python3 "$folder/check.py" "$folder/result.json" "$name" || { cat "$folder/text"; exit 1; }
  for word in machine: "not measured:"; do
    grep -q -- "$word" "$folder/text" || { echo "$name does not say '$word':"; cat "$folder/text"; exit 1; }
  done
}

measures throughput --messages 1000 --tells --workers 1 2 --threads 2 --interleave 2 <<'CHECK'
def answer(value): return (value + 1) * 0x9e3779b97f4a7c15
def values(threads, messages): return [(t << 48) + i for t in range(threads) for i in range(messages // threads)]
for workers in (1, 2):
    asks, tells = one(name="gyre", workers=workers), one(name="gyre tells", workers=workers)
    assert asks["checksum"] == sum(map(answer, values(2, 1000))) % 2**64, asks
    assert tells["checksum"] == sum(values(2, 1000)) % 2**64, tells
    assert asks["messages"] == tells["messages"] == 1000
assert one(name="boost-spsc")["rate_ratio"] == 1
assert len(rows) == 5 and all(len(row["rounds"]) == 2 and row["messages_per_s"] in row["rounds"] for row in rows), rows
CHECK

measures payload --bytes 4096 40000 --depth 3 --total-bytes 600000 --interleave 2 <<'CHECK'
for size in (4096, 40000):
    for name in ("memcpy", "gyre messages", "gyre pinned", "gyre device", "gyre device, copied"):
        row = one(name=name, bytes=size)
        assert row["messages"] >= 6 and row["gb_per_s_in"] > row["gb_per_s_out"] > 0, row
    assert one(name="memcpy", bytes=size)["rate_ratio"] == 1
    for way in ("write", "read", "write and read"):
        for memory in ("pinned", "pageable"):
            row = one(name=f"gyre {way}, {memory}", bytes=size)
            assert row["beside"] == f"memcpy {way}, {memory}" and row["rate_ratio"] > 0 < row["gb_per_s"], row
            assert len(row["rounds"]) == 2 == len(one(name=row["beside"], bytes=size)["rounds"]), row
    for way in ("in", "out", "both"):
        row = one(name=f"gyre messages {way}", bytes=size)
        assert row["beside"] == f"memcpy, payloads {way}" and row["rate_ratio"] > 0, row
assert len(rows) == 2 * (5 + 2 * 9), rows
CHECK

measures launch --runs 3 --cold <<'CHECK'
for name in ("gyre", "bare", "gyre cold"):
    row = one(name=name)
    assert row["runs"] == 3 == len(row["samples_ns"]), row
    assert 0 < row["launch_p50_ns"] < row["p50_ns"] <= row["p99_ns"] <= row["max_ns"] or name == "bare", row
    assert row["terminate_max_ns"] > 0 and row["p50_ratio"] > 0, row
assert one(name="bare")["p50_ratio"] == 1
CHECK

measures inference --messages 60 --batch 1 3 --threads 1 2 --interleave 2 <<'CHECK'
for rows_a_request in (1, 3):
    for threads in (1, 2):
        row = one(name="gyre", size=rows_a_request * 64 * 4, workers=threads)
        assert row["messages"] == 60 and row["checked"] and row["work"] == "inference", row
        assert row["requests_per_s"] > 0 < row["p50_ns"], row
assert len(rows) == 4, rows
CHECK

measures workers --messages 200 --workers 1 3 --interleave 2 <<'CHECK'
assert one(name="gyre", workers=1)["p50_to_alone"] == 1
assert one(name="gyre", workers=3)["p50_to_alone"] > 0
assert all(row["messages"] == 200 and len(row["rounds"]) == 2 and row["checked"] for row in rows) and len(rows) == 2, rows
CHECK

measures sweep --messages 1000 --seconds 0.02 --loads 0.2 0.5 <<'CHECK'
assert document["machine"]["capacity_per_s"] > 0
for load in (0.2, 0.5):
    row = one(load=load)
    assert abs(row["offered_per_s"] - load * document["machine"]["capacity_per_s"]) < 1, row
    assert row["messages"] == max(1, int(row["offered_per_s"] * 0.02)), row
    assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"], row
    assert sum(int(bucket.split(":")[1]) for bucket in row["histogram_ns"].split()) == row["messages"], row
CHECK

measures api --messages 100 --interleave 2 --wait polite <<'CHECK'
names = ["gyre", "beside the poller", "callback", "co_await", "queue, polled", "queue, epoll", "asio callback",
         "asio use_future", "ask, cancel"]
assert [row["name"] for row in rows] == names, rows
assert one(name="gyre")["p50_ratio"] == 1
for row in rows:
    assert row["messages"] == 100 and len(row["rounds"]) == 2 and row["checked"] and row["remark"], row
    assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"] and row["p50_ratio"] > 0, row
CHECK

measures actors --messages 300 --passes 1000 --floods 500 --mass-floods 500 --tallies 50 --workers 3 --interleave 2 <<'CHECK'
assert [row["name"] for row in rows] == ["no actor sends", "actors send"], rows
for row in rows:
    assert row["messages"] == 300 and len(row["rounds"]) == 2 and row["checked"], row
    assert 0 < row["p50_ns"] <= row["p99_ns"] and row["p50_ratio"] > 0, row
assert document["passes"] == 1000 and document["tallies"] == 50, document
assert [rate["messages"] for rate in document["rates"]] == [3 * (500 + 499), 3 * (500 + 16)], document
for values in (document["between_workers_ns"], document["within_a_worker_ns"], document["asks_ns"],
               document["host_passes_ns"], *(rate["messages_per_s"] for rate in document["rates"])):
    assert len(values) == 2 and min(values) > 0, document
gaps = document["host_gaps_ns"]
assert 0 < gaps["p50"] <= gaps["p99"] <= gaps["p99_9"], document
CHECK

measures rollback --messages 300 --interleave 2 <<'CHECK'
names = ["64", "64 undone", "1024", "1024 undone", "64 fails", "64 undone, fails", "1024 fails", "1024 undone, fails"]
assert [row["name"] for row in rows] == names, rows
for row in rows:
    assert row["messages"] == 300 and len(row["rounds"]) == 2 and row["checked"], row
    assert 0 < row["p50_ns"] <= row["p99_ns"] and row["p50_ratio"] > 0, row
CHECK

measures savina --only counting concurrent-dictionary bank-transaction --instances 1 3 --size-percent 2 1 \
  --under-way 1 3 --cpu-workers 2 --one-core --interleave 2 <<'CHECK'
engines = [engine["name"] for engine in document["engines"]]
assert engines[:2] == ["cpu", "cpu, 1 worker"], engines
wanted = [("counting", 0), ("concurrent-dictionary", 1), ("concurrent-dictionary", 3), ("bank-transaction", 256)]
for name, under_way in wanted:
    for instances, percent in ((1, 2), (3, 1)):
        for engine in engines:
            if engine.find(" 1 ") >= 0 and instances != 1: continue
            row = one(name=name, engine=engine, instances=instances, under_way=under_way)
            assert row["size_percent"] == percent and row["checked"] and len(row["seconds"]) == 2, row
            assert row["messages"] > 0 < row["messages_per_s"], row
        assert sum(row["fastest"] for row in rows if row["name"] == name and row["instances"] == instances
                   and row["under_way"] == under_way) == 1, rows
assert len(rows) == len(wanted) * (len(engines) + len(engines) // 2), rows
assert one(name="counting", engine="cpu", instances=3)["messages"] == 3 * 10001
assert one(name="concurrent-dictionary", engine="cpu", instances=1, under_way=3)["messages"] == 2 * 20 * 200
CHECK

measures counters --counters 1000 --host-increments 20000 --actor-increments 30011 --created 20011 --touches 3 \
  --threads 3 --workers 3 <<'CHECK'
assert [row["name"] for row in rows] == ["host", "actors", "creation"], rows
assert [row["counters"] for row in rows] == [1000, 1000, 20011], rows
assert [row["increments"] for row in rows] == [20000, 30011, 3 * 20011], rows
for row in rows:
    assert row["checked"] and row["state_bytes"] == 16 and row["seconds"] > 0 < row["increments_per_s"], row
creation = one(name="creation")
assert 0.9 <= creation["room_used"] <= 0.96 and creation["actors_per_s"] > 0, creation
assert 16 + 28 < creation["bytes_an_actor"] <= creation["most_bytes_an_actor"] == 48, creation
assert creation["table_bytes"] < creation["actor_bytes"], creation
CHECK

measures soak --messages 4000 --threads 3 --workers 2 --packets 3-32 --preempt <<'CHECK'
row, = rows
assert row["messages"] == 4000 and row["threads"] == 3 and row["workers"] == 2, row
assert 3 * 4000 < row["packets"] < 32 * 4000 and row["checksum"] != 0, row
CHECK
grep -q "none lost, none doubled, none torn, none out of order" "$folder/text"

measures idle --seconds 0.1 <<'CHECK'
assert [row["name"] for row in rows] == ["nothing launched", "workers idle"], rows
assert all(row["seconds"] >= 0.1 and row["processors"] >= 0 and "watts" not in row for row in rows), rows
CHECK

measures frames --frames 2000 <<'CHECK'
assert [row["name"] for row in rows] == ["stream", "packed"], rows
for row in rows:
    assert row["frames"] == 2000 == row["sent"] + row["malformed"] + row["too_large"], row
    assert row["sent"] > 0 and row["malformed"] > 0 and row["bytes"] > 100 * 2000, row
    assert 0 < row["p50_ns"] <= row["p999_ns"] <= row["time_ns"]["worst"], row
    assert row["memory_bytes"]["over_bound"] == 0 < row["memory_bytes"]["worst"], row
    assert row["memory_bytes"]["worst"] <= 64 * 1024 + 16 * row["memory_bytes"]["worst_frame_bytes"], row
CHECK

measures sparse --messages 20 --times 50 300 --interleave 2 --idle-seconds 0.05 <<'CHECK'
for time in (50, 300):
    for kind, key, names in (("after a pause", "pause_us", ("gyre polite", "futex", "gyre spin")),
                             ("slow handler", "work_us", ("gyre polite", "gyre spin"))):
        for name in names:
            row = one(**{"kind": kind, key: time, "name": name})
            assert row["messages"] == 20 and len(row["rounds"]) == 2 and row["checked"], row
            assert 0 < row["p50_ns"] <= row["p99_ns"] <= row["p999_ns"] <= row["max_ns"], row
            assert row["p50_ratio"] > 0, row
            if name != "futex":
                assert 0 < row["caller_processor_ns"] <= row["process_processor_ns"], row
                if kind == "slow handler": assert row["p50_ns"] >= 1000 * time, row
    assert one(kind="after a pause", pause_us=time, name="futex")["p50_ratio"] == 1
idle = one(kind="idle")
assert idle["workers"] == 2 and len(idle["rounds"]) == 2 and 0 <= idle["processors_a_worker"] < 1.5, idle
pinned = [row for row in rows if row["kind"].startswith("after a pause, ")]
kinds = {row["kind"] for row in pinned}
assert {"after a pause, one CPU"} <= kinds <= {"after a pause, one CPU", "after a pause, two CPUs"}, kinds
for kind in kinds:
    for time in (50, 300):
        for name in ("gyre polite", "futex"): assert one(kind=kind, pause_us=time, name=name)["p50_ratio"] > 0
assert len(pinned) == 4 * len(kinds) and len(rows) == 11 + len(pinned), rows
CHECK

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
exits_with 2 "--slots 100: must be a power of two" throughput --engine cpu --slots 100
exits_with 2 "--workers" throughput --engine cpu --workers 0
exits_with 2 "--bytes 6: must be a multiple of 4" payload --engine cpu --bytes 6
exits_with 2 "--runs" launch --engine cpu --runs 0
exits_with 2 "--batch" inference --engine cpu --batch 17
exits_with 2 "--size 33: must be a multiple of 8" workers --engine cpu --size 33
exits_with 2 "--size 33: must be a multiple of 8" api --engine cpu --size 33
exits_with 2 "--size 33: must be a multiple of 8" sparse --engine cpu --size 33
exits_with 2 "--times" sparse --engine cpu --times 0
exits_with 2 "--loads" sweep --engine cpu --loads 0
exits_with 2 "--packets 2-4: must be a number or a range, 3 to 32" soak --engine cpu --packets 2-4
exits_with 2 "--packets 5-4: must be" soak --engine cpu --packets 5-4
exits_with 2 "--seconds" idle --engine cpu --seconds 0
exits_with 2 "--frames" frames --engine cpu --frames 0
exits_with 2 "--only: fork must be one of ping-pong" savina --engine cpu --only fork
exits_with 2 "--instances" savina --engine cpu --instances 0
exits_with 2 "--under-way" savina --engine cpu --under-way 32
exits_with 0 "give it 8 workers" savina --engine cpu --instances 1000 --size-percent 1 --only bank-transaction --cpu-workers 2
exits_with 2 "--part: creations must be one of host, actors, creation" counters --engine cpu --part creations
exits_with 1 "of the tables' room is used" counters --engine cpu --part creation --created 20000 --full-percent 80
exits_with 1 "bytes of tables, more than 48" counters --engine cpu --part creation --created 20000 --full-percent 91
exits_with 2 "two workers are needed" actors --workers 1
for command in actors counters savina api throughput payload inference launch frames workers rollback sparse sweep soak idle; do exits_with 0 "Exit: 0" "$command" --help; done
status=0
"$bench" --help | grep -q sample && status=1
[ "$status" = 0 ] || { echo "gyre-bench --help shows what is not for users"; exit 1; }
echo "gyre-bench's subcommands: as they should be"
