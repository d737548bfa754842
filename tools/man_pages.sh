#!/usr/bin/env bash
# tools/man_pages.sh OUT PROGRAM...: writes the manual pages of Gyre's programs to OUT, compressed, one for each program
# and one for each of its subcommands. They are made from --help and --version, by help2man (Debian: help2man).
set -euo pipefail
export LC_ALL=C.UTF-8
(($# > 1)) || { echo "usage: tools/man_pages.sh OUT PROGRAM..." >&2; exit 2; }
command -v help2man >/dev/null || { echo "man_pages: help2man is not installed (Debian: help2man)" >&2; exit 2; }
out=$1
shift
mkdir -p "$out"
wrappers="$(mktemp -d)"
trap 'rm -rf "$wrappers"' EXIT

# page NAME SUMMARY SEE_ALSO COMMAND...: of a command whose last words are a subcommand, or none.
page() {
  local name=$1 summary=$2 see=$3
  shift 3
  # help2man calls one program, with --help and with --version, which a subcommand does not take.
  {
    echo '#!/bin/bash'
    echo "if [[ \$1 == --version ]]; then $(printf '%q' "$1") --version | sed '1 s/^[^ ]*/$name/'; exit; fi"
    echo "exec$(printf ' %q' "$@") \"\$@\""
  } >"$wrappers/$name"
  chmod +x "$wrappers/$name"
  printf '[see also]\n%s\n' "$see" >"$wrappers/include"
  help2man --no-info --section 1 --source Gyre --manual 'Gyre' --name "$summary" --include "$wrappers/include" \
    --output "$out/$name.1" "$wrappers/$name"
  gzip -9nf "$out/$name.1"
}

for program; do
  name="$(basename "$program")"
  program="$(realpath "$program")"
  subcommands=() see=''
  while read -r subcommand summary; do
    subcommands+=("$subcommand")
    see+="${see:+,$'\n'}.BR $name-$subcommand (1)"
    page "$name-$subcommand" "${summary%.}" ".BR $name (1)" "$program" "$subcommand"
  done < <("$program" --help | sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) \+\(.*\)/\1 \2/p')
  "$program" --help | grep '^Options:' >/dev/null || { echo "man_pages: $program --help lists no options" >&2; exit 1; }
  page "$name" "$("$program" --help | sed -n '1 {s/^Gyre: //; s/\.\( .*\)\?$//; p}')" "${see:-.BR gyre (1)}" "$program"
done
