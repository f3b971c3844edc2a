#!/usr/bin/env bash
# Runs the chapter's program on the kind cluster named by KIND_CLUSTER: every command of webctl on the generated CRD,
# with a watcher beside it. Exits 0, or prints the difference.
set -euo pipefail
# shellcheck source=../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/kind-chapter.sh"

name=mywebs.operator.k8s-summit.org
tmp=$(mktemp -d)
on_exit rm -rf "$tmp"

webctl() { "$tmp/webctl" "$@"; }

# prints TEXT CMD...: CMD succeeds and prints TEXT; runs of blanks count as one.
prints() {
  local want=$1 out
  shift
  out=$("$@" 2>&1) || fail "'$*' failed: $out"
  out=$(tr -s ' ' <<<"$out")
  [[ $out == *"$want"* ]] || fail "'$*' does not print '$want' but: $out"
}

# refuses TEXT CMD...: CMD fails and prints TEXT.
refuses() {
  local want=$1 out
  shift
  if out=$("$@" 2>&1); then
    fail "'$*' succeeded, but '$want' should refuse it: $out"
  fi
  [[ $out == *"$want"* ]] || fail "'$*' does not fail with '$want' but with: $out"
}

# watched LINE: the watcher printed LINE.
watched() { grep -qxF -- "$1" "$tmp/watch"; }

stop_watcher() { kill "$watcher" 2>/dev/null; }
cleanup() { kubectl delete crd "$name" --ignore-not-found >/dev/null; }

kind_up
absent crd "$name"
on_exit cleanup
go build -buildvcs=false -o "$tmp/webctl" ./cmd/webctl

say "Without the CRD there is nothing to watch"
refuses 'could not find the requested resource' webctl watch

say "The generated CRD"
kubectl apply -f config/crd
eventually 60 kubectl wait --for=condition=Established -f config/crd --timeout=60s
eventually 30 kubectl get web

say "A watcher"
"$tmp/webctl" watch --resync 5s >"$tmp/watch" 2>&1 &
watcher=$!
on_exit stop_watcher
eventually 30 watched 'the cache has synced, watching'

say "Apply and get"
prints 'shop 1 nginx 0/1 tier=front' webctl apply --image nginx --label tier=front --page '<h1>Hi</h1>' shop
prints 'blog 1 nginx 0/1 tier=back' webctl apply --image nginx --label tier=back blog
prints 'blog 1 nginx 0/1 tier=back' webctl get blog
prints 'nginx <none>' kubectl get web shop -o custom-columns=I:.spec.image,R:.status.readyReplicas
eventually 30 watched 'ADDED    shop: generation 1, image nginx, 0 of 1 ready'
eventually 30 watched 'ADDED    blog: generation 1, image nginx, 0 of 1 ready'

say "Scale and status"
kubectl scale web shop --replicas=3
refuses 'should be less than or equal to 10' kubectl scale web shop --replicas=11
kubectl patch web shop --subresource=status --type=merge -p '{"status":{"readyReplicas":3}}'
prints 'shop 2 nginx 3/3' webctl get shop
eventually 30 watched 'CHANGED  shop: generation 2, image nginx, 0 of 3 ready'
eventually 30 watched 'STATUS   shop: generation 2, image nginx, 3 of 3 ready'

say "Each field has an owner"
refuses 'conflict with "webctl"' webctl apply --image httpd --manager editor shop
prints 'shop 3 httpd 3/3' webctl apply --image httpd --manager editor --force shop
refuses 'conflict with "editor"' webctl apply --image nginx shop
refuses 'must be an image reference' webctl apply --image 'not an image' blog

say "kubectl and webctl see the same"
kubectl label web shop tier=middle --overwrite
eventually 30 watched 'CHANGED  shop: generation 3, image httpd, 3 of 3 ready'
prints 'shop 3 httpd 3/3 tier=middle' webctl get shop

say "The cache repeats itself"
eventually 30 watched 'RESYNC   blog: generation 1, image nginx, 0 of 1 ready'

say "Delete"
kubectl delete web shop
refuses 'not found' webctl get shop
eventually 30 watched 'DELETED  shop'

kill "$watcher"
wait "$watcher" || fail "the watcher ended with code $?: $(tail -n 3 "$tmp/watch")"
watched 'the cache holds 1 at the end' || fail "the watcher's last word is: $(tail -n 1 "$tmp/watch")"
say "Chapter 02 does on kind what its page says."
