#!/usr/bin/env bash
# Moves all MyWebs to the version that the CRD stores now.
set -euo pipefail
crd=mywebs.operator.k8s-summit.org
version=$(kubectl get crd "$crd" -o jsonpath='{.spec.versions[?(@.storage==true)].name}')

kubectl patch crd "$crd" --subresource=status --type=merge -p "{\"status\":{\"storedVersions\":[\"$version\"]}}"
