#!/usr/bin/env bash
# Runs operator-sdk to write the scaffolds of this chapter into ../work/scaffold, and compares them:
#   scaffold.sh                  writes them again; changed ones are kept beside them, as scaffold-before-1
#   scaffold.sh compare PROJECT  lists how the files of the project here differ from its scaffold
#   scaffold.sh kubebuilder      lists how the scaffold of kubebuilder alone differs from that of operator-sdk
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
out=$root/work/scaffold
new=$out.new # takes its place when it is complete
export PATH=$root/bin:$PATH GOWORK=off

# quietly CMD ARG...: shows the output of CMD only when CMD fails.
quietly() {
  local said
  said=$("$@" 2>&1) || {
    printf '%s\n' "$said" >&2
    printf 'scaffold: this failed: %s\n' "$*" >&2
    exit 1
  }
}

# project NAME [DOMAIN]: an empty Go project in the folder NAME, which gives it its name.
project() {
  mkdir -p "$new/$1"
  cd "$new/$1"
  quietly operator-sdk init --domain "${2-example.com}" --repo "github.com/example/$1" --fetch-deps=false
}

# api ARG...: an API with its controller, in the project of the working directory.
api() {
  quietly operator-sdk create api "$@" --resource --controller --make=false
}

webhook() {
  quietly operator-sdk create webhook "$@" --make=false
}

# without_go PLUGIN ARG...: the MyWeb project of a plugin that needs no code.
without_go() {
  mkdir -p "$new/$1-operator"
  cd "$new/$1-operator"
  quietly operator-sdk init --plugins="$1" --domain k8s-summit.org --group operator --version v1 --kind MyWeb "${@:2}"
}

scaffold() {
  "$root/scripts/workshop" tools operator-sdk
  rm -rf "$new"
  project memcached-operator
  api --group cache --version v1alpha1 --kind Memcached
  webhook --group cache --version v1alpha1 --kind Memcached --defaulting --programmatic-validation
  project nginx-operator
  api --group proxy --version v1alpha1 --kind Nginx
  project databasebackup-operator test.io
  api --group databases --version v1 --kind DatabaseBackup
  webhook --group databases --version v1 --kind DatabaseBackup --programmatic-validation
  api --group databases --version v1 --kind DatabaseRestore
  project deploy-image
  quietly operator-sdk create api --group cache --version v1alpha1 --kind Memcached --plugins=deploy-image/v1-alpha \
    --image=memcached:1.6-alpine --image-container-command="memcached,--memory-limit=64,-o,modern,-v" \
    --image-container-port=11211 --run-as-user=1001 --make=false
  project multi-group
  quietly operator-sdk edit --multigroup=true
  api --group cache --version v1alpha1 --kind Memcached
  api --group proxy --version v1alpha1 --kind Nginx
  without_go helm
  without_go ansible --generate-role
  replace
  cd "$out"
  for name in *; do
    printf '%-23s %3d files\n' "$name" "$(files "$name" | wc -l)"
  done
}

# replace puts the new scaffolds in the place of the old ones. It keeps the old ones when they differ.
replace() {
  local n=1
  if [[ -d $out ]] && ! diff -rq -x bin -x dist -x cover.out "$out" "$new" >/dev/null; then
    while [[ -e $out-before-$n ]]; do n=$((n + 1)); done
    printf 'scaffold: work/scaffold had other files, they are in work/scaffold-before-%d now\n' "$n" >&2
    mv "$out" "$out-before-$n"
  fi
  rm -rf "$out"
  mv "$new" "$out"
}

# files FOLDER: the files in it, without files that are built or downloaded.
files() (
  cd "$1"
  find . -type f -not -path './bin/*' -not -path './dist/*' -not -name cover.out | sed 's|^\./||' | LC_ALL=C sort
)

compare() {
  local file now
  [[ -n $1 && -d $out/$1 && -d $here/$1 ]] || {
    printf 'scaffold: there is nothing to compare "%s" with: run ./scaffold.sh first, then name memcached-operator, nginx-operator, databasebackup-operator or helm-operator\n' "$1" >&2
    exit 1
  }
  while read -r file; do
    now="left out"
    [[ ! -e $here/$1/$file ]] || now=changed
    ! cmp -s "$out/$1/$file" "$here/$1/$file" || now="as it was"
    printf '%-9s %s\n' "$now" "$file"
  done < <(files "$out/$1")
  while read -r file; do
    [[ -e $out/$1/$file ]] || printf '%-9s %s\n' added "$file"
  done < <(files "$here/$1")
}

# kubebuilder writes the Memcached scaffold with kubebuilder alone, and compares file by file.
kubebuilder_alone() {
  local alone=$root/work/scaffold-kubebuilder/memcached-operator sdk=$out/memcached-operator file
  [[ -d $sdk ]] || {
    printf 'scaffold: there is no scaffold to compare with: run ./scaffold.sh first\n' >&2
    exit 1
  }
  "$root/scripts/workshop" tools kubebuilder
  rm -rf "$alone"
  mkdir -p "$alone"
  cd "$alone"
  quietly kubebuilder init --domain example.com --repo github.com/example/memcached-operator --fetch-deps=false
  quietly kubebuilder create api --group cache --version v1alpha1 --kind Memcached --resource --controller --make=false
  quietly kubebuilder create webhook --group cache --version v1alpha1 --kind Memcached --defaulting --programmatic-validation --make=false
  while read -r file; do
    if [[ ! -e $alone/$file ]]; then
      printf 'operator-sdk only  %s\n' "$file"
    elif [[ ! -e $sdk/$file ]]; then
      printf 'kubebuilder only   %s\n' "$file"
    elif ! cmp -s "$alone/$file" "$sdk/$file"; then
      printf 'differs            %s\n' "$file"
    fi
  done < <({ files "$alone"; files "$sdk"; } | LC_ALL=C sort -u) | LC_ALL=C sort -s -k1,2
}

case ${1-} in
"") scaffold ;;
compare) compare "${2-}" ;;
kubebuilder) kubebuilder_alone ;;
*)
  printf 'scaffold: "%s" is not a command: run ./scaffold.sh, ./scaffold.sh compare memcached-operator or ./scaffold.sh kubebuilder\n' "$1" >&2
  exit 1
  ;;
esac
