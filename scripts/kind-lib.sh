# Functions that every kind.sh shares. Sourced, never run. Works in bash 3.2.
# shellcheck shell=bash
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
own_cluster=operator-workshop # a name that only this workshop uses
KIND_CLUSTER=${KIND_CLUSTER:-$own_cluster}
(umask 077 && mkdir -p "${WORKSHOP_STATE:-$root/.workshop}")
state=$(cd "${WORKSHOP_STATE:-$root/.workshop}" && pwd)
kind_kubeconfig=$state/kind-$KIND_CLUSTER.kubeconfig
lib_exits=()

say() { printf '== %s\n' "$*"; }

# fail SENTENCE: prints the difference, and exits.
fail() {
  printf 'kind: %s\n' "$*" >&2
  exit 1
}

# on_exit CMD ARG...: runs CMD at the end, whatever happens; the last registered CMD runs first.
on_exit() {
  local quoted
  quoted=$(printf '%q ' "$@")
  lib_exits=("$quoted" ${lib_exits[@]+"${lib_exits[@]}"})
  trap 'run_exits' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
}
run_exits() {
  local code=$? cmd
  trap '' INT TERM # Ctrl-C comes twice: from the terminal, and from the program that runs this script
  trap - EXIT
  for cmd in ${lib_exits[@]+"${lib_exits[@]}"}; do eval "$cmd" || true; done
  exit $code
}

# kill_quietly PID: ends a process that may have ended already.
kill_quietly() { kill "$1" 2>/dev/null; }

# eventually SECONDS CMD ARG...: repeats CMD until it succeeds; after SECONDS shows its last output and fails.
eventually() {
  local end=$((SECONDS + $1)) out
  shift
  until out=$("$@" 2>&1); do
    if ((SECONDS >= end)); then
      printf '%s\n' "$out" >&2
      fail "this did not come true in time: $*"
    fi
    sleep 0.5
  done
}

# docker_answers: Docker answers within 15 s; a daemon that hangs does not. A subshell, because in run_exits `wait`
# would report the signal.
docker_answers() (
  tries=0
  docker info >/dev/null 2>&1 &
  ask=$!
  while kill -0 "$ask" 2>/dev/null; do
    if ((++tries > 150)); then
      kill "$ask" 2>/dev/null
      return 1
    fi
    sleep 0.1
  done
  wait "$ask"
)

# need_docker: Docker answers, or the script ends with one sentence about what to do.
need_docker() {
  command -v docker >/dev/null ||
    fail "Docker is not installed; the kind environment needs it (https://docs.docker.com/get-docker/). Everything else works without: make up, make test."
  docker_answers ||
    fail "Docker is installed, but its daemon does not answer: start it and try again ('docker info' says more)."
}

kind_exists() { kind get clusters 2>/dev/null | grep -x -- "$KIND_CLUSTER" >/dev/null; }

# kind_config: one node, whose API server keeps an audit log in /var/log/kubernetes/audit.log.
kind_config() {
  cat <<EOF
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
featureGates: {ShardedListAndWatch: true} # for 06-deploy/scale
nodes:
- role: control-plane
  extraMounts:
  - hostPath: $root/scripts/kind-audit-policy.yaml
    containerPath: /etc/kubernetes/audit/policy.yaml
    readOnly: true
kubeadmConfigPatches:
- |
  kind: ClusterConfiguration
  apiServer:
    extraArgs:
    - {name: audit-policy-file, value: /etc/kubernetes/audit/policy.yaml}
    - {name: audit-log-path, value: /var/log/kubernetes/audit.log}
    extraVolumes:
    - {name: audit-policy, hostPath: /etc/kubernetes/audit, mountPath: /etc/kubernetes/audit, readOnly: true, pathType: Directory}
    - {name: audit-log, hostPath: /var/log/kubernetes, mountPath: /var/log/kubernetes, readOnly: false, pathType: DirectoryOrCreate}
EOF
}

# kind_up: the cluster named by KIND_CLUSTER exists and answers; kubectl in this script talks to it. KIND_NODE_IMAGE
# names its node image; without it, the image that a bundle brought or kind's default is used.
kind_up() {
  need_docker
  if [[ -z ${KIND_NODE_IMAGE-} && -f $state/kind-node-image ]]; then KIND_NODE_IMAGE=$(cat "$state/kind-node-image"); fi
  "$root/scripts/workshop" tools kind
  export PATH=$root/bin:$PATH
  export KUBECONFIG=$kind_kubeconfig KUBECACHEDIR=$state/kind-cache
  if kind_exists; then
    kind export kubeconfig --name "$KIND_CLUSTER" --kubeconfig "$KUBECONFIG" >/dev/null 2>&1 || true
    if kubectl get --raw /readyz --request-timeout=20s >/dev/null 2>&1; then return; fi
    [[ $KIND_CLUSTER == "$own_cluster" ]] ||
      fail "the kind cluster $KIND_CLUSTER does not answer: start its node (docker start $KIND_CLUSTER-control-plane) or delete it (kind delete cluster --name $KIND_CLUSTER)."
    say "the kind cluster $KIND_CLUSTER does not answer: it is made anew"
    kind delete cluster --name "$KIND_CLUSTER" --kubeconfig "$KUBECONFIG"
  fi
  say "creating the kind cluster $KIND_CLUSTER"
  kind_config | kind create cluster --name "$KIND_CLUSTER" --kubeconfig "$KUBECONFIG" --wait 180s --config - \
    ${KIND_NODE_IMAGE:+--image "$KIND_NODE_IMAGE"} ||
    fail "kind could not create the cluster $KIND_CLUSTER: its messages are above; 'make doctor' looks for the usual causes."
}

kind_down() {
  need_docker
  "$root/scripts/workshop" tools kind
  export PATH=$root/bin:$PATH
  if kind_exists; then
    kind delete cluster --name "$KIND_CLUSTER" --kubeconfig "$kind_kubeconfig"
  else
    say "there is no kind cluster $KIND_CLUSTER"
  fi
  rm -rf "$kind_kubeconfig" "$kind_kubeconfig.lock" "$state/kind-cache"
}

# load_images IMAGE...: loads images into the node, so that no pod has to pull. Docker pulls missing images first.
# scripts/images.txt lists all images that chapters use.
load_images() {
  local image
  for image in "$@"; do
    grep -qxF -- "$image" "$root/scripts/images.txt" || fail "the image $image is not listed in scripts/images.txt: add it."
    if ! docker image inspect "$image" >/dev/null 2>&1; then
      say "pulling $image"
      docker pull -q "$image" >/dev/null ||
        fail "the image $image is not here and cannot be pulled: check the network and 'docker pull $image'."
    fi
    kind load docker-image --name "$KIND_CLUSTER" "$image" >/dev/null 2>&1 ||
      say "note: $image could not be copied into the node, which will pull it by itself"
  done
}

# on_node CMD ARG...: runs CMD on the cluster's node, where NodePorts answer on every operating system.
on_node() { docker exec "$KIND_CLUSTER-control-plane" "$@"; }

# fetch PORT: prints the page that a NodePort serves.
fetch() {
  local ip
  ip=$(kubectl get node "$KIND_CLUSTER-control-plane" \
    -o jsonpath='{.status.addresses[?(@.type=="InternalIP")].address}')
  on_node curl -fsS --max-time 5 "http://$ip:$1/"
}
