#!/usr/bin/env bash
# bench/compare.py and bench/plot.py on results made here. Use: scripts_test.sh SOURCE_DIR
set -euo pipefail
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# results FOLDER SCALE SPREAD: ten results of `rtt`, whose p50 is 1000 ns times SCALE, give or take SPREAD per cent, for
# the row gyre, and always 700 for raw; and a rate to match.
results() {
  mkdir -p "$folder/$1"
  python3 - "$folder/$1" "$2" "$3" <<'MAKE'
import json, random, sys
folder, scale, spread = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]) / 100
generator = random.Random(folder.rsplit("/", 1)[1])
for number in range(10):
    p50 = int(1000 * scale * generator.uniform(1 - spread, 1 + spread))
    row = {"size": 64, "gaps": "none", "workers": 1, "p99_ns": 2 * p50, "p999_ns": 3 * p50, "max_ns": 9 * p50}
    rows = [{**row, "name": "gyre", "p50_ns": p50, "messages_per_s": 1e9 / p50,
             "histogram_ns": f"{p50}:900 {2 * p50}:90 {3 * p50}:10"},
            {**row, "name": "raw", "p50_ns": 700, "messages_per_s": 1e9 / 700, "histogram_ns": "700:999 900:1"}]
    with open(f"{folder}/{number}.json", "w") as file:
        json.dump({"benchmark": "rtt", "rows": rows,
                   "machine": {"cpu": "a <processor> & more", "gpu": "", "transport": "heap",
                               "date": "2026-01-02T03:04:05Z"}}, file)
MAKE
}
results before 1 1
results same 1 1
results slower 1.1 1
results faster 0.9 1
results noisy 1.05 40

# compares CODE TEXT ARGUMENTS...
compares() {
  local code=$1 text=$2 status=0
  shift 2
  python3 "$source/bench/compare.py" "$@" >"$folder/out" 2>&1 || status=$?
  if [ "$status" != "$code" ] || ! grep -Eq -- "$text" "$folder/out"; then
    echo "compare.py $*: exit $status, not $code with '$text':"
    cat "$folder/out"
    exit 1
  fi
}
cd "$folder"
compares 0 '^gyre 64 none 1 +p50_ns +10 .*no difference shown' before same
compares 1 '^gyre 64 none 1 +p50_ns +10 +1\.(09|10|11).*WORSE' before slower
compares 1 'worse by more than 3.0%: gyre 64 none 1$' before slower
compares 0 '^raw 64 none 1 .*1\.000 to 1\.000 +no difference' before same
compares 0 'gyre 64 .*better' before faster
compares 0 'gyre 64 .*no difference shown' before noisy
compares 0 'gyre 64' before slower --worse 20%
compares 1 'messages_per_s +10 +0\.9.*WORSE' before slower --metric messages_per_s
compares 0 'messages_per_s .*better' before faster --metric messages_per_s
compares 0 'few rounds' before/0.json same/0.json
compares 2 'as many are needed' before same/0.json
compares 2 'no such file' before nothing
compares 2 'no row with that figure' before same --metric no_such_figure
compares 2 'usage' before

# As programs: each prints results of its own, a bit slower or not.
for name in before slower; do
  cat >"$folder/run-$name" <<PROGRAM
#!/usr/bin/env bash
# rtt --messages 7 --json FILE
[ "\$1 \$2 \$3 \$4" = "rtt --messages 7 --json" ] || exit 9
n=\$(cat "$folder/$name.count" 2>/dev/null || echo 0)
echo \$((n + 1)) >"$folder/$name.count"
cp "$folder/$name/\$n.json" "\$5"
PROGRAM
  chmod +x "$folder/run-$name"
done
compares 1 '^gyre 64 none 1 +p50_ns +6 .*WORSE' "$folder/run-before" "$folder/run-slower" --rounds 6 -- rtt --messages 7
[ "$(cat before.count) $(cat slower.count)" = "6 6" ] || { echo "compare.py ran the programs another number of times"; exit 1; }
rm ./*.count
compares 1 '^gyre 64 none 1 +p50_ns +6 .*WORSE' "$folder/run-before" "$folder/run-slower" --rounds 6 --keep kept \
  --only-a='--messages 7' --only-b='--messages "7"' -- rtt
[ "$(ls kept/a | wc -l)" = 6 ] || { echo "compare.py kept other results"; exit 1; }
compares 3 'exit code 9' "$folder/run-before" "$folder/run-slower" -- something else

# Drawings are well-formed, and have a line for each row.
python3 "$source/bench/plot.py" latency before/0.json --out one.svg
python3 "$source/bench/plot.py" latency before/0.json slower/0.json --rows gyre --out two.svg
python3 - <<'SWEEP'
import json
rows = [{"name": "gyre", "load": load, "offered_per_s": load * 1e6, "p50_ns": 1000, "p99_ns": 2000, "p999_ns": 9000 / (1 - load)}
        for load in (0.1, 0.5, 0.9)]
with open("sweep.json", "w") as file:
    json.dump({"benchmark": "sweep", "rows": rows,
               "machine": {"cpu": "a", "gpu": "b", "transport": "pinned", "date": "2026-01-02"}}, file)
SWEEP
python3 "$source/bench/plot.py" load sweep.json --out load.svg
python3 - <<'CHECK'
import xml.etree.ElementTree as tree
for file, lines, texts in (("one.svg", 2, ["gyre, 64 B", "raw, 64 B", "a <processor> & more, heap, 2026-01-02"]),
                           ("two.svg", 2, ["0: gyre, 64 B"]), ("load.svg", 3, ["p99.9", "0.90 M"])):
    root = tree.parse(file).getroot()
    space = "{http://www.w3.org/2000/svg}"
    drawn = root.findall(f".//{space}polyline")
    assert len(drawn) == 2 * lines, (file, len(drawn))  # each has a piece in the legend
    for line in drawn:
        for point in line.get("points").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= 860 and 0 <= y <= 480, (file, point)
    said = [text.text for text in root.iter(f"{space}text")]
    for text in texts:
        assert text in said, (file, text, said)
CHECK
status=0
python3 "$source/bench/plot.py" load before/0.json --out none.svg 2>error || status=$?
[ "$status" != 0 ] && grep -q "no results of gyre-bench sweep" error || { echo "plot.py draws what is not there"; exit 1; }
echo "compare.py and plot.py: as they should be"
