#!/usr/bin/env bash
# Moves all MyWebs to the version that the CRD stores now, as a StorageVersionMigration does. When it fails, because
# somebody changed a MyWeb meanwhile, run it again.
set -euo pipefail
crd=mywebs.operator.k8s-summit.org
version=$(kubectl get crd "$crd" -o jsonpath='{.spec.versions[?(@.storage==true)].name}')
webs=$(kubectl get "$crd" --all-namespaces -o json)

# The API server does not write what did not change, unless it is stored in another version.
if [[ $webs == *'"kind": "MyWeb"'* ]]; then
  kubectl replace -f - <<<"$webs"
fi

# The claim comes last: from now on the CRD may lose the other version.
kubectl patch crd "$crd" --subresource=status --type=merge -p "{\"status\":{\"storedVersions\":[\"$version\"]}}"
