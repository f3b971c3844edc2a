#!/usr/bin/env bash
# The end-to-end test of the chapter on kind: image, deployment, handover, upgrade, rollback, certificates, permissions, removal.
set -euo pipefail
# shellcheck source=../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/kind-chapter.sh"

kind_up
absent crd mywebs.operator.k8s-summit.org servicemonitors.monitoring.coreos.com
on_exit rm -rf "$here/dist"
load_images nginx:latest nginx:1.29-alpine
go test -v -tags=kind -count=1 -timeout=20m ./test/e2e | sed -u '/^=== /d; s/^ *[a-z_]*_test.go:[0-9]*: //' ||
  fail "the end-to-end test ended with the failure above."
say "the end-to-end test is done"
