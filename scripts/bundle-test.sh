#!/usr/bin/env bash
# Proves that a bundle is enough: makes a bundle, serves it as in a room, and pastes the line of the web page on a
# machine that has no other network, no module cache, no build cache and an empty home folder. Then the demo, the tests
# of a chapter, the window and all exercises run there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

step() {
  local start=$SECONDS
  printf '\n#### %s\n' "$*"
  "$@"
  printf '#### %s: ok (%d s)\n' "$*" $((SECONDS - start))
}

learner=$(mktemp -d)
clean() {
  trap '' INT TERM HUP
  make -C "$learner/operator-workshop-offline" down >/dev/null 2>&1 || true
  chmod -R u+w "$learner"
  rm -rf "$learner"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

step make bundle
ls -l out/bundle
mkdir "$learner/home"

# offline COMMAND...: runs COMMAND as the learner. Of the environment, only PATH is passed on.
offline() { env -i HOME="$learner/home" PATH="$PATH" "$PWD/scripts/offline.sh" "$@"; }
there() { offline make -C "$learner/operator-workshop-offline" "$@"; }

# paste_line PLATFORM: serves the bundle, follows the web page for that platform, and types the code.
# shellcheck disable=SC2016  # the inner bash expands it
paste_line() {
  offline bash -euo pipefail -c '
    scripts/workshop serve-bundle >/dev/null &
    trap "kill $!" EXIT
    until page=$(curl -fs http://127.0.0.1:8400); do
      kill -0 $! || { echo "serve-bundle has ended"; exit 1; }
      sleep 0.2
    done
    line=$(grep -F -A2 "($1):" <<<"$page" | grep "curl ") || { printf "the page has no line for %s:\n%s\n" "$1" "$page"; exit 1; }
    printf "%s\n" "$line"
    code=$(sha256sum out/bundle/SHA256SUMS | cut -c1-20)
    cd "$2" && eval "$line" <<<"$code"' paste "$1" "$learner"
}
# see_the_loop FOLDER: in that checkout, the window shows a page and the loop of a command.
# shellcheck disable=SC2016  # the inner bash expands it
see_the_loop() {
  offline bash -euo pipefail -c '
    cd "$1"
    trap "make down" EXIT
    make up
    scripts/workshop open >"$HOME/window" &
    trap "kill $!; make down" EXIT
    until address=$(grep -o "http://.*" "$HOME/window"); do sleep 0.2; done
    curl -fs -o /dev/null -c "$HOME/cookies" "$address"
    curl -fs -b "$HOME/cookies" "${address%/enter*}/page/README.md" | grep ">Operator workshop</h1>"
    eval "$(scripts/workshop env)"
    kubectl create configmap seen-by-the-lens
    for _ in $(seq 50); do
      if scripts/workshop requests | grep "create.*seen-by-the-lens"; then exit 0; fi
      sleep 0.2
    done
    exit 1' window "$1"
}
step paste_line "$(go env GOHOSTOS)-$(go env GOHOSTARCH)"
du -sh "$learner/home"
step there demo
step there test CH=04
step see_the_loop "$learner/operator-workshop-offline"
step there exercises-verify
printf '\nall of it: %d s\n' "$SECONDS"
