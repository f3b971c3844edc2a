#!/usr/bin/env bash
# The end-to-end test on kind: the scorecard of three bundles; then OLM, a catalogue, a Subscription that installs 0.0.1
# and upgrades to 0.0.2, and the removal.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

olm_module=github.com/operator-framework/operator-lifecycle-manager
olm_image=olm:workshop
sdk_version=$(go list -C "$root/scripts/operator-sdk" -m -f '{{.Version}}' github.com/operator-framework/operator-sdk)
scorecard_image=quay.io/operator-framework/scorecard-test:$sdk_version # the bundles name it
operator=memcached-operator
operator_image=example.com/$operator

# compile: the programs for this machine go to $tmp/bin, those for the node to $tmp/node.
compile() {
  local tags=containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper,json1
  mkdir -p "$tmp/bin" "$tmp/node" "$tmp/scorecard"
  go build -C programs -ldflags=-s -tags "$tags" -o "$tmp/bin/" helm.sh/helm/v3/cmd/helm \
    github.com/operator-framework/operator-registry/cmd/opm github.com/google/go-containerregistry/cmd/crane
  for_node go build -C programs -ldflags=-s -tags "$tags" -o "$tmp/node/" $olm_module/cmd/... $olm_module/util/cpb \
    github.com/operator-framework/operator-registry/cmd/opm github.com/grpc-ecosystem/grpc-health-probe \
    github.com/google/go-containerregistry/cmd/crane
  for_node go build -C "$root/scripts/operator-sdk" -ldflags=-s -tags "$tags" -o "$tmp/scorecard/" \
    github.com/operator-framework/operator-sdk/images/scorecard-test
  export PATH=$tmp/bin:$PATH
}

# images: builds the images of the programs and loads them into the node. The pods of OLM need cp; with crane the image
# also serves as the image of the registry. OLM calls the health probe in the image of opm by another name.
images() {
  mkdir "$tmp/opm"
  mv "$tmp/node/opm" "$tmp/opm/"
  mv "$tmp/node/grpc-health-probe" "$tmp/opm/grpc_health_probe"
  printf 'FROM scratch\nCOPY opm grpc_health_probe /bin/\nUSER 1001\n' >"$tmp/opm/Dockerfile"
  docker build -q -t opm:workshop "$tmp/opm" >/dev/null
  printf 'FROM busybox:1.37\nCOPY . /bin/\nUSER 1001\n' >"$tmp/node.Dockerfile"
  image "$olm_image" "$tmp/node" -f "$tmp/node.Dockerfile"
  printf 'FROM scratch\nCOPY scorecard-test /bin/\nUSER 1001\n' >"$tmp/scorecard/Dockerfile"
  image "$scorecard_image" "$tmp/scorecard"
}

# scorecard OPERATOR: all tests of the scorecard pass; busybox has the tar that unpacks the bundle in their pods.
scorecard() {
  local out=$tmp/$1.scorecard
  operator-sdk scorecard "../$1/bundle" --namespace scorecard --untar-image busybox:1.37 --wait-time 2m >"$out" ||
    { cat "$out"; fail "the scorecard of $1 found what is above."; }
  printf '%s:\n' "$1"
  grep -E $'^\t(Name|State):' "$out"
}
scorecards() {
  on_exit kubectl delete namespace scorecard --ignore-not-found --wait
  kubectl create namespace scorecard
  eventually 30 kubectl -n scorecard get serviceaccount default
  local name
  for name in memcached-operator nginx-operator databasebackup-operator; do scorecard "$name"; done
}

# install_olm: installs the chart in OLM's module, without cert-manager and without the catalogue of OperatorHub.io.
install_olm() {
  local chart
  chart=$(go list -C programs -m -f '{{.Dir}}' $olm_module)/deploy
  helm template olm "$chart/chart" --include-crds --values "$chart/upstream/values.yaml" \
    --set installType=,certManager.enabled=false,package.replicaCount=1,package.image.pullPolicy=IfNotPresent \
    --set "olm.image.ref=$olm_image,catalog.image.ref=$olm_image,package.image.ref=$olm_image" \
    --set "catalog.commandArgs=,catalog.opmImageArgs=--opmImage=localhost:5000/opm:workshop" >"$tmp/olm.yaml"
  on_exit remove_olm
  kubectl apply --server-side -f "$chart/chart/crds" >/dev/null
  kubectl wait --for=condition=Established -f "$chart/chart/crds" --timeout=60s >/dev/null
  kubectl apply --server-side -f "$tmp/olm.yaml" >/dev/null
  kubectl -n olm rollout status deployment/olm-operator deployment/catalog-operator --timeout=180s
  csv_succeeded olm packageserver
}

# csv_succeeded NAMESPACE NAME: OLM installed this version.
csv_succeeded() {
  eventually 120 kubectl -n "$1" get csv "$2"
  kubectl -n "$1" wait "csv/$2" --for=jsonpath='{.status.phase}'=Succeeded --timeout=180s >/dev/null ||
    { kubectl -n "$1" describe csv "$2"; fail "OLM did not install $2."; }
}

# start_registry: starts a registry in the cluster; $registry is its address for this script, localhost:5000 its address
# for the node.
start_registry() {
  on_exit kubectl delete namespace olm-test --ignore-not-found --wait
  kubectl create namespace olm-test
  kubectl apply -f manifests/registry.yaml
  kubectl -n olm-test rollout status deployment/registry --timeout=60s
  kubectl -n olm-test port-forward --address 127.0.0.1 deployment/registry :5000 >"$tmp/forward" 2>&1 &
  on_exit kill_quietly $!
  eventually 15 grep -q Forwarding "$tmp/forward"
  registry=$(sed -n 's/^Forwarding from \(127.0.0.1:[0-9]*\) .*/\1/p' "$tmp/forward")
}

# push IMAGE NAME: an image of Docker becomes NAME of the registry.
push() {
  docker save -o "$tmp/image.tar" "$1"
  docker rmi -f "$1" >/dev/null
  crane push --insecure "$tmp/image.tar" "$registry/$2" >/dev/null 2>&1 || fail "the image $1 could not be pushed to the registry."
}

# publish VERSION: loads the operator's image into the node, and pushes its bundle as an image to the registry.
publish() {
  local copy=$tmp/$1/$operator
  mkdir -p "$tmp/$1"
  cp -R "../$operator" "$copy"
  make -s -C "$copy" bundle "VERSION=$1" WORKSHOP="$root/scripts/workshop" >"$tmp/out" 2>&1 ||
    { cat "$tmp/out"; fail "make bundle VERSION=$1 failed."; }
  make -s -C "$copy" docker-build bundle-build "VERSION=$1" >"$tmp/out" 2>&1 || { cat "$tmp/out"; fail "no image of $1."; }
  kind load docker-image --name "$KIND_CLUSTER" "$operator_image:v$1"
  on_exit docker rmi -f "$operator_image:v$1"
  push "$operator_image-bundle:v$1" "$operator-bundle:v$1"
}

# catalogue VERSION...: opm makes the catalogue of the bundles, in this order of upgrades; it is pushed as an image.
catalogue() {
  local version before="" dir=$tmp/catalogue
  rm -rf "$dir"
  mkdir -p "$dir/configs"
  {
    opm init $operator --default-channel=alpha --output yaml
    printf -- '---\nschema: olm.channel\npackage: %s\nname: alpha\nentries:\n' $operator
    for version in "$@"; do
      printf -- '- name: %s.v%s\n' $operator "$version"
      [[ -z $before ]] || printf '  replaces: %s.v%s\n' $operator "$before"
      before=$version
    done
    for version in "$@"; do
      opm render "$tmp/$version/$operator/bundle" --output yaml --migrate-level bundle-object-to-csv-metadata \
        --alpha-image-ref-template "localhost:5000/$operator-bundle:v$version"
    done
  } >"$dir/configs/catalog.yaml"
  opm validate "$dir/configs"
  printf 'FROM scratch\nCOPY configs /configs\n' >"$dir/Dockerfile"
  docker build -q -t workshop/catalog "$dir" >/dev/null
  push workshop/catalog catalog:latest
}

# subscribe: OLM finds the newest version of the channel in the catalogue and installs it.
subscribe() {
  kubectl apply -f manifests/subscription.yaml
  on_exit remove_operator
  csv_succeeded operators $operator.v0.0.1
  kubectl -n operators get installplans
  kubectl -n operators get csv
  kubectl apply -f ../$operator/config/samples/cache_v1alpha1_memcached.yaml
  kubectl wait memcached/memcached-sample --for=condition=Available --timeout=120s
  kubectl wait memcached/memcached-sample --for=condition=Progressing=false --timeout=60s
  eventually 30 wrong_image_refused
  owned
}

# owned: prints the objects that an upgrade must not change: the Memcached with its spec, its children and their pods,
# each with its UID.
owned() {
  kubectl get deployments,services,pods -l app.kubernetes.io/instance=memcached-sample \
    -o 'jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}'
  kubectl get memcached memcached-sample -o 'jsonpath={.kind}/{.metadata.name} {.metadata.uid} {.spec}{"\n"}'
}

upgrade() {
  local before
  before=$(owned)
  catalogue 0.0.1 0.0.2
  csv_succeeded operators $operator.v0.0.2
  eventually 60 csv_gone $operator.v0.0.1
  diff <(printf '%s\n' "$before") <(owned) || fail "the upgrade changed what is above (< before, > after)."
  say "the same Memcached, Deployment, Service and pods run, each with its UID"
  kubectl scale memcached memcached-sample --replicas=2
  eventually 60 scaled
  eventually 60 wrong_image_refused
  csv_succeeded operators $operator.v0.0.2 # OLM checks it once more when 0.0.1 is gone
  kubectl -n operators get installplans
  kubectl -n operators get csv
  kubectl -n operators get deployment $operator-controller-manager \
    -o 'jsonpath={.metadata.name} runs {.spec.template.spec.containers[0].image}{"\n"}'
}
# wrong_image_refused: the webhook, whose certificate is OLM's, refuses a wrong image. When the webhook does not answer,
# the API server accepts the image.
wrong_image_refused() {
  ! kubectl patch memcached memcached-sample --dry-run=server --type=merge -p '{"spec":{"image":"memcached:1.6:alpine"}}' 2>"$tmp/refused" &&
    grep -q 'spec.image' "$tmp/refused"
}
csv_gone() { ! kubectl -n operators get csv "$1" >/dev/null 2>&1; }
scaled() { [[ $(kubectl get memcached memcached-sample -o jsonpath='{.status.readyReplicas}') == 2 ]]; }

# remove: without the Subscription and the CSV no operator runs; the CRD and the Memcached stay until a user deletes
# them.
remove() {
  kubectl -n operators delete subscription $operator
  kubectl -n operators delete csv $operator.v0.0.2 --wait
  eventually 60 no_operator
  kubectl get memcached memcached-sample
  kubectl get pods -l app.kubernetes.io/instance=memcached-sample
}
no_operator() {
  [[ -z $(kubectl get deployments -n operators -o name) ]] &&
    [[ -z $(kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -l olm.owner -o name) ]]
}

# The cleanup, which runs whatever happened before.
remove_operator() {
  kubectl -n operators delete subscriptions,csv --all --wait
  kubectl -n olm delete catalogsource workshop --ignore-not-found --wait
  kubectl delete memcacheds --all --wait
  kubectl delete crd memcacheds.cache.example.com --ignore-not-found --wait
}
remove_olm() {
  kubectl -n olm delete csv packageserver --ignore-not-found --wait
  kubectl delete --ignore-not-found --wait -f "$tmp/olm.yaml"
  kubectl delete clusterroles -l olm.managed=true # OLM may leave those of the bundle and of its groups
  kubectl -n kube-system delete rolebindings -l olm.managed=true # and these, by which its API services read
}

kind_up
absent crd memcacheds.cache.example.com subscriptions.operators.coreos.com
absent namespace scorecard olm operators olm-test
load_images busybox:1.37 memcached:1.6-alpine
"$root/scripts/workshop" tools operator-sdk controller-gen kustomize
tmp=$(mktemp -d)
on_exit rm -rf "$tmp"

say "compiling OLM, opm, the registry and the scorecard's tests: ten minutes the first time"
compile
images

say "the scorecard examines three bundles"
scorecards

say "a registry goes into the cluster, then OLM"
start_registry
push opm:workshop opm:workshop # OLM pulls the image of opm whenever a pod needs it
install_olm

say "0.0.1 of the operator is published, and a catalogue with it"
publish 0.0.1
catalogue 0.0.1

say "a Subscription installs 0.0.1; a Memcached is made"
subscribe

say "0.0.2 is published, and the catalogue says that it replaces 0.0.1"
publish 0.0.2
upgrade

say "the Subscription and the operator are removed"
remove
say "the end-to-end test is done"
