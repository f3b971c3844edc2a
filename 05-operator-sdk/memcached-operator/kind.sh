#!/usr/bin/env bash
# The end-to-end test on kind: test/e2e with the operator in the cluster and real memcacheds.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

kind_up
absent crd memcacheds.cache.example.com
on_exit rm -rf "$here/dist/image"
load_images memcached:1.6-alpine memcached:1.6.39-alpine busybox:1.37
say "the operator goes into the cluster, and its memcacheds are asked"
e2e
say "the end-to-end test is done"
