#!/usr/bin/env bash
# Walks chapters on one kind cluster: kind-test.sh CHAPTER... A cluster that was not there before is
# removed at the end.
set -euo pipefail
# shellcheck source=kind-lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/kind-lib.sh"

need_docker
"$root/scripts/workshop" tools kind
PATH=$root/bin:$PATH
kind_exists || on_exit kind_down
start=$SECONDS
(kind_up)
say "cluster $KIND_CLUSTER is up ($((SECONDS - start)) s)"

failed=()
lines=()
for chapter in "$@"; do
  if [[ ! -x $root/$chapter/kind.sh ]]; then
    lines+=("$chapter: has no kind.sh")
    failed+=("$chapter")
    continue
  fi
  say "$chapter"
  start=$SECONDS
  if "$root/$chapter/kind.sh"; then
    lines+=("$chapter: ok ($((SECONDS - start)) s)")
  else
    lines+=("$chapter: FAILED ($((SECONDS - start)) s)")
    failed+=("$chapter")
  fi
done
printf '\n'
printf '%s\n' "${lines[@]}"
((${#failed[@]} == 0)) || fail "not as expected: ${failed[*]}"
