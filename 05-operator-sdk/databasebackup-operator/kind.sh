#!/usr/bin/env bash
# The end-to-end test on kind: test/e2e with the operator in the cluster and a real PostgreSQL.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=../../scripts/kind-lib.sh
. "$here/../../scripts/kind-lib.sh"
cd "$here"

kind_up
! kubectl get crd databasebackups.databases.test.io >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has DatabaseBackups already, which this test would delete: use another cluster, or kubectl delete crd databasebackups.databases.test.io databaserestores.databases.test.io."
! kubectl get namespace orders >/dev/null 2>&1 ||
  fail "the cluster $KIND_CLUSTER has a namespace orders already, which this test would delete: use another cluster, or kubectl delete namespace orders."
"$root/scripts/workshop" tools controller-gen kustomize
on_exit rm -rf "$here/dist/image" "$here/pgbackup/dist"
load_images postgres:17
say "the operator is deployed, and a database is backed up, lost and restored"
export KIND_CLUSTER GOWORK=off CGO_ENABLED=0 GOFLAGS=-mod=readonly
go test -v -tags=e2e -count=1 ./test/e2e -ginkgo.v -ginkgo.no-color ||
  fail "the end-to-end test of the databasebackup operator ended with the failure above."
say "the end-to-end test has passed"
