#!/usr/bin/env bash
# Builds an operator of operators.tsv in out/gallery/NAME, and examines it with the settings in NAME/examine.yaml:
#   gallery.sh NAME [SETTING=value]...
#   SOURCE=folder gallery.sh NAME   takes your checkout of the operator instead of its Go module
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd) # of the module
assets=${KUBEBUILDER_ASSETS:-$root/../../bin}
export CGO_ENABLED=0 GOWORK=off GOFLAGS=

name=${1:-}
line=$(awk -F '\t' -v name="$name" 'name != "" && $1 == name' "$here/operators.tsv")
if [ -z "$line" ]; then
  echo "gallery: there is no operator \"$name\": take one of" "$(awk -F '\t' '!/^#/ { print $1 }' "$here/operators.tsv" | xargs)" >&2
  exit 1
fi
IFS=$'\t' read -r name module version main manifests <<<"$line"
out=$root/out/gallery/$name
mkdir -p "$out"

if [ -n "${SOURCE:-}" ]; then
  folder=$(cd "$SOURCE" && pwd)
  (cd "$folder" && go build -o "$out/$name" "./$main")
else
  # A small module requires the operator's module. Replacements count only in the main module: it copies those that
  # name a version. Those that name a folder are modules of their own, at the version that go.mod requires.
  cd "$out"
  printf 'module example.com/gallery\n' >go.mod
  folder=$(go mod download -json "$module@$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || {
    echo "gallery: Go cannot download $module $version: take a checkout, SOURCE=folder gallery.sh $name" >&2
    exit 1
  }
  go mod edit -print "$folder/go.mod" | sed -n 's/^\(replace \|\t\)\([^ ]*\( v[^ ]*\)\?\) => \([^. ][^ ]*\) \(v.*\)$/\2=\4@\5/p' |
    sed 's/ v/@v/' | while read -r replacement; do go mod edit -replace="$replacement"; done
  go mod edit -go="$(sed -n 's/^go //p' "$folder/go.mod")" -require="$module@$version"
  go get "$module/$main@$version"
  go build -o "$name" "$module/$main"
fi
ln -sfn "$folder" "$out/source" # the settings find the CRDs, roles and webhooks here
if [ -n "$manifests" ]; then # a kustomization: kubectl is that of the control plane
  "$assets/kubectl" kustomize "$folder/$manifests" >"$out/manifest.yaml"
fi
go build -C "$root" -o bin/examine ./cmd/examine
cd "$root" && exec bin/examine run FILE="$here/$name/examine.yaml" "${@:2}"
