#!/usr/bin/env bash
# The end-to-end test on kind: the controller runs on this machine, its pods run on kind, the page comes over HTTP.
set -euo pipefail
# shellcheck source=../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/kind-chapter.sh"

begin_myweb
on_exit kubectl delete -f config/crd --ignore-not-found --wait
kubectl apply -f config/crd
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s

say "starting the operator"
go build -o "$tmp/myweb-controller" ./cmd/myweb-controller
"$tmp/myweb-controller" --health-probe-bind-address=0 >"$tmp/log" 2>&1 &
operator=$!
on_exit kill_quietly "$operator"
on_exit kubectl delete web --all --ignore-not-found --wait

kubectl apply --dry-run=server -f config/samples/myweb.yaml
sample docker.io/library/nginx:1.29-alpine | kubectl apply -f - # its long name, so that the short one is a change
web_is_completed
change_page
change_image_and_scale
delete_service

uid=$(kubectl get pods -l app.kubernetes.io/instance=myweb -o jsonpath='{.items[0].metadata.uid}')
kubectl delete pod --grace-period=0 --force --wait=false -l app.kubernetes.io/instance=myweb 2>/dev/null
replaced() {
  two_pods_ready nginx:1.29-alpine &&
    [[ $(kubectl get pods -l app.kubernetes.io/instance=myweb -o jsonpath='{.items[*].metadata.uid}') != *"$uid"* ]]
}
eventually 120 replaced
eventually 30 serves changed
say "killed pods were replaced"

delete_web
kill "$operator"
wait "$operator" || fail "the operator ended with code $?: $(tail -n 3 "$tmp/log")"
# A conflict is not a failure: the controller retries the write, and all of the above has succeeded.
! grep '"level":"ERROR"' "$tmp/log" | grep -v 'the object has been modified' || fail "the operator logged the error above."
say "the end-to-end test is done"
