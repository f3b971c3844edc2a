package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/page"
)

// Each term of the glossary is used on another page: a word that no chapter uses does not need an entry. And each has
// something to see.
func TestTheGlossaryExplainsWordsOfThePages(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	glossary := filepath.Join(root, "GLOSSARY.md")
	paths, err := page.Find(root)
	if err != nil {
		t.Fatal(err)
	}
	var others strings.Builder
	for _, path := range paths {
		if path == glossary {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		others.Write(regexp.MustCompile(`\s+`).ReplaceAll(text, []byte(" ")))
	}
	text, err := os.ReadFile(glossary)
	if err != nil {
		t.Fatal(err)
	}
	entries := regexp.MustCompile(`(?m)^### `).Split(string(text), -1)[1:]
	if len(entries) < 30 {
		t.Errorf("the glossary has %d terms, want at least 30", len(entries))
	}
	for _, entry := range entries {
		term, explanation, _ := strings.Cut(entry, "\n")
		if !regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(term)).MatchString(others.String()) {
			t.Errorf("%q is on no other page", term)
		}
		if !strings.Contains(explanation, "```sh") && !strings.Contains(explanation, "```go") {
			t.Errorf("%q has no command and no line of code", term)
		}
	}
}
