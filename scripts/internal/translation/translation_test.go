package translation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

const english = `# A page

Run it, and see
[the next page](../b/README.md#its-end) or [code](x.go), ` + "`f[T](x)`.\n\n```sh\nmake up\n```\nOutput:\n```console\nRun it\n```" + `

| what | ` + "`flag`" + ` |
|---|---|
| It changed | ` + "`--x`" + ` |

<details><summary>The code</summary>
`

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	testkit.Must(t, os.WriteFile(path, []byte(text), 0o644))
}

// A page in another language has the blocks of the English page, links to pages in the language, the anchors of the
// English headings, and English text with a mark where there is no translation.
func TestAPageInAnotherLanguage(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a/README.md", english)
	write(t, root, "b/README.md", "# B\n")
	write(t, root, "i18n/ja/b/README.po", "")
	write(t, root, "i18n/ja/a/README.po", `
msgid "A page"
msgstr "ページ"

msgid "Run it, and see [the next page](../b/README.md#its-end) or [code](x.go), `+"`f[T](x)`"+`."
msgstr "実行して、[次のページ](../b/README.md#its-end)か[コード](x.go)か`+"`f[T](x)`"+`を見ます。"

msgid "The code"
msgstr "コード"
`)
	all, err := Load(root, "ja")
	testkit.Must(t, err)
	want := `# <a id="a-page"></a>ページ

<!-- Made by ` + "`make sync`" + ` from a/README.md and README.po: change those. -->

実行して、[次のページ](../b/README.md#its-end)か[コード](../../../a/x.go)か` + "`f[T](x)`" + `を見ます。

` + "```sh\nmake up\n```\n出力：\n```console\nRun it\n```" + `

| [en] what | ` + "`flag`" + ` |
|---|---|
| [en] It changed | ` + "`--x`" + ` |

<details><summary>コード</summary>
`
	if got := all[0].Text(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if stale := all[0].Stale(); len(stale) != 2 || !strings.HasPrefix(stale[0], "a/README.md:14: what") {
		t.Errorf("stale: %q", stale)
	}
	testkit.Must(t, all[0].WritePO())
	again, err := Open(root, "ja", "a/README.md")
	testkit.Must(t, err)
	if again.texts["A page"] != "ページ" || again.texts["It changed"] != "" || len(again.texts) != 5 {
		t.Errorf("written again: %q", again.texts)
	}
}

func TestFaults(t *testing.T) {
	terms := Terms{"controller": {"コントローラー"}}
	for name, test := range map[string]struct{ text, translated, want string }{
		"right":      {"A controller of `x` in [b](c.md), 3 times", "[b](c.md)に`x`のコントローラーが3回", ""},
		"a word":     {"two times, a minute", "2回、1分", ""},
		"more words": {"1 of 2, a hint, twice", "2個中の1個、2回", ""},
		"a number":   {"3 times", "4回", "numbers"},
		"code":       {"`make up`", "`make アップ`", "code"},
		"a link":     {"[b](c.md)", "[b](d.md)", "links"},
		"a term":     {"many controllers", "多くの制御器", "controller"},
		"a mark":     {"one, two", "一, 二", "half width"},
		"comments":   {"a <!-- by hand -->b<!-- end -->", "aとb", "comments"},
	} {
		t.Run(name, func(t *testing.T) {
			all := strings.Join(faults(test.text, test.translated, terms), "; ")
			if (all == "") != (test.want == "") || !strings.Contains(all, test.want) {
				t.Errorf("%q", all)
			}
		})
	}
}
