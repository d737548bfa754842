# Bash completion of gyre, gyre-bench, gyre-nats and gyre-ask, read from their own --help, so that it is never older than the program.

# Prints the subcommands that the help text on standard input lists.
_gyre_subcommands() { sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) .*/\1/p'; }
# Prints the long options that it lists.
_gyre_options() { sed -n 's/^  \(-[a-zA-Z],\)\?\(--[a-z][a-z-]*\).*/\2/p'; }
# Prints the values that it lists for the option $1, where it says `one, two or three (…)`, `{one,two}`.
_gyre_values() {
  sed -n -e "s/^  \(-[a-zA-Z],\)\?$1 [A-Z]*:{\([^}]*\)}.*/\2/p" -e "s/^  \(-[a-zA-Z],\)\?$1 NAME *\(.*\)/\2/p" |
    sed 's/([^)]*)//g; s/ or /, /g' | tr ',' '\n' | sed -n 's/^ *\([a-z_-]\+\) *$/\1/p'
}

_gyre() {
  local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} subcommand='' help choices
  if ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]]; then subcommand=${COMP_WORDS[1]}; fi
  # shellcheck disable=SC2086  # none, or one word
  help="$("$program" $subcommand --help 2>/dev/null)" || return 0
  if [[ $word == -* ]]; then
    choices="$(_gyre_options <<<"$help")"
  elif [[ $before == --* ]]; then
    choices="$(_gyre_values "$before" <<<"$help")"
  elif [[ ! $subcommand ]]; then
    choices="$(_gyre_subcommands <<<"$help")"
  fi
  mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -o default -F _gyre gyre gyre-bench gyre-nats gyre-ask
