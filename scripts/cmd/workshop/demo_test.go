package main

import (
	"path/filepath"
	"regexp"
	"testing"

	"example.com/operator-workshop/scripts/internal/page"
)

// TestTheDemoIsPlainText: what the demo says is about what the demo does, without the marks of Markdown.
func TestTheDemoIsPlainText(t *testing.T) {
	p, err := page.Parse(filepath.Join("..", "..", "..", "04-controller-runtime", demoPage))
	if err != nil {
		t.Fatal(err)
	}
	wrong := regexp.MustCompile("`|\\]\\(|\\*\\*|<!--|terminal|ask again|Ctrl-C|make demo|this folder")
	for _, part := range p.Until("What happened").Parts {
		if found := wrong.FindString(part.Prose); found != "" {
			t.Errorf("%q is in: %s", found, part.Prose)
		}
	}
}
