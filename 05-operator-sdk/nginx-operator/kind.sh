#!/usr/bin/env bash
# The end-to-end test on kind: test/e2e with the operator in the cluster and real nginx.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../scripts/kind-lib.sh
. "$here/../../scripts/kind-lib.sh"
cd "$here"

kind_up
! kubectl get crd nginxes.proxy.example.com >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has Nginxes already, which this test would delete: use another cluster, or kubectl delete crd nginxes.proxy.example.com."
"$root/scripts/workshop" tools controller-gen kustomize
on_exit rm -rf "$here/dist/image"
load_images nginx:1.29-alpine nginx:latest busybox:1.37
say "the operator goes into the cluster, and its pages are fetched"
export KIND_CLUSTER GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly
go test -v -tags=e2e -count=1 ./test/e2e -ginkgo.v -ginkgo.no-color ||
  fail "the end-to-end test of the nginx operator ended with the failure above."
say "the end-to-end test is done"
