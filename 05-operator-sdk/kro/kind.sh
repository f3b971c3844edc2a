#!/usr/bin/env bash
# The end-to-end test on kind: kro in the cluster with least permissions, a MyWeb of the graph, the page over HTTP.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../scripts/kind-lib.sh
. "$here/../../scripts/kind-lib.sh"
cd "$here"

kind_up
for kind in mywebs.operator.k8s-summit.org resourcegraphdefinitions.kro.run; do
  ! kubectl get crd "$kind" >/dev/null 2>&1 ||
    fail "the cluster $KIND_CLUSTER has $kind already, which this test would delete: use another cluster, or kubectl delete crd $kind."
done
load_images nginx:1.29-alpine
tmp=$(mktemp -d)
on_exit rm -rf "$tmp"

say "building kro's image and starting it in the cluster"
CGO_ENABLED=0 GOWORK=off GOOS=linux GOARCH=$(docker version -f '{{.Server.Arch}}') \
  go build -C controller -ldflags=-s -o "$tmp/kro" github.com/kubernetes-sigs/kro/cmd/controller
printf 'FROM scratch\nCOPY kro /\nUSER 65532:65532\nENTRYPOINT ["/kro"]\n' >"$tmp/Dockerfile"
docker build -q -t kro:workshop "$tmp" >/dev/null
on_exit docker rmi -f kro:workshop
kind load docker-image --name "$KIND_CLUSTER" kro:workshop
on_exit kubectl delete crd mywebs.operator.k8s-summit.org --ignore-not-found --wait
on_exit kubectl delete -k config --ignore-not-found --wait
kubectl apply -k config
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s
on_exit kubectl delete -f config/graph --ignore-not-found --wait
kubectl apply -f config/graph
kubectl -n kro-system rollout status deployment/kro --timeout=180s
eventually 60 kubectl wait --for=jsonpath='{.status.state}'=Active -f config/graph --timeout=60s
say "the graph is active: kro made the CRD of MyWeb"

on_exit kubectl delete web --all --ignore-not-found --wait
# The long name of an image that was loaded: without a tag the kubelet always pulls.
sed 's|image: nginx$|image: docker.io/library/nginx:1.29-alpine|' config/samples/myweb.yaml | kubectl apply -f -
completed() { kubectl wait web/myweb --for=jsonpath='{.status.completed}'=true --timeout=120s; }
serves() { fetch 30100 | grep -qF -- "$1"; }
completed || { kubectl describe pods; fail "the sample was not served within 120 s"; }
kubectl get web myweb
eventually 30 serves 'Hello, World!'
say "node port 30100 serves the page of the sample"

kubectl patch web myweb --type=merge -p '{"spec":{"pageContentHtml":"<p>changed: {{ \"quoted\" }}</p>","replicas":2}}'
eventually 60 serves '<p>changed: {{ "quoted" }}</p>'
ready() { [[ $(kubectl get web myweb -o jsonpath='{.status.completed} {.status.readyReplicas}') == "true 2" ]]; }
eventually 120 ready
say "a changed page is served, by two pods"

uid=$(kubectl get service myweb -o jsonpath='{.metadata.uid}')
kubectl delete service myweb
back() {
  local now
  now=$(kubectl get service myweb -o jsonpath='{.metadata.uid}') && [[ $now != "$uid" ]]
}
eventually 60 back
eventually 30 serves changed
say "a deleted Service came back, on its port"

kubectl delete web myweb
gone() { [[ -z $(kubectl get deployments,services,configmaps,pods -l app.kubernetes.io/instance=myweb -o name) ]]; }
eventually 120 gone
say "deletion left nothing"

! kubectl -n kro-system logs --tail=-1 -l app.kubernetes.io/name=kro | grep -i forbidden ||
  fail "kro lacks the permission above."
say "the end-to-end test is done"
