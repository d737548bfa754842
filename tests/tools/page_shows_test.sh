#!/usr/bin/env bash
# page_shows_test.sh PAGE DIR...: the code blocks of a page that say which file they are from are in that file, to the
# letter. A block says so in the line above it: <!-- part of FILE --> or <!-- all of FILE -->, FILE below one of the
# DIRs. At least one block must.
set -euo pipefail
page=$1
shift
checked=0
failures=0

fail() {
  echo "FAILED: $page, line $1: $2"
  failures=$((failures + 1))
}

# check LINE part|all FILE TEXT DIR...
check() {
  local line=$1 share=$2 name=$3 text=$4 dir file=
  shift 4
  for dir; do
    if [[ -f $dir/$name ]]; then file=$dir/$name; fi
  done
  if [[ -z $file ]]; then
    fail "$line" "there is no $name"
  elif [[ $share == all && $text != "$(cat "$file")" ]]; then
    fail "$line" "the block is not $name:"
    diff <(echo "$text") "$file" || true
  elif [[ $'\n'$(cat "$file")$'\n' != *$'\n'"$text"$'\n'* ]]; then
    fail "$line" "the block's lines do not stand in $name one after another:"
    sed 's/^/  | /' <<<"$text"
  fi
  checked=$((checked + 1))
}

number=0 share='' name='' text='' inside=no
while IFS= read -r line; do
  number=$((number + 1))
  if [[ $inside == yes && $line == '```' ]]; then
    check "$begin" "$share" "$name" "${text%$'\n'}" "$@"
    inside=no name=''
  elif [[ $inside == yes ]]; then
    text+=$line$'\n'
  elif [[ -n $name && $line == '```'* ]]; then
    inside=yes begin=$number text=''
  elif [[ -n $name ]]; then
    fail "$number" "no code block follows «$name»"
    name=''
  elif [[ $line =~ ^'<!-- '(part|all)' of '([^ ]+)' -->'$ ]]; then
    share=${BASH_REMATCH[1]} name=${BASH_REMATCH[2]}
  fi
done <"$page"
[[ $inside == no && -z $name ]] || fail "$number" "the last block does not end"
[[ $checked -gt 0 ]] || fail "$number" "no block says which file it is from"
[[ $failures -eq 0 ]] && echo "$checked blocks stand in their files"
exit $((failures != 0))
