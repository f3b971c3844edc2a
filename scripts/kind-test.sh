#!/usr/bin/env bash
# Runs the end-to-end tests of chapters on one kind cluster: kind-test.sh CHAPTER... Each test must leave the cluster as
# it found it. A cluster that did not exist before is removed at the end. RECORD=1 records in verified.txt, and in the
# README, which chapters worked on which Kubernetes, and at which commit.
set -euo pipefail
# shellcheck source=kind-lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/kind-lib.sh"
# shellcheck source=record.sh
. "$root/scripts/record.sh"

need_docker
"$root/scripts/workshop" tools kind
PATH=$root/bin:$PATH
kind_exists || on_exit kind_down
start=$SECONDS
(kind_up)
say "cluster $KIND_CLUSTER is up ($((SECONDS - start)) s)"

# objects: lists the objects in the cluster, except objects that come and go by themselves.
objects() {
  local kinds
  kinds=$(kubectl api-resources --verbs=list -o name | grep -vE '^(events|componentstatuses|leases|ipaddresses|endpoints|endpointslices|certificatesigningrequests)(\.|$)' | paste -sd, -)
  kubectl get "$kinds" -A -o 'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}' |
    grep -v ' kube-system/bootstrap-token-' | sort
}

# as_found BEFORE: the cluster has the same objects as before. Objects in deletion get a minute.
as_found() {
  local end=$((SECONDS + 60)) left
  until left=$(diff <(printf '%s\n' "$1") <(objects)); do
    if ((SECONDS >= end)); then
      printf 'the cluster is not as it was found (< before, > now):\n%s\n' "$left" >&2
      return 1
    fi
    sleep 1
  done
}

export KUBECONFIG=$kind_kubeconfig
eventually 120 kubectl wait deployments -A --all --for=condition=Available --timeout=5s
commit=$(tested_commit)
version=$(kubectl get nodes -o jsonpath='{.items[0].status.nodeInfo.kubeletVersion}')
arch=$(kubectl get nodes -o jsonpath='{.items[0].status.nodeInfo.architecture}')
failed=()
lines=()
for chapter in "$@"; do
  if [[ ! -x $root/$chapter/kind.sh ]]; then
    lines+=("$chapter: has no kind.sh")
    failed+=("$chapter")
    continue
  fi
  say "$chapter"
  before=$(objects) || { sleep 5; before=$(objects); } # a kind of the previous chapter may disappear during the listing
  start=$SECONDS
  if "$root/$chapter/kind.sh" && as_found "$before"; then
    lines+=("$chapter: ok ($((SECONDS - start)) s)")
    [[ -z ${RECORD-} ]] || record "$chapter" $((SECONDS - start)) "$version" "$arch" "$commit"
  else
    lines+=("$chapter: FAILED ($((SECONDS - start)) s)")
    failed+=("$chapter")
  fi
done
printf '\n'
printf '%s\n' "${lines[@]}"
((${#failed[@]} == 0)) || fail "not as expected: ${failed[*]}"
