package window

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// choose chooses a language in the menu, and waits until the page has it.
func choose(t *testing.T, ctx context.Context, name, tag string) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`{
		const menu = document.querySelector("#language");
		menu.value = %q;
		menu.dispatchEvent(new Event("change"));
	}`, name), nil), chromedp.WaitReady(fmt.Sprintf(`html[lang=%q] [data-connected="yes"]`, tag)))
}

// TestAReaderChoosesALanguage: the page, its buttons and its results are in the language, also after a reload, and the
// blocks run as before.
func TestAReaderChoosesALanguage(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "i18n/ja/README.po"), `
msgid "A page"
msgstr "ページ"

msgid "Below"
msgstr "下"
`)
	testkit.Write(t, filepath.Join(f.root, "i18n/ja/window.po"), `
msgid "Run"
msgstr "実行"

msgid "Hint"
msgstr "ヒント"

msgid "✓ passed"
msgstr "✓ 合格"

msgid "It runs: it printed “{1}”."
msgstr "「{1}」が出力されました。"
`)
	testkit.Write(t, filepath.Join(f.root, "i18n/ja/exercises.po"), "msgid \"Say right\"\nmsgstr \"rightと書く\"\n")
	var err error
	f.spoken, err = speakers(f.root)
	testkit.Must(t, err)
	ctx := f.browser(t)
	says(t, ctx, "h1", "A page")
	choose(t, ctx, "ja", "ja")
	says(t, ctx, "main h1", "ページ")
	says(t, ctx, "#below", "下")
	says(t, ctx, ".run", "実行")
	server := block(t, ctx, "ready with")
	do(t, ctx, chromedp.Click(server+" .run"))
	says(t, ctx, server+" .verdict", "✓ 合格 「ready」が出力されました。")
	do(t, ctx, chromedp.Reload(), chromedp.WaitReady(`html[lang="ja"] [data-connected="yes"]`))
	says(t, ctx, server+" .verdict", "✓ 合格 「ready」が出力されました。")
	do(t, ctx, chromedp.Click(`[data-panel="exercises"]`))
	says(t, ctx, "#panel-exercises", "rightと書く")
	says(t, ctx, "#panel-exercises", "ヒントmake hint EX=04.1 LANGUAGE=ja")
	choose(t, ctx, "en", "en")
	says(t, ctx, server+" .verdict", "✓ passed It runs: it printed “ready”.")
}
