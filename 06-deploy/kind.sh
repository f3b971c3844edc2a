#!/usr/bin/env bash
# The end-to-end test of the chapter on kind: image, deployment, handover, upgrade, rollback, certificates, permissions, removal.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../scripts/kind-lib.sh
. "$here/../scripts/kind-lib.sh"
cd "$here"

kind_up
for kind in mywebs.operator.k8s-summit.org servicemonitors.monitoring.coreos.com; do
  ! kubectl get crd "$kind" >/dev/null 2>&1 ||
    fail "the cluster $KIND_CLUSTER has $kind already, which this test would delete: use another cluster, or kubectl delete crd $kind."
done
on_exit rm -rf "$here/dist"
load_images nginx:latest nginx:1.29-alpine
export KIND_CLUSTER GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly
go test -v -tags=kind -count=1 -timeout=20m ./test/e2e | sed -u '/^=== /d; s/^ *[a-z_]*_test.go:[0-9]*: //' ||
  fail "the end-to-end test ended with the failure above."
say "the end-to-end test is done"
