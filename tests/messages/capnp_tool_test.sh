#!/usr/bin/env bash
# Messages made by the capnp tool go through a Mirror and are printed by the capnp tool: as one segment and as many,
# plain and packed. What it prints of a reply must be, letter for letter, what it prints of the request.
#   capnp_tool_test.sh CAPNP SCHEMA make FOLDER             the requests, FOLDER/*.stream and FOLDER/*.packed
#   capnp_tool_test.sh CAPNP SCHEMA check FOLDER            compares the *.reply beside them
#   capnp_tool_test.sh CAPNP SCHEMA test MIRROR_MESSAGES …  all of it; … are options, --engine cpu for instance
# A machine with a GPU needs no capnp tool: make the files here; there run
#   mirror_messages --engine cuda FOLDER/*.stream && mirror_messages --engine cuda --packed FOLDER/*.packed
# bring the folder back, and check it here. SCHEMA is kinds.capnp.
set -euo pipefail
capnp="$1" schema="$(realpath "$2")"

fail() { echo "FAILED: $*" >&2; exit 1; }

# The requests as text, one a file: name it, and say it.
say_requests() {
  say() { printf '%s\n' "$2" >"$1.txt"; }
  say nothing '()'
  say scalars '(boolean = true, booleanDefault = false, i8 = -1, i8Default = 127, i16 = -2, i16Default = 0,
    i32 = -3, i32Default = 2147483647, i64 = -4, i64Default = 9223372036854775807, u8 = 200, u8Default = 0,
    u16 = 60000, u16Default = 1, u32 = 4000000000, u32Default = 2, u64 = 18000000000000000000, u64Default = 3,
    f32 = 1.5, f32Default = -inf, f32Whole = 0, f32Infinite = nan, f32None = 2.25, f64 = 1e300, f64Default = nan,
    f64Infinite = inf, f64None = -0.1, colour = infraRed, colourDefault = red, int = -30, anHTTPCode = 404,
    flag = true)'
  say lists '(i8s = [-128, 0, 127], i16s = [-32768, 1], i32s = [7], i64s = [-9223372036854775808, 5],
    u8s = [0, 255, 1], u16s = [65535], u32s = [4294967295, 0, 1], u64s = [18446744073709551615],
    f32s = [0.5, -inf, nan], f64s = [1e-300, 2], colours = [red, default, infraRed],
    bits = [true, false, true, true, false, false, true, false, true], voids = [void, void],
    texts = ["", "grüße", "a\nb\"c"], datas = [0x"00 ff", "", 0x"80"],
    points = [(x = 1, label = "one"), (), (y = -2)], swatches = [(colour = red, name = "r"), ()],
    rows = [[1, 2], [], [3]], textRows = [["a", ""], []], bitRows = [[true], [false, true]],
    pointCubes = [[[(x = 1), (y = 2)], []], [], [[(label = "deep")]]])'
  say absent_and_empty '(text = "", textDefault = "", data = "", dataDefault = "", point = (), tree = (),
    i8s = [], texts = [], points = [], rows = [[]], f32sDefault = [], bitsDefault = [], textsDefault = [],
    pointsDefault = [], rowsDefault = [], emptyDefault = "not empty")'
  say defaults_changed '(textDefault = "changed", dataDefault = 0x"01", pointDefault = (x = 1),
    f32sDefault = [7], bitsDefault = [false], textsDefault = ["", "two"], pointsDefault = [(y = 7, label = "")],
    rowsDefault = [[], [5, -6]])'
  say objects '(text = "a text", data = 0x"de ad be ef", point = (x = -1, y = -2, label = "p"),
    swatch = (colour = default, name = "dark"),
    tree = (value = 1, left = (value = 2, left = (value = 3)), children = [(value = 4, children = [(value = 5)]), ()]),
    place = (line = 12, column = 4, file = "main.c", view = (folded = true, colour = red)))'
  local count=0 member
  for member in 'shape = (none = void)' 'shape = (circle = 2.5)' 'shape = (caption = "caption")' \
    'shape = (caption = "another")' 'shape = (box = (width = 1, height = 2.5, tags = ["a", "b"], open = true))' \
    'shape = (box = (corner = (radius = 0.25)))' 'shape = (box = (corner = (sharp = void)))' \
    'shape = (corners = [(x = 1), (x = 2, label = "corner")])' 'shape = (centre = (x = 3, label = "centre"))' \
    'shape = (filled = false)' 'shape = (filled = true)' 'unset = void' 'number = -77' 'number = 5' \
    'word = "word"' 'pair = (first = 1, second = 200)' 'pair = ()' 'bytes = 0x"01 02 03 04 05 06 07 08 09"' \
    'trees = [(value = 1, left = (value = 2)), (children = [(), (value = 3)])]'; do
    count=$((count + 1))
    say "union_$count" "($member)"
  done
  say large "($(printf 'i64s = [%s0], ' "$(seq -s, -2000 2000),")
    text = \"$(printf 'long %.0s' {1..5000})\",
    points = [$(printf '(x = %d, label = "point"), ' {1..1500})()],
    textRows = [$(printf '["row", "%d"], ' {1..500})[]],
    bits = [$(printf 'true, false, %.0s' {1..2000})true])"
  cat nothing.txt scalars.txt lists.txt objects.txt >several_messages.txt
}

encode() { "$capnp" encode "${@:2}" "$schema" Kinds <"$1.txt"; }
decode() { "$capnp" decode "$@" "$schema" Kinds; }

make_requests() {
  mkdir -p "$1"
  cd "$1"
  say_requests
  local text name words
  for text in *.txt; do
    name="${text%.txt}"
    encode "$name" >"$name.stream"
    encode "$name" --packed >"$name.packed"
    words=1                                       # a segment for each object,
    if [[ $name == large ]]; then words=100; fi  # and fewer than the 512 that a stream may have
    encode "$name" --segment-size=$words >"$name.segments.stream"
    encode "$name" --segment-size=$words --packed >"$name.segments.packed"
  done
  # The first word of a stream says how many segments there are, less one.
  (($(od -An -tu4 -N4 lists.segments.stream) > 10)) || fail "lists.segments.stream is of few segments"
  (($(od -An -tu4 -N4 lists.stream) == 0)) || fail "lists.stream is of several segments"
}

check_replies() {
  cd "$1"
  local request count=0 packed
  for request in *.stream *.packed; do
    packed=()
    if [[ $request == *.packed ]]; then packed=(--packed); fi
    [[ -f $request.reply ]] || fail "$request has no reply"
    decode "${packed[@]}" <"$request" >sent || fail "$request cannot be decoded"
    decode "${packed[@]}" <"$request.reply" >received || fail "$request.reply cannot be decoded"
    [[ -s sent ]] || fail "$request is empty"
    diff sent received >&2 || fail "the reply to $request says something else"
    count=$((count + 1))
  done
  echo "$count files of messages came back as they were sent"
}

case "$3" in
  make) make_requests "$4" ;;
  check) check_replies "$4" ;;
  test)
    folder="$(mktemp -d)"
    trap 'rm -rf "$folder"' EXIT
    mirror="$4"
    options=("${@:5}")
    (make_requests "$folder")
    "$mirror" "${options[@]}" "$folder"/*.stream || fail "mirror_messages ended with $?"
    "$mirror" "${options[@]}" --packed "$folder"/*.packed || fail "mirror_messages --packed ended with $?"
    (check_replies "$folder")
    "$mirror" "${options[@]}" <"$folder/lists.stream" | cmp - "$folder/lists.stream.reply" || fail "standard input"
    ;;
  *) fail "unknown command $3" ;;
esac
