#!/usr/bin/env bash
# The chapter's end-to-end test on kind: the operator runs in the cluster, twice, with its webhooks; the page comes
# over HTTP.
set -euo pipefail
# shellcheck source=../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/kind-chapter.sh"

begin_myweb

say "building the operator's image and starting it in the cluster"
for_node go build -o "$tmp/myweb-operator" ./cmd/myweb-operator
from_scratch "$tmp" myweb-operator
image myweb-operator:workshop "$tmp"
on_exit kubectl delete -k config --ignore-not-found --wait
kubectl apply -k config
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s
on_exit kubectl delete web --all --ignore-not-found --wait
kubectl -n myweb-operator rollout status deployment/myweb-operator --timeout=180s

pageless() { printf '{apiVersion: operator.k8s-summit.org/v1, kind: MyWeb, metadata: {name: %s}, spec: {image: nginx}}' "$1"; }
defaulted() { pageless probe | kubectl create --dry-run=server -f - -o jsonpath='{.spec.pageContentHtml}' | grep -qF '<h1>probe</h1>'; }
eventually 60 defaulted
say "a MyWeb without a page gets one that names it"

warned() { [[ $(kubectl apply --dry-run=server -f config/samples/myweb.yaml 2>&1) == *'Warning: spec.image has neither tag nor digest'* ]]; }
eventually 30 warned
say "an image without a tag gets a warning"
sample docker.io/library/nginx:1.29-alpine | kubectl apply -f - # its long name, so that the short one is a change
web_is_completed

! sed 's/name: myweb/name: copycat/' config/samples/myweb.yaml | kubectl apply -f - 2>"$tmp/refused" ||
  fail "a second MyWeb got the node port of the first."
grep -F 'MyWeb default/myweb has this port' "$tmp/refused"
say "a second MyWeb with the same node port is refused"

change_page
change_image_and_scale

leader() { kubectl -n myweb-operator get lease myweb-operator -o jsonpath='{.spec.holderIdentity}'; }
old=$(leader)
container=$(on_node crictl ps -q --label "io.kubernetes.pod.name=${old%%_*}")
on_node kill -KILL "$(on_node crictl inspect -o go-template --template '{{.info.pid}}' "$container")"
start=$SECONDS
delete_service
[[ $(leader) != "$old" ]] || fail "the leader that was killed, $old, still has the lease."
say "the leader was killed; the other replica brought the Service back after $((SECONDS - start)) s"

delete_web
# The library that makes certificates logs the start of its work as errors. So does client-go when the other replica
# creates the lease first.
kubectl -n myweb-operator logs --prefix --tail=-1 -l app.kubernetes.io/name=myweb-operator >"$tmp/log"
! grep '"level":"error"' "$tmp/log" | grep -vF -e '"logger":"cert-rotation"' -e 'Error initially creating lease lock' || fail "the operator logged the error above."
say "the chapter's end-to-end test is done"
