#!/usr/bin/env bash
# The end-to-end test on kind: controller and hook run in one pod, and a real nginx serves the page.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../scripts/kind-lib.sh
. "$here/../../scripts/kind-lib.sh"
cd "$here"

kind_up
! kubectl get crd mywebs.operator.k8s-summit.org >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has MyWebs already, which this test would delete: use another cluster, or kubectl delete crd mywebs.operator.k8s-summit.org."
load_images nginx:1.29-alpine
tmp=$(mktemp -d)
on_exit rm -rf "$tmp"

say "building the operator's image and starting it in the cluster"
CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly GOOS=linux GOARCH=$(docker version -f '{{.Server.Arch}}') \
  go build -o "$tmp/" ./cmd/...
cp config/compositecontroller.yaml "$tmp"
docker build -q -t composite-operator:workshop -f Dockerfile "$tmp" >/dev/null
on_exit docker rmi -f composite-operator:workshop
kind load docker-image --name "$KIND_CLUSTER" composite-operator:workshop
on_exit kubectl delete -k config --ignore-not-found --wait
kubectl apply -k config
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s
on_exit kubectl delete web --all --ignore-not-found --wait
kubectl -n composite-operator rollout status deployment/composite-operator --timeout=180s

# Without a tag the kubelet always pulls, and the cluster may have no registry.
sed 's|image: nginx$|image: nginx:1.29-alpine|' config/samples/myweb.yaml | kubectl apply -f -
completed() { kubectl wait web/myweb --for=jsonpath='{.status.completed}'=true --timeout=120s; }
eventually 30 kubectl get web myweb
completed || { kubectl describe pods; fail "the sample was not served within 120 s"; }
serves() { fetch 30100 | grep -qF -- "$1"; }
eventually 30 serves 'Hello, World!'
say "node port 30100 serves the page of the sample"

kubectl patch web myweb --type=merge -p '{"spec":{"pageContentHtml":"<p>changed: {{ \"quoted\" }}</p>"}}'
eventually 60 serves '<p>changed: {{ "quoted" }}</p>'
say "a changed page is served"

uid=$(kubectl get service myweb -o jsonpath='{.metadata.uid}')
kubectl delete service myweb
back() { local now && now=$(kubectl get service myweb -o jsonpath='{.metadata.uid}') && [[ $now != "$uid" ]]; }
eventually 30 back
eventually 30 serves changed
say "a deleted Service came back"

kubectl delete web myweb
gone() { [[ -z $(kubectl get deployments,services,configmaps,pods -l app.kubernetes.io/instance=myweb -o name) ]]; }
eventually 120 gone
say "deletion left nothing"

kubectl -n composite-operator logs --prefix --tail=-1 -c controller -l app.kubernetes.io/name=composite-operator >"$tmp/log"
! grep -i forbidden "$tmp/log" || fail "the controller lacks the permission above."
say "the end-to-end test is done"
