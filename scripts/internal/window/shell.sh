# shellcheck shell=bash
# The shell of a terminal of the window. It writes marks around each command, by which the window recognises the
# command's output.
set -o pipefail
set +H
unset HISTFILE
bind 'set enable-bracketed-paste on' 2>/dev/null
PS0='\e]7717;C\a'
PS1='\[\e]7717;P\a\]\[\e[2m\]\W $\[\e[0m\] '
PS2='> '
if [ -n "${WINDOW_LOAD-}" ]; then
  eval "$WINDOW_LOAD"
  unset WINDOW_SAVE
fi
__mark() {
  local code=$?
  printf '\e]7717;E%d\a' "$code"
  if [ -n "${WINDOW_SAVE-}" ]; then eval "$WINDOW_SAVE"; fi
  return "$code"
}
PROMPT_COMMAND=__mark
