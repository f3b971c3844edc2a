#!/usr/bin/env bash
# Moves all MyWebs to the version that the CRD stores now, as a StorageVersionMigration does. When the script fails,
# because a user changed a MyWeb meanwhile, run it again.
set -euo pipefail
crd=mywebs.operator.k8s-summit.org
version=$(kubectl get crd "$crd" -o jsonpath='{.spec.versions[?(@.storage==true)].name}')

# The API server does not write an unchanged object, unless the object is stored in another version.
kubectl get "$crd" --all-namespaces -o json | kubectl replace -f -

# The claim comes last: from now on the CRD may lose the other version.
kubectl patch crd "$crd" --subresource=status --type=merge -p "{\"status\":{\"storedVersions\":[\"$version\"]}}"
