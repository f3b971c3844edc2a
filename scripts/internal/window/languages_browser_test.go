package window

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"example.com/operator-workshop/scripts/internal/exercise"
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

// cut reports the words of the window that are cut, and a page that is too wide.
const cut = `(() => {
  const wrong = [];
  for (const part of document.querySelectorAll("#panel-exercises button, #panel-exercises h2, #panel-exercises dt, .bar button, .bar label")) {
    if (part.clientWidth && part.scrollWidth > part.clientWidth + 1) wrong.push(part.textContent.trim() + " is cut");
  }
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth) wrong.push("the page is too wide");
  return wrong.join(", ");
})()`

// TestTheWindowInEachLanguage begins an exercise in the language, with a check that failed: the card, the story and the
// buttons are in it, and nothing is cut. The test writes the pictures of the README into WINDOW_PICTURES.
func TestTheWindowInEachLanguage(t *testing.T) {
	for name, card := range map[string][]string{
		"zh-TW": {"使用者刪除了 ConfigMap web", "提示"},
		"ja":    {"ConfigMap web", "ヒント"},
		"ko":    {"ConfigMap web", "힌트"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withSlides(t)
			var err error
			f.Course.All, err = exercise.Load(f.Root)
			testkit.Must(t, err)
			f.Course.Root = f.Root
			e, err := exercise.Find(f.Course.All, "04.3")
			testkit.Must(t, err)
			_, err = f.Course.Begin(e, func(exercise.Exercise) bool { return true })
			testkit.Must(t, err)
			state, err := f.Course.State()
			testkit.Must(t, err)
			state.Card = &exercise.Card{Check: "behaviour/05-deleted-configmap: a deleted ConfigMap comes back, once",
				Lines: []exercise.CardLine{{Label: "Done", Text: "a user deleted ConfigMap web"},
					{Label: "Expected", Text: "the ConfigMap is back"},
					{Label: "Happened", Text: "the operator sends nothing any more, and configmaps \"web\" not found\n" +
						"After that, the operator got the event ConfigMap web DELETED and sent no request."}}}
			testkit.Must(t, f.Course.SetState(state))
			ctx := f.browser(t)
			do(t, ctx, network.SetCookie("language", name).WithURL("http://"+f.host()), chromedp.EmulateViewport(1024, 640),
				chromedp.Navigate("http://"+f.host()+"/page/04-controller-runtime/README.md"),
				chromedp.WaitReady(`[data-connected="yes"]`), chromedp.Click(`[data-panel="exercises"]`))
			for _, words := range card {
				says(t, ctx, "#panel-exercises", words)
			}
			var wrong string
			do(t, ctx, chromedp.Evaluate(cut, &wrong))
			if wrong != "" {
				t.Error(wrong)
			}
			if folder := os.Getenv("WINDOW_PICTURES"); folder != "" {
				do(t, ctx, chromedp.ScrollIntoView("#panel-exercises .card"))
				writePicture(t, ctx, filepath.Join(folder, "window-"+name+".png"))
				f.toSlides(t, ctx, slide(t, "Task 04.3: Children that come back (20 minutes)"))
				writePicture(t, ctx, filepath.Join(folder, "slide-"+name+".png"))
			}
		})
	}
}
