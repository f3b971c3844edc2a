#!/usr/bin/env bash
# Runs one step of the nightly workflow by hand, and records its result in nightly.txt and CONTRIBUTING.md:
#
#   scripts/nightly.sh 'make mutants'
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=record.sh
. "$root/scripts/record.sh"
cd "$root"
step=${1:?"usage: scripts/nightly.sh STEP, a command of .github/workflows/nightly.yaml"}

commit=$(tested_commit)
result=ok
bash -c "$step" || result=failed
pattern=$(printf '%s' "$step" | sed 's/[].[*^$\\]/\\&/g')
row nightly.txt CONTRIBUTING.md "^$pattern *20" \
  "$(printf '%-60s %-11s %-11s %7s  %s' step on commit took result)" \
  "$(printf '%-60s %-11s %-11s %5d s  %s' "$step" "$(date -u +%F)" "$commit" "$SECONDS" "$result")"
[[ $result == ok ]]
