#!/usr/bin/env bash
# Runs the chapter with kubectl on the kind cluster named by KIND_CLUSTER: the steps in order, the samples, and every
# request that the CRD makes possible. Exits 0, or prints the difference.
set -euo pipefail
# shellcheck source=../scripts/kind-chapter.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/kind-chapter.sh"

name=mywebs.operator.k8s-summit.org
contract=config/crd/operator.k8s-summit.org_mywebs.yaml

# prints TEXT CMD...: CMD succeeds and prints TEXT; runs of blanks count as one.
prints() {
  local want=$1 out
  shift
  if ! out=$("$@" 2>&1); then
    echo "'$*' failed: $out"
    return 1
  fi
  out=$(tr -s ' ' <<<"$out")
  [[ $out == *"$want"* ]] && return
  echo "'$*' does not print '$want' but: $out"
  return 1
}

# refuses TEXT CMD...: CMD fails and prints TEXT.
refuses() {
  local want=$1 out
  shift
  if out=$("$@" 2>&1); then
    echo "'$*' succeeded, but '$want' should refuse it: $out"
    return 1
  fi
  [[ $out == *"$want"* ]] && return
  echo "'$*' does not fail with '$want' but with: $out"
  return 1
}

# must CMD...: CMD, one of the two functions above, succeeds now.
must() {
  local difference
  difference=$("$@") || fail "$difference"
}

cleanup() {
  kubectl delete crd "$name" --ignore-not-found >/dev/null
}

steps() {
  say "Step 1: a schema without fields keeps none"
  kubectl apply -f steps/01-minimal.yaml
  eventually 60 kubectl wait --for=condition=Established "crd/$name" --timeout=60s
  eventually 30 refuses 'unknown field "spec"' kubectl apply -f samples/myweb.yaml
  kubectl apply --validate=false -f samples/myweb.yaml
  must prints 'spec=.' kubectl get myweb myweb -o jsonpath='spec={.spec}.'

  say "Step 2: a schema keeps and checks fields"
  kubectl apply -f steps/02-schema.yaml
  eventually 30 prints myweb kubectl apply -f samples/myweb.yaml
  must prints '<h1>Hello, World!</h1>' kubectl get myweb myweb -o jsonpath='{.spec.pageContentHtml}'

  say "Step 3: columns"
  kubectl apply -f steps/03-columns.yaml
  eventually 30 prints 'NAME IMAGE NODEPORT AGE' kubectl get mywebs
  must prints 'myweb nginx 30100' kubectl get mywebs

  say "Step 4: the default reaches an object stored before"
  kubectl apply -f steps/04-defaults-and-bounds.yaml
  eventually 30 prints 'replicas=1' kubectl get myweb myweb -o jsonpath='replicas={.spec.replicas}'

  say "Step 5: rules with sentences"
  kubectl apply -f steps/05-cel.yaml
  eventually 30 refuses 'must be an image reference' kubectl apply --dry-run=server -f samples/bad/image-space.yaml

  say "Step 6: status and scale"
  kubectl apply -f steps/06-status-and-scale.yaml
  eventually 30 prints 'NAME IMAGE NODEPORT READY AGE' kubectl get mywebs

  say "Step 7: a short name and a category"
  kubectl apply -f "$contract"
  eventually 30 prints "mywebs web" kubectl api-resources --api-group=operator.k8s-summit.org
}

subresources() {
  say "Status is written through its own address only"
  kubectl patch web myweb --type=merge -p '{"status":{"completed":true}}'
  must prints 'completed=.' kubectl get web myweb -o jsonpath='completed={.status.completed}.'
  kubectl patch web myweb --type=merge --subresource=status \
    -p '{"spec":{"image":"httpd"},"status":{"nodePort":30100,"readyReplicas":1}}'
  must prints 'myweb nginx 30100 1' kubectl get web

  say "Scale"
  kubectl scale web myweb --replicas=3
  must prints 'replicas=3' kubectl get web myweb -o jsonpath='replicas={.spec.replicas}'
  must refuses 'should be less than or equal to 10' kubectl scale web myweb --replicas=11
}

verbs() {
  say "get all and explain"
  must prints 'myweb.operator.k8s-summit.org/myweb nginx 30100 1' kubectl get all
  eventually 30 prints 'the cluster allocates a port' kubectl explain web.spec.nodePortNumber

  say "An unknown field is refused, or warned about, or cut off in silence"
  must refuses 'unknown field "spec.colour"' kubectl apply -f - <<<"$(with_colour)"
  must prints 'Warning: unknown field "spec.colour"' kubectl apply --validate=warn -f - <<<"$(with_colour)"
  must prints 'colour=.' kubectl get web colourful -o jsonpath='colour={.spec.colour}.'
}

with_colour() {
  sed 's/name: image-only/name: colourful/' samples/good/image-only.yaml
  echo '  colour: red'
}

samples() {
  local file line
  for file in samples/good/*.yaml; do
    say "Accepted: $file"
    must prints "$(sed -n 's/^  name: //p' "$file")" kubectl apply -f "$file"
  done
  must prints '👩🏽‍💻' kubectl get web page-unicode -o jsonpath='{.spec.pageContentHtml}'
  for file in samples/bad/*.yaml; do
    say "Refused: $file"
    line=$(sed -n '1s/^# refused: //p' "$file")
    must refuses "${line%%: *}" kubectl apply --dry-run=server -f "$file" # the field's path
    must refuses "${line#*: }" kubectl apply --dry-run=server -f "$file"  # the message
  done
}

kind_up
absent crd "$name"
on_exit cleanup

steps
subresources
verbs
samples

say "The MyWebs go with their CRD"
kubectl delete -f "$contract"
eventually 30 refuses 'the server' kubectl get mywebs
say "Chapter 01 does on kind what its page says."
