#!/usr/bin/env bash
# The end-to-end test on kind: the controller runs here, its pods run there, the page comes over HTTP.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../scripts/kind-lib.sh
. "$here/../scripts/kind-lib.sh"
cd "$here"
export CGO_ENABLED=0 GOWORK=off

kind_up
! kubectl get crd mywebs.operator.k8s-summit.org >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has MyWebs already, which this test would delete: use another cluster, or kubectl delete crd mywebs.operator.k8s-summit.org."
load_images nginx:1.29-alpine
tmp=$(mktemp -d)
on_exit rm -rf "$tmp"
on_exit kubectl delete -f config/crd --ignore-not-found --wait
kubectl apply -f config/crd
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s

say "starting the operator"
go build -o "$tmp/myweb-controller" ./cmd/myweb-controller
"$tmp/myweb-controller" --health-probe-bind-address=0 >"$tmp/log" 2>&1 &
operator=$!
on_exit kill_quietly "$operator"
on_exit kubectl delete web --all --ignore-not-found --wait

# Without a tag the kubelet always pulls, and the cluster may have no registry: the sample runs with an image that
# was loaded, under its long name, so that the short one is a change.
tagged() { sed 's|image: nginx$|image: docker.io/library/nginx:1.29-alpine|' config/samples/myweb.yaml; }
kubectl apply --dry-run=server -f config/samples/myweb.yaml
tagged | kubectl apply -f -
completed() { kubectl wait web/myweb --for=jsonpath='{.status.completed}'=true --timeout=120s; }
serves() { fetch 30100 | grep -qF -- "$1"; }
completed || { cat "$tmp/log"; kubectl describe pods; fail "the sample was not served within 120 s"; }
kubectl get web myweb
eventually 30 serves 'Hello, World!'
say "node port 30100 serves the page of the sample"

kubectl patch web myweb --type=merge -p '{"spec":{"pageContentHtml":"<p>changed: {{ \"quoted\" }}</p>"}}'
eventually 60 serves '<p>changed: {{ "quoted" }}</p>'
say "a changed page is served"

kubectl patch web myweb --type=merge -p '{"spec":{"image":"nginx:1.29-alpine","replicas":3}}'
kubectl scale web myweb --replicas=2
ready() {
  [[ $(kubectl get web myweb -o jsonpath='{.status.completed} {.status.readyReplicas}') == "true 2" ]] &&
    [[ $(kubectl get pods -l app.kubernetes.io/instance=myweb -o jsonpath='{.items[*].spec.containers[0].image}') == "nginx:1.29-alpine nginx:1.29-alpine" ]]
}
eventually 120 ready
say "two pods of another image are ready"

uid=$(kubectl get service myweb -o jsonpath='{.metadata.uid}')
kubectl delete service myweb
back() {
  local now
  now=$(kubectl get service myweb -o jsonpath='{.metadata.uid}') && [[ $now != "$uid" ]]
}
eventually 30 back
eventually 30 serves changed
say "a deleted Service came back on its port"

uid=$(kubectl get pods -l app.kubernetes.io/instance=myweb -o jsonpath='{.items[0].metadata.uid}')
kubectl delete pod --grace-period=0 --force --wait=false -l app.kubernetes.io/instance=myweb 2>/dev/null
replaced() { ready && [[ $(kubectl get pods -l app.kubernetes.io/instance=myweb -o jsonpath='{.items[*].metadata.uid}') != *"$uid"* ]]; }
eventually 120 replaced
eventually 30 serves changed
say "killed pods were replaced"

kubectl delete web myweb
gone() { [[ -z $(kubectl get deployments,services,configmaps,pods -l app.kubernetes.io/instance=myweb -o name) ]]; }
eventually 120 gone
say "deletion left nothing"

kill "$operator"
wait "$operator" || fail "the operator ended with code $?: $(tail -n 3 "$tmp/log")"
# A conflict is not a failure: it is retried, and all of the above came true.
! grep '"level":"ERROR"' "$tmp/log" | grep -v 'the object has been modified' || fail "the operator logged the error above."
say "the end-to-end test is done"
