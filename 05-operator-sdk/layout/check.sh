#!/usr/bin/env bash
# Compares the tables of README.md with the projects: each file has a row, each row has a file. The row of a file is the
# row with its path, else a row with a matching pattern, else the row with the longest folder that contains the file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Rows with four columns are about files that exist.
rows=$(awk -F'|' 'NF == 6 && $2 ~ /^ `/ { gsub(/[ `]/, "", $2); print $2 }' README.md)
wrong=0 used=""

# row_of FILE: prints the row of FILE, or nothing.
row_of() {
  local row best=""
  while read -r row; do
    # shellcheck disable=SC2254  # a row may be a pattern
    case $1 in
    $row)
      printf '%s' "$row"
      return
      ;;
    esac
    [[ $row != */ || $1 != "$row"* ]] || ((${#row} <= ${#best})) || best=$row
  done <<<"$rows"
  printf '%s' "$best"
}

for project in ../*/cmd/main.go; do # the projects in Go that were scaffolded
  project=${project%/cmd/main.go}
  files=0
  while read -r file; do
    files=$((files + 1))
    row=$(row_of "$file")
    used+=$row$'\n'
    [[ -n $row ]] || {
      printf '%s has no row: %s\n' "${project#../}" "$file"
      wrong=1
    }
  done < <(cd "$project" && find . -type f -not -path './bin/*' -not -path './dist/*' -not -name cover.out | sed 's|^\./||')
  ((wrong)) || printf '%s: each of its %d files has a row\n' "${project#../}" "$files"
done
while read -r row; do
  grep -qxF -- "$row" <<<"$used" || {
    printf 'a row without a file: %s\n' "$row"
    wrong=1
  }
done <<<"$rows"
((wrong)) || printf 'each of %d rows has a file\n' "$(wc -l <<<"$rows")"
exit $wrong
