#!/usr/bin/env bash
# bench/figures.py: a page with another figure than the results have fails its check, and so do results of two commits.
# On a copy of the pages and the results, made one commit's. Use: figures_test.sh SOURCE_DIR
set -euo pipefail
source=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
results=$folder/tree/bench/results/current
mkdir -p "$folder/tree/docs" "$results"
cp "$source"/bench/results/current/*.json "$results"
cp "$source/docs/performance.md" "$folder/tree/docs"
cat >"$folder/tree/README.md" <<'PAGE'
Gyre takes <!-- figures: bar-us -->1<!-- end of figures --> µs.

<!-- figures: readme -->
<!-- end of figures -->
PAGE

# change FILE STATEMENT: runs the Python with `document` and `machine` of that result.
change() {
  python3 - "$results/$1.json" "$2" <<'CHANGE'
import json, sys
with open(sys.argv[1]) as file:
    document = json.load(file)
machine = document.get("machine", document)
exec(sys.argv[2])
with open(sys.argv[1], "w") as file:
    json.dump(document, file)
CHANGE
}
# figures CODE TEXT ARGUMENTS...: the exit code, and what standard output and error have.
figures() {
  local code=$1 text=$2 status=0
  shift 2
  python3 "$source/bench/figures.py" --root "$folder/tree" "$@" >"$folder/out" 2>&1 || status=$?
  if [ "$status" != "$code" ] || { [ "$text" ] && ! grep -q -- "$text" "$folder/out"; }; then
    echo "figures.py $*: exit $status, not $code with '$text':"
    cat "$folder/out"
    exit 1
  fi
}
# as_before: takes back what a case changed.
save() { rm -rf "$folder/saved"; cp -r "$folder/tree" "$folder/saved"; }
as_before() { rm -rf "$folder/tree"; cp -r "$folder/saved" "$folder/tree"; }

for file in "$results"/*.json; do
  change "$(basename "$file" .json)" 'machine["commit"] = "0123456789ab"; machine["dirty"] = False'
done
change rtt-bar 'for row in document["rows"]: row["p50_ns"] = 7654 if row["name"] == "gyre" else row["p50_ns"]'
# A page with every name there is.
for name in $(python3 "$source/bench/figures.py" --list); do
  printf '<!-- figures: %s -->\n<!-- end of figures -->\n' "$name"
done >"$folder/tree/docs/every.md"
figures 0 'wrote README.md' --write
if grep -A1 '^<!-- figures' "$folder/tree/docs/every.md" | grep -q '^<!-- end'; then echo 'a name gives nothing'; exit 1; fi
figures 0 '' --check
grep -q 'Gyre takes <!-- figures: bar-us -->7.65<!-- end of figures --> µs' "$folder/tree/README.md"
grep -q '^| gyre, BAR | 7.65 |' "$folder/tree/docs/performance.md"
grep -q 'Commit 0123456789ab: ' "$folder/tree/README.md"
save

sed -i 's/| gyre, BAR | 7.65 |/| gyre, BAR | 1.65 |/' "$folder/tree/docs/performance.md"
figures 1 'docs/performance.md is not what' --check
figures 1 'should: | gyre, BAR | 7.65 |' --check
as_before
sed -i 's/-->7.65</-->7.66</' "$folder/tree/README.md"
figures 1 'README.md is not what' --check
as_before
echo 'It once took 3 µs.' >>"$folder/tree/docs/performance.md"
figures 1 'has a figure outside the markers: It once took 3 µs' --check
as_before
echo '<!-- figures: no-such -->1<!-- end of figures -->' >>"$folder/tree/docs/performance.md"
figures 1 'no figures named no-such' --check
as_before
echo '<!-- figures: bar-us -->1' >>"$folder/tree/docs/performance.md"
figures 1 'no partner' --check
as_before
sed -i 's/<polyline points="[0-9]/&1/' "$folder/tree/docs/latency.svg"
figures 1 'docs/latency.svg is not what' --check
as_before
change payload 'machine["commit"] = "ba9876543210"'
figures 1 'ba9876543210: payload.json' --check
figures 1 'not of one commit' --write
as_before
change savina 'machine["commit"] = "ba9876543210"'
figures 1 'docs/performance.md is not what' --check
figures 0 '' --write
change payload 'machine["commit"] = "ab9876543210"'
figures 1 'ab9876543210: payload.json' --check
as_before
# Files of asks over NATS may be missing, and be of another commit together.
change savina 'machine["commit"] = "ba9876543210"'
rm "$results/nats-two-processors.json"
figures 0 '' --write
if grep -q '^| CPU engine, 2 processors |' "$folder/tree/docs/performance.md"; then echo 'a missing file has its line'; exit 1; fi
for file in nats-two-cpus nats-cpu nats-cpu-spin nats-cuda; do change "$file" 'machine["commit"] = "ba9876543210"'; done
figures 0 '' --write
change nats-cpu 'machine["commit"] = "ab9876543210"'
figures 1 'nats-cpu.json: ab9876543210' --write
as_before
for stray in 'machine["commit"] = "ba9876543210"' 'machine["gpu"] = "another GPU"'; do
  change actors "$stray"
  figures 1 'compares are of different commits or GPUs' --check
  as_before
done
change savina 'machine["dirty"] = True'
figures 1 '0123456789ab and changes: savina.json' --check
as_before
change gpu-test 'machine["commit"] = "0123456789ab and changes"'
figures 1 '0123456789ab and changes: gpu-test.json' --check
as_before
change api 'del machine["commit"]'
figures 1 'no commit: api.json' --check
as_before
change api 'machine["dirty"] = True'
figures 1 '0123456789ab and changes: api.json' --check
as_before
rm "$results/soak.json"
figures 1 'has no soak.json' --check
as_before
cp "$results/soak.json" "$results/old-soak.json"
figures 1 'files that no page uses: old-soak.json' --check
as_before
figures 0 '' --check
echo 'figures.py: as it should be'
