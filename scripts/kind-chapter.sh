# Every kind.sh sources this file first. It changes to the folder of the script that sources it, and has the steps that
# several chapters share. Works in bash 3.2.
# shellcheck shell=bash
here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
# shellcheck source=kind-lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/kind-lib.sh"
cd "$here" || exit 1
export KIND_CLUSTER CGO_ENABLED=0 GOWORK=off GOFLAGS='-mod=readonly -trimpath'

# absent RESOURCE NAME...: the cluster has none of these objects; this test makes them, and deletes them at the end.
absent() {
  local name
  for name in "${@:2}"; do
    ! kubectl get "$1" "$name" >/dev/null 2>&1 ||
      fail "the cluster $KIND_CLUSTER has the $1 $name already, which this test would delete: use another cluster, or kubectl delete $1 $name."
  done
}

# begin_myweb: kind, with an image of nginx and without the CRD of MyWebs. $tmp is a folder for this run.
begin_myweb() {
  kind_up
  absent crd mywebs.operator.k8s-summit.org
  load_images nginx:1.29-alpine
  tmp=$(mktemp -d)
  on_exit rm -rf "$tmp"
}

# image NAME FOLDER ARG...: docker build makes an image of a folder, which is loaded into the node, and removed at the
# end.
image() {
  docker build -q -t "$1" "${@:3}" "$2" >/dev/null
  on_exit docker rmi -f "$1"
  kind load docker-image --name "$KIND_CLUSTER" "$1"
}

# for_node CMD ARG...: runs CMD with Go's settings for programs of the node.
for_node() { GOOS=linux GOARCH=$(docker version -f '{{.Server.Arch}}') "$@"; }

# from_scratch FOLDER PROGRAM: writes a Dockerfile for one program.
from_scratch() { printf 'FROM scratch\nCOPY %s /\nUSER 65532:65532\nENTRYPOINT ["/%s"]\n' "$2" "$2" >"$1/Dockerfile"; }

# e2e: runs the tests in test/e2e of an operator of chapter 05.
e2e() {
  "$root/scripts/workshop" tools controller-gen kustomize
  go test -v -tags=e2e -count=1 -timeout=30m ./test/e2e -ginkgo.v -ginkgo.no-color || fail "the test ended with the failure above."
}

# The steps of a MyWeb. Each test of its operators is named after the action of a user, and ends when the cluster has
# reacted.

# sample IMAGE: prints the sample, with an image that was loaded. Without a tag the kubelet always pulls, and the
# cluster may have no registry.
sample() { sed "s|image: nginx\$|image: $1|" config/samples/*myweb.yaml; }

serves() { fetch 30100 | grep -qF -- "$1"; }
web_is_served() {
  eventually 30 serves 'Hello, World!'
  say "node port 30100 serves the page of the sample"
}

web_is_completed() {
  eventually 30 kubectl get web myweb
  kubectl wait web/myweb --for=jsonpath='{.status.completed}'=true --timeout=120s ||
    { kubectl describe pods; fail "the sample was not completed within 120 s"; }
  kubectl get web myweb
  web_is_served
}

change_page() {
  kubectl patch web myweb --type=merge -p '{"spec":{"pageContentHtml":"<p>changed: {{ \"quoted\" }}</p>"}}'
  eventually 60 serves '<p>changed: {{ "quoted" }}</p>'
  say "a changed page is served"
}

# two_pods_ready IMAGE: two pods with IMAGE are ready, and no other pods exist.
two_pods_ready() {
  [[ $(kubectl get web myweb -o jsonpath='{.status.completed} {.status.readyReplicas}') == "true 2" ]] &&
    [[ $(kubectl get pods -l app.kubernetes.io/instance=myweb -o jsonpath='{.items[*].spec.containers[0].image}') == "$1 $1" ]]
}
change_image_and_scale() {
  kubectl patch web myweb --type=merge -p '{"spec":{"image":"nginx:1.29-alpine","replicas":3}}'
  kubectl scale web myweb --replicas=2
  eventually 120 two_pods_ready nginx:1.29-alpine
  say "two pods of another image are ready"
}

service_uid() { kubectl get service myweb -o jsonpath='{.metadata.uid}'; }
another_service() { local now && now=$(service_uid) && [[ $now != "$1" ]]; }
delete_service() {
  local old
  old=$(service_uid)
  kubectl delete service myweb
  eventually 60 another_service "$old"
  eventually 30 serves changed
  say "a deleted Service came back, on its port"
}

nothing_left() { [[ -z $(kubectl get deployments,services,configmaps,pods -l app.kubernetes.io/instance=myweb -o name) ]]; }
delete_web() {
  kubectl delete web myweb --timeout=60s
  eventually 120 nothing_left
  say "deletion left nothing"
}
