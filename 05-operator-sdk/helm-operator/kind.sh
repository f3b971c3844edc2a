#!/usr/bin/env bash
# The end-to-end test on kind: the program and the chart run in the cluster, with the roles of config/rbac, and a real
# nginx serves the page.
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
  go build -o "$tmp/helm-operator" github.com/operator-framework/helm-operator-plugins
cp -R watches.yaml charts "$tmp"
docker build -q -t helm-operator:workshop -f Dockerfile "$tmp" >/dev/null
on_exit docker rmi -f helm-operator:workshop
kind load docker-image --name "$KIND_CLUSTER" helm-operator:workshop
on_exit kubectl delete -k config --ignore-not-found --wait
kubectl apply -k config
eventually 60 kubectl wait --for=condition=Established -f config/crd/generated --timeout=60s
# Before the operator goes: it removes their finalizers.
on_exit kubectl delete web --all --ignore-not-found --wait --timeout=60s
kubectl -n helm-operator rollout status deployment/helm-operator --timeout=180s

# Without a tag the kubelet always pulls, and the cluster may have no registry.
sed 's|image: nginx$|image: nginx:1.29-alpine|' config/samples/myweb.yaml | kubectl apply -f -
kubectl wait web/myweb --for=condition=Deployed --timeout=60s || fail "the sample was not installed within 60 s."
kubectl rollout status deployment/myweb --timeout=120s || { kubectl describe pods; fail "the pods of the sample are not ready."; }
serves() { fetch 30100 | grep -qF -- "$1"; }
eventually 30 serves 'Hello, World!'
say "node port 30100 serves the page of the sample"

kubectl patch web myweb --type=merge -p '{"spec":{"pageContentHtml":"<p>changed: {{ \"quoted\" }}</p>"}}'
eventually 60 serves '<p>changed: {{ "quoted" }}</p>'
[[ $(kubectl get secrets -l owner=helm,name=myweb -o name | wc -l) -eq 2 ]] || fail "a changed page did not make a second release."
say "a changed page is served, by the second release"

uid=$(kubectl get service myweb -o jsonpath='{.metadata.uid}')
kubectl delete service myweb
back() { local now && now=$(kubectl get service myweb -o jsonpath='{.metadata.uid}') && [[ $now != "$uid" ]]; }
eventually 30 back
eventually 30 serves changed
say "a deleted Service came back"

kubectl delete web myweb --timeout=60s
gone() { [[ -z $(kubectl get deployments,services,configmaps,pods -l app.kubernetes.io/instance=myweb -o name) ]]; }
eventually 120 gone
[[ -z $(kubectl get secrets -l owner=helm,name=myweb -o name) ]] || fail "the deletion left a release behind."
say "deletion left nothing"

kubectl -n helm-operator logs --prefix --tail=-1 -l app.kubernetes.io/name=helm-operator >"$tmp/log"
! grep -i forbidden "$tmp/log" || fail "the operator lacks the permission above."
say "the end-to-end test is done"
