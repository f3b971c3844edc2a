# Records of tests that run by hand: scripts/verified.txt, which README.md shows, and scripts/nightly.txt, which
# CONTRIBUTING.md shows. Sourced, never run. Works in bash 3.2.
# shellcheck shell=bash disable=SC2154 # root

# tested_commit: the commit of the checkout, with -dirty when files differ from it. The files that a record changes do
# not count.
tested_commit() {
  local commit
  commit=$(git -C "$root" rev-parse --short=10 HEAD 2>/dev/null) || { echo unknown && return; }
  [[ -z $(git -C "$root" status --porcelain -- \
    ':!scripts/verified.txt' ':!README.md' ':!scripts/nightly.txt' ':!CONTRIBUTING.md') ]] || commit+=-dirty
  echo "$commit"
}

# record CHAPTER SECONDS KUBERNETES MACHINE COMMIT: writes a row of verified.txt, instead of the row of the chapter for
# this Kubernetes.
record() {
  row verified.txt README.md "^$1 *$3 " \
    "$(printf '%-42s %-10s %-7s %-11s %-16s %6s' chapter Kubernetes machine on commit took)" \
    "$(printf '%-42s %-10s %-7s %-11s %-16s %4d s' "$1" "$3" "$4" "$(date -u +%F)" "$5" "$2")"
}

# row TABLE PAGE OLD HEADER ROW: writes ROW into a table in scripts/ instead of the rows that match OLD, and the table
# into the page that includes it.
row() {
  local file=$root/scripts/$1 page=$root/$2
  {
    printf '%s\n' "$4"
    { tail -n +2 "$file" 2>/dev/null | grep -v -- "$3" || true; printf '%s\n' "$5"; } | LC_ALL=C sort
  } >"$file.new"
  mv "$file.new" "$file"
  awk -v file="$file" -v first="\`\`\`text file=scripts/$1" '
    $0 == first { print; while ((getline line < file) > 0) print line; skip = 1; next }
    /^```$/ { skip = 0 }
    !skip' "$page" >"$page.new"
  mv "$page.new" "$page"
}
