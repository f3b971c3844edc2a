#!/usr/bin/env bash
# Three replicas of the operator, each with a third of the namespaces. The lab runs and judges them as one program.
set -u
if [[ $1 == --help ]]; then # the flags that the lab may set
  printf '  --%s\n' leader-elect leader-election-namespace health-probe-bind-address metrics-bind-address
  exit
fi
program=$1
shift
trap 'jobs -p | xargs -r kill -TERM 2>/dev/null' TERM INT
"$program" "$@" --shard=0/3 --replica="$$-0" &
for shard in 1 2; do # the addresses are those of the first
  "$program" "$@" --shard=$shard/3 --replica="$$-$shard" --health-probe-bind-address=0 --metrics-bind-address=0 &
done
wait -n # one has ended: so do the others, and the lab sees its exit code
code=$?
jobs -p | xargs -r kill -TERM 2>/dev/null
wait
exit $code
