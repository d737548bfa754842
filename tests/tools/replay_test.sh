#!/usr/bin/env bash
# gyre replay beside --record: what it prints, what its JSON holds, and how it ends.
# usage: replay_test.sh GYRE AVERAGES_PLUGIN
set -euo pipefail
gyre=$(realpath "$1") plugin=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "replay_test: $1" >&2; shift; printf '%s\n' "$@" >&2; exit 1; }

# ends CODE ARGUMENT...: gyre replay ends with this code; its output is in `out`.
ends() {
  local wanted=$1 code=0
  shift
  "$gyre" replay "$@" >out 2>err || code=$?
  [[ $code -eq $wanted ]] || fail "gyre replay $* ends with $code, not $wanted" "$(cat out err)"
}

"$gyre" validate --against cpu --engine cpu --actors "$plugin" --random 300 --keys 5 --workers 2 --record recorded \
  >out 2>&1 || fail "recording does not work" "$(cat out)"
ends 0 recorded --actors "$plugin"
grep -q '^recorded: 300 messages and 300 outcomes, by Gyre .* on CPU, 2 worker threads, 2 workers$' out || fail "the head" "$(cat out)"
grep -q '^replayed 300 messages: 300 outcomes are the same, 0 differ$' out || fail "the result" "$(cat out)"
ends 0 recorded --actors "$plugin" --seed 7 --json -
python3 - out <<'PYTHON' || fail "the JSON is not what is documented" "$(cat out)"
import json, sys
document = json.load(open(sys.argv[1]))
assert document["recorded"] == {"messages": 300, "outcomes": 300, "dropped": 0}, document
assert (document["replayed"], document["same"], document["different"]) == (300, 300, 0), document
assert document["differences"] == [] and document["without_buffers"] == 0, document
PYTHON

# Handlers that say how long they took differ from run to run.
"$gyre" validate --engine cpu --messages 20 --record built_in >out 2>&1 || fail "recording does not work" "$(cat out)"
ends 1 built_in --most 1
grep -q '^message [0-9]*, ask of gyre::actors::VectorAdd .*: processingNs recorded [0-9]*, replayed [0-9]*$' out ||
  fail "the difference is not named" "$(cat out)"
grep -q '^and [0-9]* more; --most says how many are shown$' out || fail "the others are not counted" "$(cat out)"
ends 0 built_in --ignore processingNs
grep -q '^not compared, for buffers are not recorded: [0-9]* messages that name one$' out || fail "buffers" "$(cat out)"

ends 2 recorded  # by the built-in actors
grep -q 'averages::Average, message ' err || fail "the missing handler is not named" "$(cat err)"
ends 2 nothing_there
ends 2
echo "Dear diary, nothing happened today, and nobody came." >diary
ends 2 diary
grep -q 'it does not begin as one' err || fail "a file that is no recording" "$(cat err)"

# A program that is killed leaves what there is.
head -c 20000 built_in >cut
ends 0 cut --ignore processingNs
grep -q '^the recording has no end' out || fail "the missing end is not said" "$(cat out)"
echo ok
