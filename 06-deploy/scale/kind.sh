#!/usr/bin/env bash
# The end-to-end test on kind: three replicas with a shard each, one of them is killed, and every MyWeb is served.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

namespaces="shop blog docs wiki mail chat"
begin_myweb

say "building the image of a shard, and starting three replicas"
for_node go build -ldflags=-s -o "$tmp/myweb-shard" ./cmd/myweb-shard
from_scratch "$tmp" myweb-shard
image myweb-shard:workshop "$tmp"
on_exit kubectl delete -f config/crd --ignore-not-found --wait
kubectl apply -f config/crd
kubectl wait --for=condition=Established -f config/crd --timeout=60s
deploy() { kubectl kustomize --load-restrictor=LoadRestrictionsNone config/deploy; }
# shellcheck disable=SC2086
on_exit kubectl delete namespace $namespaces --ignore-not-found --wait
on_exit bash -c 'kubectl kustomize --load-restrictor=LoadRestrictionsNone config/deploy | kubectl delete -f - --ignore-not-found --wait'
deploy | kubectl apply -f -
kubectl -n myweb-shards rollout status statefulset/myweb-shard --timeout=120s

holders() {
  kubectl -n myweb-shards get leases -o jsonpath='{range .items[*]}{.spec.holderIdentity}{"\n"}{end}' | sed -n 's/_.*//p' | sort
}
if kubectl -n myweb-shards logs myweb-shard-0 | grep -q 'does not filter by shardSelector'; then
  fail "the API server of $KIND_CLUSTER has no feature gate ShardedListAndWatch: make kind-down, and start again."
fi
three_hold() { [[ $(holders | tr '\n' ' ') == "myweb-shard-0 myweb-shard-1 myweb-shard-2 " ]]; }
eventually 60 three_hold
say "each replica holds the lease of its shard"

all_complete() { # PAGE
  local namespace
  for namespace in $namespaces; do
    [[ $(kubectl -n "$namespace" get web web -o jsonpath='{.status.completed} {.status.observedGeneration}') == \
      "true $(kubectl -n "$namespace" get web web -o jsonpath='{.metadata.generation}')" ]] || return 1
    [[ $(kubectl -n "$namespace" get configmap web -o jsonpath='{.data.index\.html}') == "$1" ]] || return 1
  done
}
for namespace in $namespaces; do
  kubectl create namespace "$namespace"
  kubectl -n "$namespace" apply -f - <<EOF
apiVersion: operator.k8s-summit.org/v1
kind: MyWeb
metadata: {name: web}
spec: {image: "nginx:1.29-alpine", pageContentHtml: first}
EOF
done
eventually 180 all_complete first
say "the MyWebs of all namespaces are served"

kubectl -n myweb-shards delete pod myweb-shard-1 --grace-period=0 --force
for namespace in $namespaces; do
  kubectl -n "$namespace" patch web web --type=merge -p '{"spec":{"pageContentHtml":"second"}}'
done
eventually 120 all_complete second
eventually 60 three_hold
say "one replica was killed: nothing is lost"

# The log of a replica names each MyWeb that it served.
for namespace in $namespaces; do
  served=0
  for shard in 0 1 2; do
    if kubectl -n myweb-shards logs "myweb-shard-$shard" | grep 'Applied child' | grep -qF "\"namespace\":\"$namespace\""; then
      served=$((served + 1))
    fi
  done
  ((served <= 1)) || fail "$served replicas served the namespace $namespace."
done
say "no namespace was served by two replicas"
say "the end-to-end test is done"
