#!/usr/bin/env bash
# The chapter's end-to-end test on kind: the operator runs in the cluster, twice, with its webhooks; the page comes
# over HTTP.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../scripts/kind-lib.sh
. "$here/../scripts/kind-lib.sh"
cd "$here"

kind_up
! kubectl get crd mywebs.operator.k8s-summit.org >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has MyWebs already, which this test would delete: use another cluster, or kubectl delete crd mywebs.operator.k8s-summit.org."
load_images nginx:1.29-alpine
tmp=$(mktemp -d)
on_exit rm -rf "$tmp"

say "building the operator's image and starting it in the cluster"
CGO_ENABLED=0 GOWORK=off GOOS=linux GOARCH=$(docker version -f '{{.Server.Arch}}') \
  go build -o "$tmp/myweb-operator" ./cmd/myweb-operator
printf 'FROM scratch\nCOPY myweb-operator /\nUSER 65532:65532\nENTRYPOINT ["/myweb-operator"]\n' >"$tmp/Dockerfile"
docker build -q -t myweb-operator:workshop "$tmp" >/dev/null
on_exit docker rmi -f myweb-operator:workshop
kind load docker-image --name "$KIND_CLUSTER" myweb-operator:workshop
on_exit kubectl delete -k config --ignore-not-found --wait
kubectl apply -k config
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s
on_exit kubectl delete web --all --ignore-not-found --wait
kubectl -n myweb-operator rollout status deployment/myweb-operator --timeout=180s

pageless() { printf '{apiVersion: operator.k8s-summit.org/v1, kind: MyWeb, metadata: {name: %s}, spec: {image: nginx}}' "$1"; }
defaulted() { pageless probe | kubectl create --dry-run=server -f - -o jsonpath='{.spec.pageContentHtml}' | grep -qF '<h1>probe</h1>'; }
eventually 60 defaulted
say "a MyWeb without a page gets one that names it"

# Without a tag the kubelet always pulls, and the cluster may have no registry: the sample runs with an image that
# was loaded, under its long name, so that the short one is a change.
tagged() { sed 's|image: nginx$|image: docker.io/library/nginx:1.29-alpine|' config/samples/myweb.yaml; }
kubectl apply --dry-run=server -f config/samples/myweb.yaml 2>&1 | tee "$tmp/applied"
grep -qF 'Warning: spec.image has neither tag nor digest' "$tmp/applied" || fail "the sample's image has no tag, and there was no warning."
tagged | kubectl apply -f -
completed() { kubectl wait web/myweb --for=jsonpath='{.status.completed}'=true --timeout=120s; }
serves() { fetch 30100 | grep -qF -- "$1"; }
completed || { kubectl describe pods; fail "the sample was not served within 120 s"; }
kubectl get web myweb
eventually 30 serves 'Hello, World!'
say "node port 30100 serves the page of the sample"

! sed 's/name: myweb/name: copycat/' config/samples/myweb.yaml | kubectl apply -f - 2>"$tmp/refused" ||
  fail "a second MyWeb got the node port of the first."
grep -F 'MyWeb default/myweb has this port' "$tmp/refused"
say "a second MyWeb with the same node port is refused"

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

leader() { kubectl -n myweb-operator get lease myweb-operator -o jsonpath='{.spec.holderIdentity}'; }
old=$(leader)
container=$(on_node crictl ps -q --label "io.kubernetes.pod.name=${old%%_*}")
on_node kill -KILL "$(on_node crictl inspect -o go-template --template '{{.info.pid}}' "$container")"
uid=$(kubectl get service myweb -o jsonpath='{.metadata.uid}')
kubectl delete service myweb
back() {
  local now
  now=$(kubectl get service myweb -o jsonpath='{.metadata.uid}') && [[ $now != "$uid" && $(leader) != "$old" ]]
}
start=$SECONDS
eventually 60 back
eventually 30 serves changed
say "the leader was killed; the other replica brought a deleted Service back, on its port, after $((SECONDS - start)) s"

kubectl delete web myweb
gone() { [[ -z $(kubectl get deployments,services,configmaps,pods -l app.kubernetes.io/instance=myweb -o name) ]]; }
eventually 120 gone
say "deletion left nothing"

# The library that makes certificates logs the start of its work as errors.
kubectl -n myweb-operator logs --prefix --tail=-1 -l app.kubernetes.io/name=myweb-operator >"$tmp/log"
! grep '"level":"error"' "$tmp/log" | grep -vF '"logger":"cert-rotation"' || fail "the operator logged the error above."
say "the chapter's end-to-end test is done"
