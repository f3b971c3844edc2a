#!/usr/bin/env bash
# Runs a command in a network namespace that has only loopback, which is a machine without any network:
#   scripts/offline.sh make test CH=01
set -euo pipefail
user=()
if [[ $(id -u) != 0 ]]; then user=(--map-root-user); fi
# shellcheck disable=SC2016  # the inner bash expands it
exec unshare --net "${user[@]}" bash -c 'ip link set lo up && exec "$@"' offline "$@"
