#!/usr/bin/env bash
# The end-to-end test on kind: the program and the chart run in the cluster, with the roles of config/rbac, and a real
# nginx serves the page.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

begin_myweb

say "building the operator's image and starting it in the cluster"
for_node go build -o "$tmp/helm-operator" github.com/operator-framework/helm-operator-plugins
cp -R watches.yaml helm-charts "$tmp"
image controller:latest "$tmp" -f Dockerfile
on_exit kubectl delete -k config/default --ignore-not-found --wait
kubectl apply -k config/default
eventually 60 kubectl wait --for=condition=Established -f config/crd/bases --timeout=60s
# This comes before the removal of the operator, because the operator removes their finalizers.
on_exit kubectl delete web --all --ignore-not-found --wait --timeout=60s
kubectl -n helm-operator-system rollout status deployment/helm-operator-controller-manager --timeout=180s

releases() { kubectl get secrets -l owner=helm,name=myweb -o name; }
sample nginx:1.29-alpine | kubectl apply -f -
kubectl wait web/myweb --for=condition=Deployed --timeout=60s || fail "the sample was not installed within 60 s."
kubectl rollout status deployment/myweb --timeout=120s || { kubectl describe pods; fail "the pods of the sample are not ready."; }
web_is_served
change_page
[[ $(releases | wc -l) -eq 2 ]] || fail "a changed page did not make a second release."
delete_service
delete_web
[[ -z $(releases) ]] || fail "the deletion left a release behind."

kubectl -n helm-operator-system logs --prefix --tail=-1 -l app.kubernetes.io/name=helm-operator >"$tmp/log"
! grep -i forbidden "$tmp/log" || fail "the operator lacks the permission above."
say "the end-to-end test is done"
