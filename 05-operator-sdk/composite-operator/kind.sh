#!/usr/bin/env bash
# The end-to-end test on kind: controller and hook run in one pod, and a real nginx serves the page.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

begin_myweb

say "building the operator's image and starting it in the cluster"
for_node go build -o "$tmp/" ./cmd/...
cp config/compositecontroller.yaml "$tmp"
image composite-operator:workshop "$tmp" -f Dockerfile
on_exit kubectl delete -k config --ignore-not-found --wait
kubectl apply -k config
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s
on_exit kubectl delete web --all --ignore-not-found --wait
kubectl -n composite-operator rollout status deployment/composite-operator --timeout=180s

sample nginx:1.29-alpine | kubectl apply -f -
web_is_completed
change_page
delete_service
delete_web

kubectl -n composite-operator logs --prefix --tail=-1 -c controller -l app.kubernetes.io/name=composite-operator >"$tmp/log"
! grep -i forbidden "$tmp/log" || fail "the controller lacks the permission above."
say "the end-to-end test is done"
