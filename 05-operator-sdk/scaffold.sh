#!/usr/bin/env bash
# Runs kubebuilder to write the scaffolds of this chapter into ../work/scaffold, and compares them with the projects
# here: scaffold.sh writes them again, scaffold.sh compare PROJECT compares file by file.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/.." && pwd)
out=$root/work/scaffold
export PATH=$root/bin:$PATH GOWORK=off

# quietly CMD ARG...: what it prints is shown when it fails.
quietly() {
  local said
  said=$("$@" 2>&1) || {
    printf '%s\n' "$said" >&2
    printf 'scaffold: this failed: %s\n' "$*" >&2
    exit 1
  }
}

# project NAME [DOMAIN]: an empty project in the folder NAME, which gives it its name.
project() {
  mkdir -p "$out/$1"
  cd "$out/$1"
  quietly kubebuilder init --domain "${2-example.com}" --repo "github.com/example/$1" --fetch-deps=false
}

scaffold() {
  "$root/scripts/workshop" tools kubebuilder
  rm -rf "$out"
  project memcached-operator
  quietly kubebuilder create api --group cache --version v1alpha1 --kind Memcached --resource --controller --make=false
  quietly kubebuilder create webhook --group cache --version v1alpha1 --kind Memcached --defaulting --programmatic-validation --make=false
  project nginx-operator
  quietly kubebuilder create api --group proxy --version v1alpha1 --kind Nginx --resource --controller --make=false
  project databasebackup-operator test.io
  quietly kubebuilder create api --group databases --version v1 --kind DatabaseBackup --resource --controller --make=false
  quietly kubebuilder create webhook --group databases --version v1 --kind DatabaseBackup --programmatic-validation --make=false
  quietly kubebuilder create api --group databases --version v1 --kind DatabaseRestore --resource --controller --make=false
  project deploy-image
  quietly kubebuilder create api --group cache --version v1alpha1 --kind Memcached --plugins=deploy-image/v1-alpha --make=false \
    --image=memcached:1.6-alpine --image-container-command="memcached,--memory-limit=64,-o,modern,-v" \
    --image-container-port=11211 --run-as-user=1001
  project multi-group
  quietly kubebuilder edit --multigroup=true
  quietly kubebuilder create api --group cache --version v1alpha1 --kind Memcached --resource --controller --make=false
  quietly kubebuilder create api --group proxy --version v1alpha1 --kind Nginx --resource --controller --make=false
  cd "$out"
  for name in *; do
    printf '%-23s %3d files\n' "$name" "$(files "$name" | wc -l)"
  done
}

# files FOLDER: the files in it, without files that are built or downloaded.
files() (
  cd "$1"
  find . -type f -not -path './bin/*' -not -path './dist/*' -not -name cover.out | sed 's|^\./||' | LC_ALL=C sort
)

compare() {
  local file now
  [[ -n $1 && -d $out/$1 && -d $here/$1 ]] || {
    printf 'scaffold: there is nothing to compare "%s" with: run ./scaffold.sh first, then name memcached-operator, nginx-operator or databasebackup-operator\n' "$1" >&2
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

case ${1-} in
"") scaffold ;;
compare) compare "${2-}" ;;
*)
  printf 'scaffold: %s is no verb: run ./scaffold.sh, or ./scaffold.sh compare memcached-operator\n' "$1" >&2
  exit 1
  ;;
esac
