#!/usr/bin/env bash
# The end-to-end test on kind: test/e2e with the operator in the cluster and real nginx.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

kind_up
absent crd nginxes.proxy.example.com
on_exit rm -rf "$here/dist/image"
load_images nginx:1.29-alpine nginx:latest busybox:1.37
say "the operator goes into the cluster, and its pages are fetched"
e2e
say "the end-to-end test is done"
