#!/usr/bin/env bash
# The end-to-end test on kind: kro in the cluster with least permissions, a MyWeb of the graph, the page over HTTP.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

begin_myweb
absent crd resourcegraphdefinitions.kro.run

say "building kro's image and starting it in the cluster"
for_node go build -ldflags=-s -o "$tmp/kro" github.com/kubernetes-sigs/kro/cmd/controller
from_scratch "$tmp" kro
image kro:workshop "$tmp"
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
sample docker.io/library/nginx:1.29-alpine | kubectl apply -f - # its long name, so that the short one is a change
web_is_completed
change_page
kubectl patch web myweb --type=merge -p '{"spec":{"image":"nginx:1.29-alpine","replicas":2}}' # kro's CRD has no scale
eventually 120 two_pods_ready nginx:1.29-alpine
say "two pods of another image are ready"
delete_service
delete_web

! kubectl -n kro-system logs --tail=-1 -l app.kubernetes.io/name=kro | grep -i forbidden ||
  fail "kro lacks the permission above."
say "the end-to-end test is done"
