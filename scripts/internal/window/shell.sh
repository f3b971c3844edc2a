# shellcheck shell=bash
# The shell of a terminal of the window. It writes marks around each command, by which the window recognises the
# command's output.
set -o pipefail
set +H
unset HISTFILE
bind 'set enable-bracketed-paste on' 2>/dev/null
PS0='\e]7717;C\a'
# shellcheck disable=SC2016 # the prompt expands it
PS1='\[\e]7717;P\a\]\[\e[2m\]${__folder} $\[\e[0m\] '
PS2='> '
if [ -n "${WINDOW_LOAD-}" ]; then
  eval "$WINDOW_LOAD"
  unset WINDOW_SAVE
fi
# The window presses this key before a block. Until the block has ended, the shell stops at the first error, as the page
# runner does with set -e, but the shell itself stays. A block runs in the folder where the block before it has ended,
# also when the reader has gone to another folder meanwhile.
__home=$PWD
bind -x '"\e[7717~": __strict' 2>/dev/null
__strict() {
  if [ "$PWD" != "$__home" ]; then
    printf '\r\n(back to the folder of the page: cd %s)\r\n' "$__home"
    cd "$__home" || return
  fi
  __traps="trap - ERR DEBUG; $(trap -p ERR DEBUG)"
  set -E
  trap '__failed $?' ERR
}
__failed() {
  if [ "$BASH_SUBSHELL" -gt 0 ]; then exit "$1"; fi
  printf '\e]7717;E%d\a' "$1"
  set -T
  trap __skip DEBUG
  kill -INT $$
}
# Skips a line after the failed line, because a line that was interrupted does not end the input.
__skip() {
  if [ "$BASH_COMMAND" = __mark ]; then trap - DEBUG; return; fi
  if [ "$BASH_SUBSHELL" -gt 0 ]; then exit 1; fi
  kill -INT $$
}
__mark() {
  local code=$?
  if [ -n "${__traps-}" ]; then
    __home=$PWD
    set +ET
    eval "$__traps"
    __traps=
  fi
  printf '\e]7717;E%d\a' "$code"
  case $PWD in
    "$WINDOW_ROOT") __folder=${PWD##*/} ;;
    "$WINDOW_ROOT"/*) __folder=${PWD#"$WINDOW_ROOT"/} ;;
    *) __folder=$PWD ;;
  esac
  if [ "$PWD" != "$WINDOW_ROOT" ]; then printf '\e]7717;A\a'; fi
  if [ -n "${WINDOW_SAVE-}" ]; then
    eval "$WINDOW_SAVE"
    printf '%s\n' "$__home" >"$PAGE_STATE/cwd"
  fi
  return "$code"
}
PROMPT_COMMAND=__mark
