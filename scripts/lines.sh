#!/usr/bin/env bash
# Prints the number of lines of the repository, by chapter and in all, beside the limits. Generated code is not counted.
# The column "around" has stages, API types and testenv, "hardening" the packages around a finished operator. `make sync`
# writes the files that sync.yaml names as copies.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copies=$(sed -nE 's/^ +- (.*)/\1/p; s/^ +to: \[(.*)\]/\1/p' scripts/sync.yaml | tr -d ' ' | tr , '\n')
export copies

git ls-files -z '*.go' '*.md' | xargs -0 wc -l | awk '
  function kind(path) {
    if (path ~ /\.md$/) return "pages"
    if (path ~ /_test\.go$/) return "tests"
    if (path ~ /zz_|\/generated\/|applyconfiguration\/|\/pkg\/client/) return ""
    if (path ~ /\/(stages|testenv|apis|api)\//) return "around"
    if (path ~ /\/(hardening|owned|conditions)\//) return "hardening"
    return "core"
  }
  function copied(path, i) {
    for (i in copies) if (path == copies[i] || index(path, copies[i] "/") == 1) return 1
  }
  BEGIN { split(ENVIRON["copies"], copies, "\n") }
  $2 == "total" || !(k = kind($2)) { next }
  {
    n = split($2, part, "/")
    place = n == 1 ? "." : part[1]
    if (place == "05-operator-sdk" && n > 2) place = place "/" part[2]
    if (place == "scripts" && n > 2 && part[2] == "lab") place = "scripts/lab"
    if (!(place in known)) { known[place]; order[++places] = place }
    count[place, k] += $1; total[k] += $1
    if (k == "pages" || k == "tests") next
    total["go"] += $1
    if (copied($2)) total["copies"] += $1
    if (part[1] == "scripts") total["scripts"] += $1
  }
  END {
    split("core hardening around tests pages", kinds, " ")
    row = "%-42s %9s %9s %9s %9s %9s\n"
    printf row, "", kinds[1], kinds[2], kinds[3], kinds[4], kinds[5]
    for (i = 1; i <= places; i++) {
      p = order[i]
      printf row, p, count[p, "core"], count[p, "hardening"], count[p, "around"], count[p, "tests"], count[p, "pages"]
    }
    printf row, "all", total["core"], total["hardening"], total["around"], total["tests"], total["pages"]
    printf "\nGo without tests and generated code: %d lines, at most 56000; %d of them are copies\n",
      total["go"], total["copies"]
    printf "Tests: %d lines, at most 43000\n", total["tests"]
    printf "Go in scripts, without tests: %d lines, at most 28000\n", total["scripts"]
  }'
