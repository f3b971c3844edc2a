package translation

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestMarkedSentences(t *testing.T) {
	root := t.TempDir()
	write(t, root, "web/a.js", "show(t(\"{1} of {2} passed\", all.length, 3), at(\"no\"), t(\n  \"it says \\\"no\\\"\"));")
	write(t, root, "web/a.html", `<p title="{{.T "Close"}}">{{$.T "More"}} {{.Title "no"}}</p>`)
	write(t, root, "a.go", "said.Sayf(\"%s of %d: 100%%, %.1f ms\", a, b, c); translation.Mark(\"It runs.\")")
	write(t, root, "a_test.go", `Mark("no")`)
	all, err := Marked(root, "*.go", "web/*")
	testkit.Must(t, err)
	var texts []string
	for _, s := range all {
		texts = append(texts, s.From+": "+s.Text)
	}
	want := []string{"a.go: {1} of {2}: 100%, {3} ms", "a.go: It runs.", "web/a.html: Close", "web/a.html: More",
		"web/a.js: {1} of {2} passed", `web/a.js: it says "no"`}
	if !slices.Equal(texts, want) {
		t.Errorf("%q, wanted %q", texts, want)
	}
}

// catalogue returns sentences in Japanese.
func catalogue(t *testing.T, root string, sentences ...Sentence) *Translation {
	t.Helper()
	write(t, root, "i18n/ja/window.po", `
msgid "Close"
msgstr "閉じる"

msgid "{1} wrote {2} times"
msgstr "{2}回、{1}が書き込みました"

msgid "{1} is back"
msgstr "{1}が戻る"

msgid "the page"
msgstr "ページ"

msgid "expected that {1}; but not within {2}: {3}"
msgstr "期待：{1}。結果：{2}以内には起きません：{3}"

msgid "expected that {1}; but {2}"
msgstr "期待：{1}。結果：{2}"

msgid "{1} has another value"
msgstr "{1}、{2}"

msgid "gone from the source"
msgstr "もうない"
`)
	c, err := Catalogue(root, "ja", "window", sentences)
	testkit.Must(t, err)
	return c
}

func TestASentenceIsFoundByItsTemplate(t *testing.T) {
	c := catalogue(t, t.TempDir())
	for text, want := range map[string]string{
		"Close":                 "閉じる",
		"web has another value": "web has another value",
		"Open":                  "Open",
		"web wrote 3 times":     "3回、webが書き込みました",
		"the page is back":      "ページが戻る",
		"expected that the page is back; but not within 20s: configmaps \"web\" not found": "期待：ページが戻る。結果：20s以内には起きません：configmaps \"web\" not found",
		"expected that web is back; but it is not":                                         "期待：webが戻る。結果：it is not",
		"Close\n  Close\nx wrote 1 times:\n  PUT web":                                      "閉じる\n  Close\nx wrote 1 times:\n  PUT web",
	} {
		if got := c.SayWhole(text); got != want {
			t.Errorf("%q became %q, wanted %q", text, got, want)
		}
	}
	// A value is not taken for a sentence with values.
	if got, want := c.Say("expected that a is back; but the page"), "期待：a is back。結果：ページ"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
	if got, want := c.Sayf("%s wrote %03d times", "the page", 7), "007回、the pageが書き込みました"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
	if got, want := c.Sayf("%s has another value", "web"), "web has another value"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
	var english *Translation
	if got := english.Sayf("%d is back", 1); got != "1 is back" {
		t.Error(got)
	}
}

func TestACatalogueIsWrittenAnew(t *testing.T) {
	root := t.TempDir()
	write(t, root, "README.md", "# A page")
	c := catalogue(t, root, Sentence{"Close", "a.js"}, Sentence{"{1} of {2}", "a.js"}, Sentence{"Close", "b.js"})
	if stale := c.Stale(); !slices.Equal(stale, []string{"window:2: {1} of {2}"}) {
		t.Errorf("stale: %q", stale)
	}
	if obsolete := c.Obsolete(); len(obsolete) != 7 || !slices.Contains(obsolete, "window: gone from the source") {
		t.Errorf("obsolete: %q", obsolete)
	}
	testkit.Must(t, c.WritePO())
	again, err := Catalogue(root, "ja", "window", nil)
	testkit.Must(t, err)
	if again.Say("Close") != "閉じる" || len(again.texts) != 2 {
		t.Errorf("written again: %q", again.texts)
	}
	pages, err := Load(root, "ja")
	testkit.Must(t, err)
	if len(pages) > 0 {
		t.Errorf("a catalogue is taken for the page %s", pages[0].Page)
	}
	testkit.Must(t, os.RemoveAll(filepath.Join(root, "i18n")))
}
