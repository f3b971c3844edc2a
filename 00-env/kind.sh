#!/usr/bin/env bash
# Runs the checks of this chapter on the kind cluster named by KIND_CLUSTER, where containers run, and checks the output
# of lookaround about that cluster. Exits 0, or prints the difference.
set -euo pipefail
# shellcheck source=../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/kind-chapter.sh"

ns=chapter-00-kind

cleanup() {
  kubectl delete namespace "$ns" --ignore-not-found --timeout=120s >/dev/null
}

# log_is TEXT POD: the container of the pod printed exactly TEXT.
log_is() { [[ $(kubectl --namespace "$ns" logs "$2") == "$1" ]]; }

kind_up
load_images nginx:latest busybox:1.37
on_exit cleanup
cleanup # objects of an interrupted run

say "The checks of the local environment, with real kubelets"
WORKSHOP_KUBECONFIG=$KUBECONFIG go test -count=1 -run '^TestCluster' . ||
  fail "a check that holds in the local environment does not hold on kind; go test names it above."

say "What lookaround says"
seen=$(go run ./cmd/lookaround) || fail "lookaround cannot look at the kind cluster; its reason is above."
printf '%s\n' "$seen"
[[ $seen == *$'\nCluster: a cluster with real kubelets'* ]] ||
  fail "lookaround should call this a cluster with real kubelets, but says '$(grep '^Cluster' <<<"$seen")'."

say "A container runs, so there is a log"
kubectl create namespace "$ns" >/dev/null
eventually 30 kubectl --namespace "$ns" get serviceaccount default # without it, no pod is admitted
kubectl --namespace "$ns" run speaker --image=busybox:1.37 --image-pull-policy=IfNotPresent \
  --restart=Never -- echo "I am real" >/dev/null
eventually 90 log_is "I am real" speaker

say "Chapter 00 holds on kind."
