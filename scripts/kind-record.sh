# The record of the tests on kind: scripts/verified.txt, which README.md includes. Sourced, never run. Works in bash 3.2.
# shellcheck shell=bash disable=SC2154 # root

# tested_commit: the commit of the checkout, with -dirty when files differ from it. The two files that a record changes
# do not count.
tested_commit() {
  local commit
  commit=$(git -C "$root" rev-parse --short=10 HEAD 2>/dev/null) || { echo unknown && return; }
  [[ -z $(git -C "$root" status --porcelain -- ':!scripts/verified.txt' ':!README.md') ]] || commit+=-dirty
  echo "$commit"
}

# record CHAPTER SECONDS KUBERNETES MACHINE COMMIT: writes a row of verified.txt, instead of the row of the chapter for
# this Kubernetes.
record() {
  local file=$root/scripts/verified.txt row
  row=$(printf '%-42s %-10s %-7s %-11s %-16s %4d s' "$1" "$3" "$4" "$(date -u +%F)" "$5" "$2")
  {
    printf '%-42s %-10s %-7s %-11s %-16s %6s\n' chapter Kubernetes machine on commit took
    { tail -n +2 "$file" 2>/dev/null | grep -v "^$1 *$3 " || true; printf '%s\n' "$row"; } | LC_ALL=C sort
  } >"$file.new"
  mv "$file.new" "$file"
  awk -v file="$file" '
    /^```text file=scripts\/verified.txt$/ { print; while ((getline line < file) > 0) print line; skip = 1; next }
    /^```$/ { skip = 0 }
    !skip' "$root/README.md" >"$root/README.md.new"
  mv "$root/README.md.new" "$root/README.md"
}
