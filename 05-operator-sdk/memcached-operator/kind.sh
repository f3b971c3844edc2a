#!/usr/bin/env bash
# The end-to-end test on kind: test/e2e with the operator in the cluster and real memcacheds.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../scripts/kind-lib.sh
. "$here/../../scripts/kind-lib.sh"
cd "$here"

kind_up
! kubectl get crd memcacheds.cache.example.com >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has Memcacheds already, which this test would delete: use another cluster, or kubectl delete crd memcacheds.cache.example.com."
"$root/scripts/workshop" tools controller-gen kustomize
on_exit rm -rf "$here/dist/image"
load_images memcached:1.6-alpine memcached:1.6.39-alpine busybox:1.37
say "the operator goes into the cluster, and its memcacheds are asked"
export KIND_CLUSTER GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly
go test -v -tags=e2e -count=1 ./test/e2e -ginkgo.v -ginkgo.no-color ||
  fail "the end-to-end test of the memcached operator ended with the failure above."
say "the end-to-end test is done"
