#!/usr/bin/env bash
# Makes an operator in the new folder DIR, as a tutorial does: `scaffold.sh kubebuilder DIR`, `scaffold.sh operator-sdk DIR`.
# The scaffold stays as it is, and only its controller is filled. DIR/manifest.yaml has the manifests of config/default,
# and DIR/manifests has the same objects in separate files.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../../..
export PATH=$root/bin:$PATH GOWORK=off
tool=$1
"$root/scripts/workshop" tools "$tool" controller-gen kustomize
mkdir -p "$2"
cd "$2"
kind=(--group webapp --version v1 --kind Guestbook)
"$tool" init --domain example.com --repo example.com/guestbook --project-name guestbook
"$tool" create api "${kind[@]}" --resource --controller --make=false
"$tool" create webhook "${kind[@]}" --defaulting --programmatic-validation --make=false
cp "$here/guestbook_controller.go.txt" internal/controller/guestbook_controller.go
controller-gen object paths=./...
controller-gen rbac:roleName=manager-role crd webhook paths=./... output:crd:artifacts:config=config/crd/bases
kustomize build config/default >manifest.yaml
mkdir -p manifests
kustomize build config/default -o manifests
CGO_ENABLED=0 go build -o bin/manager ./cmd
