#!/usr/bin/env bash
# The end-to-end test on kind: test/e2e with the operator in the cluster and a real PostgreSQL.
set -euo pipefail
# shellcheck source=../../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/kind-chapter.sh"

kind_up
absent crd databasebackups.databases.test.io databaserestores.databases.test.io
absent namespace orders
on_exit rm -rf "$here/dist/image" "$here/pgbackup/dist"
load_images postgres:17 restic/restic:0.18.1 restic/rest-server:0.14.0 rclone/rclone:1.72.0
say "the operator is deployed, and a database is backed up, lost and restored, also in another cluster"
e2e
say "the end-to-end test is done"
