#!/usr/bin/env bash
# Proves that a bundle is enough: makes one, and installs it in a fresh clone on a machine that has no network, no
# module cache, no build cache and an empty home folder. Then the demo, the tests of a chapter and all exercises run
# there.
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
  make -C "$learner/clone" down >/dev/null 2>&1 || true
  chmod -R u+w "$learner"
  rm -rf "$learner"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

step make bundle
ls -l out/bundle
mkdir "$learner/home"
git clone -q . "$learner/clone"

# there COMMAND...: runs it as the learner. Nothing but PATH is taken over.
there() {
  env -i HOME="$learner/home" PATH="$PATH" "$PWD/scripts/offline.sh" make -C "$learner/clone" "$@"
}
step there from-bundle FILE="$PWD/out/bundle/operator-workshop-$(go env GOHOSTOS)-$(go env GOHOSTARCH).tar.gz"
du -sh "$learner/home"
step there demo
step there test CH=04
step there exercises-verify
printf '\nall of it: %d s\n' "$SECONDS"
