#!/usr/bin/env bash
# against_test.sh GYRE SOURCE_DIR CAPNP PLUGIN TEST_PLUGIN GYRE_C: what `gyre validate --against cpu` finds and prints, and actor libraries, without
# a GPU: both engines are the CPU's, of the same actors or of two versions.
set -euo pipefail
gyre="$(realpath "$1")"
examples="$(realpath "$2")/examples/debugging"
capnp="$3"
plugin="$(realpath "$4")" test_plugin="$(realpath "$5")"
export GYRE_LIBRARY="$(realpath "$6")" PYTHONDONTWRITEBYTECODE=1
python_package="$(realpath "$2")/runtime/python"
dir="$(mktemp -d)"
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cp "$examples"/*.hpp "$examples"/*.capnp .
failures=0

fail() {
  echo "FAILED: gyre $command"
  echo "  expected: $1"
  echo "  seen:     $2"
  failures=$((failures + 1))
}

# Runs gyre with these arguments: fills $code and the files out and err. $tools: where it finds programs.
tools=$PATH
run() {
  command="$*"
  code=0
  timeout --kill-after=5 120 env "PATH=$tools" "$gyre" "$@" >out 2>err </dev/null || code=$?
}
expect_code() { [[ $code == "$1" ]] || fail "exit code $1" "$code; $(head -c 1000 out) standard error: $(head -c 2000 err)"; }
expect_in() { grep -qE -- "$2" "$1" || fail "«$2» on std$1" "$(head -c 3000 "$1")"; }
expect_json() {
  python3 -c 'import json, sys
document = json.load(open(sys.argv[1]))
sys.exit(0 if eval(sys.argv[2]) else 1)' "$1" "$2" 2>/dev/null || fail "JSON with $2" "$(head -c 3000 "$1")"
}

on_cpu=(validate --engine cpu --against cpu)
good=(--actors good.hpp --types debugging::Good --schema smooth.capnp)

# A library of the actors, of a header and its schema; it needs no compiler and no schema after that.
run validate --build-library good.so "${good[@]}"
expect_code 0
expect_in out '^✓ made good.so for both engines$'
tools=/nonexistent CXX='' run "${on_cpu[@]}" --actors good.so --random 200 --keys 3 --json alike.json
expect_code 0
expect_in out '^✓ debugging::Good on cpu against the same on cpu$'
expect_in out '^✓ 200 messages \(random, seed 1, 3 keys\): 200 answered alike, 0 not$'
expect_in out '[1-9][0-9]+ floating point numbers compared, 0 not equal; 0 values beyond'
expect_json alike.json 'document["equal"] and document["alike"] == 200 and document["floats"] > 200'
expect_json alike.json 'document["first_difference"] is None and document["error_replies"] == 0'

# Compiled ahead too, where NVRTC is; the same answers on the CPU.
run validate --build-library ahead.so --architecture 90 "${good[@]}"
if [[ $code != 3 ]]; then
  expect_code 0
  run "${on_cpu[@]}" --actors ahead.so --random 20
  expect_code 0
  grep -qa 'sm_90' ahead.so || fail 'a cubin in ahead.so' "$(ls -l ahead.so good.so)"
fi

# The other way about: a program in another language loads it, without a schema, and the tools a plugin of the C interface.
command='in Python: good.so'
PYTHONPATH=$python_package python3 - >out 2>err <<'PYTHON' || fail 'an answer' "$(cat out err)"
import gyre
actors = gyre.Actors.load("good.so")
with gyre.launch(actors, engine="cpu") as runtime:
    reply = runtime.client().ask("debugging::Good", 1, "Smooth", {"values": [1, 2, 3, 4, 5]})
    assert len(reply["values"]) == 5 and reply["values"][2] == 3, reply
PYTHON
run "${on_cpu[@]}" --actors "$plugin" --random 50 --keys 2
expect_code 0
expect_in out '^✓ averages::Average on cpu against the same on cpu$'
expect_in out '^✓ 50 messages \(random, seed 1, 2 keys\): 50 answered alike, 0 not$'
run "${on_cpu[@]}" --actors "$plugin:averages" --random 5
expect_code 0
run "${on_cpu[@]}" --actors "$test_plugin"
expect_code 1
expect_in err 'it exports probes, no_probes, speakers; name one of them'
run "${on_cpu[@]}" --actors "$test_plugin:others"
expect_code 1
expect_in err 'it exports probes, no_probes, speakers, and no actors by the name others'
run "${on_cpu[@]}" --actors "$test_plugin:no_probes"
expect_code 2
expect_in err 'there are no probes today'

# Two versions: one element is wrong, by a known amount.
sed 's/result.set(i, (left + values\[i\] + right) \/ 3);/result.set(i, (left + values[i] + right) \/ 3 + (i == 2 ? 0.25f : 0));/' \
  good.hpp >changed.hpp
! cmp -s good.hpp changed.hpp || fail 'a changed actor' 'the same text'
printf '{"values": [1, 2, 3]}\n{"values": [3, 3]}\n{"values": [4, 4, 4, 4]}\n' >messages.jsonl
changed=(--actors changed.hpp --types debugging::Good --schema smooth.capnp --other good.so)
run "${on_cpu[@]}" "${changed[@]}" --messages-file messages.jsonl --json differ.json
expect_code 1
expect_in out '^✗ 3 messages \(messages.jsonl, 1 key\): 1 answered alike, 2 not$'
expect_in out '12 floating point numbers compared, 2 not equal; 2 values beyond --atol 0 --rtol 0$'
expect_in out 'first difference: message 0, values\[2\]: 2\.91666[0-9]+ on cpu, 2\.66666[0-9]+ on good.so$'
expect_in out 'largest absolute  0.25 +message [02], values\[2\]: '
expect_in out 'largest relative  0.09375 +message 0, values\[2\]: '
expect_in out 'largest ULP '
expect_json differ.json 'document["equal"] is False and document["alike"] == 1 and document["differences"] == 2'
expect_json differ.json 'document["first_difference"]["message"] == 0 and document["first_difference"]["path"] == "values[2]"'
expect_json differ.json 'document["largest_absolute"]["value"] == 0.25'
expect_json differ.json 'document["largest_ulp"]["value"] == 0.25 * 2 ** 22 + 0'
run "${on_cpu[@]}" "${changed[@]}" --messages-file messages.jsonl --atol 0.25
expect_code 0
expect_in out '2 not equal; 0 values beyond --atol 0.25'
run "${on_cpu[@]}" "${changed[@]}" --messages-file messages.jsonl --ignore values
expect_code 0
run "${on_cpu[@]}" "${changed[@]}" --messages-file messages.jsonl --ignore values --ignore value
expect_code 2
expect_in err '--ignore value: no reply has a field of that name; replies have .*values'

# The same messages as Cap'n Proto, one behind the other; the slow one answers as the good one.
while IFS= read -r line; do
  "$capnp" convert json:binary smooth.capnp Smooth <<<"$line"
done <messages.jsonl >messages.bin
run "${on_cpu[@]}" "${changed[@]}" --messages-file messages.bin
expect_code 1
expect_in out 'first difference: message 0, values\[2\]: 2\.91666[0-9]+ on cpu'
run "${on_cpu[@]}" --actors slow.hpp --types debugging::Slow --schema smooth.capnp --other good.so --random 50
expect_code 0
run "${on_cpu[@]}" "${good[@]}" --random 50 --any-bits --slot-bytes 4096
expect_code 0

# What cannot be.
run "${on_cpu[@]}"
expect_code 2
expect_in err 'need actors: --actors FILE'
run "${on_cpu[@]}" --actors good.hpp --schema smooth.capnp
expect_code 2
expect_in err '--types'
run "${on_cpu[@]}" --actors none.hpp --types debugging::Good
expect_code 2
expect_in err 'none.hpp: there is no such file'
run "${on_cpu[@]}" --actors good.so --request Nothing
expect_code 2
expect_in err '--request Nothing: the actors answer Smooth \(debugging::Good\)'
run validate --actors good.so
expect_code 2
expect_in err '--against cpu, or --build-library FILE'
run "${on_cpu[@]}" --actors good.hpp --types debugging::Bad --schema smooth.capnp
expect_code 1
expect_in err 'by .*: exit code 1:'
expect_in err 'Bad'
tools=/nonexistent CXX='' run "${on_cpu[@]}" "${good[@]}"
expect_code 3
expect_in err 'there is no capnp on the PATH'
CXX=no-such-compiler run "${on_cpu[@]}" "${good[@]}"
expect_code 3
expect_in err 'CXX is no-such-compiler'
printf '{"values": [1]}\n{"values": "x"}\n' >broken.jsonl
run "${on_cpu[@]}" --actors good.so --messages-file broken.jsonl
expect_code 1
expect_in err 'broken.jsonl, line 2: reading JSON as Smooth: values is "x"; give an array'
printf '{"values": [1]}\0{"values": [2]}\n' >broken.jsonl
run "${on_cpu[@]}" --actors good.so --messages-file broken.jsonl
expect_code 1
expect_in err 'broken.jsonl, line 1: reading JSON as Smooth: byte 15, behind "values", is NUL'
for bytes in 40 4096 "$(($(stat -c %s good.so) / 2))"; do
  head -c "$bytes" good.so >short.so
  run "${on_cpu[@]}" --actors short.so
  expect_code 1
  expect_in err 'loading the actors of short.so: (.*/short.so: file too short|it is cut off: its segments end at byte [0-9]+, and the file has [0-9]+; copy it again)'
done
expect_in err 'it is cut off'
echo 'not a library' >text.so
run "${on_cpu[@]}" --actors text.so
expect_code 1
expect_in err 'loading the actors of text.so'
python3 - <<'PYTHON'
library = bytearray(open("good.so", "rb").read())
at = library.index(b"GyreLib2")
library[at + 8] ^= 1
open("stale.so", "wb").write(library)
PYTHON
run "${on_cpu[@]}" --actors stale.so
expect_code 1
expect_in err 'stale.so: it was built with Gyre [0-9.]+, .* \(headers [0-9a-f]{16}\), and this is Gyre [0-9.]+, .* \(headers [0-9a-f]{16}\)'
if ! nvidia-smi >/dev/null 2>&1; then
  run validate --against cpu --actors good.so
  expect_code 3
fi

if ((failures)); then
  echo "$failures checks failed"
  exit 1
fi
echo "ok"
