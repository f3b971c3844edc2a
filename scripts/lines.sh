#!/usr/bin/env bash
# Prints the number of lines of the repository, by chapter and in all, beside the limits. Generated code is not counted, and
# a file that `make sync` copies counts once: its copies, the targets in sync.yaml, do not. Packages that only tests use
# (testenv, programtest, utils, webhooktest, testoperator, testkit) are tests. The column "around" has stages and API types,
# "hardening" the packages around a finished operator. The limits are for the workshop: examine is a module that needs nothing of
# it, and has its own line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

copies=$(sed -nE 's/^ +- (.*)/\1/p; s/^ +to: \[(.*)\]/\1/p' scripts/sync.yaml | tr -d ' ' | tr , '\n')
export copies

git ls-files -z '*.go' '*.md' | xargs -0 wc -l | awk '
  function kind(path) {
    if (path ~ /\.md$/) return "pages"
    if (path ~ /_test\.go$/) return "tests"
    if (path ~ /zz_|\/generated\/|applyconfiguration\/|\/pkg\/client/) return ""
    if (path ~ /\/(testenv|programtest|utils|webhooktest|testoperator|testkit)\//) return "tests"
    if (path ~ /\/(stages|apis|api)\//) return "around"
    if (path ~ /\/(hardening|owned|conditions)\//) return "hardening"
    return "core"
  }
  # The tests of a copied folder stay beside its source, so a test below a copy is none.
  function copied(path, i) {
    for (i in copies) if (path == copies[i]) return 1
    for (i in copies) if (path !~ /_test\.go$/ && index(path, copies[i] "/") == 1) return 1
  }
  function place(path, part, n) {
    n = split(path, part, "/")
    if (n == 1) return "."
    if (path ~ /^scripts\/examine\//) return "scripts/examine"
    if (part[1] == "05-operator-sdk" && n > 2 || part[2] == "lab") return part[1] "/" part[2]
    return part[1]
  }
  BEGIN { split(ENVIRON["copies"], copies, "\n") }
  $2 == "total" || !(k = kind($2)) { next }
  copied($2) { copies_left_out += $1; next }
  {
    p = place($2)
    if (!(p in known)) { known[p]; order[++places] = p }
    count[p, k] += $1; total[k] += $1
    if (k == "pages" || k == "tests") next
    go[p] += $1; total["go"] += $1
    if (p ~ /^scripts/) scripts += $1
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
    examine = go["scripts/examine"]
    printf "\nGo without tests and generated code: %d lines, at most 54000\n", total["go"] - examine
    printf "Go in scripts, without tests: %d lines, at most 34500\n", scripts - examine
    printf "Tests: %d lines, at most 42500\n", total["tests"] - count["scripts/examine", "tests"]
    printf "The module of examine, apart: %d lines of Go, %d of tests; with it %d and %d\n",
      examine, count["scripts/examine", "tests"], total["go"], total["tests"]
    printf "Copies that are not counted: %d lines\n", copies_left_out
  }'
