package window

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// browser opens the window in Chromium. The test fails at the end when the page violated the content security policy or
// threw an error.
func (f *fixture) browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("Debian's package chromium is not installed")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.WindowSize(1280, 800))
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(end)
	return f.tab(t, allocator)
}

// tab opens the window in another tab.
func (f *fixture) tab(t *testing.T, parent context.Context) context.Context {
	t.Helper()
	ctx, end := chromedp.NewContext(parent)
	t.Cleanup(end)
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	t.Cleanup(cancel)
	chromedp.ListenTarget(ctx, func(event any) {
		if entry, ok := event.(*cdplog.EventEntryAdded); ok && entry.Entry.Level == cdplog.LevelError && !f.refuses.Load() {
			t.Errorf("the browser reports: %s %s", entry.Entry.Text, entry.Entry.URL)
		}
	})
	do(t, ctx, cdplog.Enable(), chromedp.Navigate(f.Address()), chromedp.WaitVisible(`#panel-page[data-connected="yes"]`),
		// A picture that is drawn moves the elements below it, and a click would miss.
		chromedp.Poll(`[...document.querySelectorAll("figure.picture")].every(f => f.querySelector("img")?.complete)`, nil))
	return ctx
}

// do runs actions, one after the other. The page may draw an element again between the moment in which an action finds its
// node and the moment in which the action uses it. Such an action has done nothing yet, and begins anew.
func do(t *testing.T, ctx context.Context, actions ...chromedp.Action) {
	t.Helper()
	for _, action := range actions {
		if tasks, ok := action.(chromedp.Tasks); ok {
			do(t, ctx, tasks...)
			continue
		}
		err := chromedp.Run(ctx, action)
		for isDrawnAgain(err) {
			err = chromedp.Run(ctx, action)
		}
		testkit.Must(t, err)
	}
}

// isDrawnAgain reports whether the node of an action was no longer in the page, or had no place in it.
func isDrawnAgain(err error) bool {
	var refused *cdproto.Error
	return errors.As(err, &refused) && slices.Contains([]string{"Could not find node with given id", "No node with given id found",
		"Node is detached from document", "Node does not have a layout object", "Could not compute content quads."}, refused.Message)
}

// TestAClickSurvivesAPageThatDrawsTheButtonAgain: do is a helper of all tests here.
func TestAClickSurvivesAPageThatDrawsTheButtonAgain(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	do(t, ctx, chromedp.Evaluate(`var presses = 0; const place = document.createElement("div"); document.body.prepend(place);
		place.addEventListener("mousedown", () => presses++); place.innerHTML = "<button id=again>Again</button>";
		setInterval(() => { place.innerHTML = place.innerHTML }, 10)`, nil))
	for range 50 {
		do(t, ctx, chromedp.Click("#again"))
	}
	var presses int
	if do(t, ctx, chromedp.Evaluate(`presses`, &presses)); presses != 50 {
		t.Errorf("50 clicks pressed %d times", presses)
	}
}

// block returns the selector of the block whose text contains a part.
func block(t *testing.T, ctx context.Context, part string) string {
	t.Helper()
	var number string
	do(t, ctx, chromedp.Evaluate(fmt.Sprintf(
		`[...document.querySelectorAll("[data-block]")].find(b => b.textContent.includes(%q))?.dataset.block ?? ""`, part), &number))
	if number == "" {
		t.Fatalf("no block has %q", part)
	}
	return fmt.Sprintf(`[data-block="%s"]`, number)
}

// says waits until an element contains a text.
func says(t *testing.T, ctx context.Context, selector, want string) {
	t.Helper()
	var got string
	deadline := time.Now().Add(time.Minute)
	for !strings.Contains(got, want) {
		if time.Now().After(deadline) {
			t.Fatalf("%s says %q, want %q", selector, got, want)
		}
		do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q)?.textContent ?? ""`, selector), &got))
		time.Sleep(20 * time.Millisecond)
	}
}

func TestBlocksRunAndAreComparedWithThePage(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	for _, test := range []struct{ part, want string }{
		{"echo one", "passed The output is what the page shows"},
		{"echo other", "failed The output is not what the page shows"},
		{"ready with", "passed It runs: it printed “ready”"},
		{"stopping", "passed"},
		{"fails, as it should", "passed"},
		{"wc -l", "passed The output is what the page shows"},
	} {
		selector := block(t, ctx, test.part)
		do(t, ctx, chromedp.Click(selector+" .run"))
		says(t, ctx, selector+" .verdict", test.want)
	}
	says(t, ctx, block(t, ctx, "echo other")+" .difference", "-something")
	says(t, ctx, `#panel-server .xterm-accessibility`, "ready with 1")
	says(t, ctx, block(t, ctx, "ready with")+" .verdict", "It has ended")
}

// isVisible reports whether a reader sees an element.
func isVisible(t *testing.T, ctx context.Context, selector string) (visible bool) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%q).checkVisibility()`, selector), &visible))
	return visible
}

func TestAnAnswerIsHiddenUntilItsFoldIsOpened(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	selector := block(t, ctx, "echo folded")
	fold := "details:has(" + selector + ")" // a picture has a fold, too, as soon as it is drawn
	if isVisible(t, ctx, selector) || isVisible(t, ctx, fold+" em") {
		t.Error("the answer is visible before a click")
	}
	says(t, ctx, fold+" > summary", "The answer & more")
	do(t, ctx, chromedp.Click(fold+" > summary"), chromedp.Click(selector+" .run"))
	says(t, ctx, selector+" .verdict", "passed")
	if !isVisible(t, ctx, fold+" em") {
		t.Error("the answer is not visible after a click")
	}
}

func TestAMenuOfCommandsIsCopiedAndNotRun(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	const menu = `[...document.querySelectorAll("section.block")].find(b => b.textContent.includes("of the menu"))`
	var buttons []string
	do(t, ctx, chromedp.Evaluate(`[...`+menu+`.querySelectorAll("button")].map(b => b.textContent)`, &buttons),
		chromedp.Evaluate(`var copied = ""; navigator.clipboard.writeText = async text => { copied = text }; `+menu+`
			.querySelector(".copy").click()`, nil))
	if diff := cmp.Diff([]string{"Copy"}, buttons); diff != "" {
		t.Error(diff)
	}
	var copied string
	do(t, ctx, chromedp.Poll(`copied`, &copied))
	if copied != "echo one of the menu\necho another of the menu" {
		t.Errorf("Copy took %q", copied)
	}
	selector := block(t, ctx, "echo a long")
	do(t, ctx, chromedp.Click(selector+" .run"))
	says(t, ctx, selector+" .verdict", "passed")
}

func TestABlockStopsAtItsFirstErrorAsInThePageRunner(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	for _, test := range []struct{ part, want string }{
		{"v=kept", "failed It failed with code 7"},
		{"echo hidden", "passed The output is what the page shows"},
	} {
		selector := block(t, ctx, test.part)
		do(t, ctx, chromedp.Click(selector+" .run"))
		says(t, ctx, selector+" .verdict", test.want)
	}
	// A command that a reader types is not a block. The shell has what the first block did before its error.
	do(t, ctx, chromedp.Click("#panel-page .xterm"), chromedp.KeyEvent(
		`trap; false; (false; echo "$- ${PWD##*/} $v" | tr -d 'mBHis'); echo "the $((6*7))"`), chromedp.KeyEvent(kb.Enter))
	says(t, ctx, "#panel-page .xterm-accessibility", "the 42")
	var printed string
	do(t, ctx, chromedp.Evaluate(`document.querySelector("#panel-page .xterm-accessibility").textContent`, &printed))
	if !strings.Contains(printed, "h code kept") || strings.Contains(printed, "not 2 reached") || strings.Contains(printed, "trap --") {
		t.Errorf("the terminal shows %s", printed)
	}
}

func TestAReaderPassesAnExercise(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	check := `//button[text()="Check"]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(check), chromedp.Click(check))
	says(t, ctx, "#panel-exercises .verdict", "failed")
	testkit.Must(t, os.WriteFile(filepath.Join(f.root, "work/04-x/main.go"), []byte("package main // right\n"), 0o644))
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(check), chromedp.Click(check))
	says(t, ctx, "#panel-exercises .verdict", "passed")
	says(t, ctx, "#panel-exercises .difference", "+package main // right")
}

// TestAQuestionHasTheFocus: the answer to a question after Begin goes to the question, also while the reader's own program
// uses the terminal of the buttons. The exercise leads a reader who has left the question back to it.
func TestAQuestionHasTheFocus(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "exercise:\n\t@printf 'Save them? [y/N] '; read a; echo \"the answer is $$a\"; "+
		"test $$a = y || { echo 'error: nothing was changed'; false; }\n")
	ctx := f.browser(t)
	begin := `//button[text()="Begin"]`
	ask := func(panel, answer string) {
		do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(begin), chromedp.Click(begin))
		says(t, ctx, panel+" .xterm-accessibility", "[y/N]")
		do(t, ctx, chromedp.Click("#tab-exercises"))
		says(t, ctx, "#panel-exercises .verdict", "The command may ask a question in its terminal")
		do(t, ctx, chromedp.Click(`//button[text()="Go to the terminal"]`), chromedp.WaitVisible(panel),
			chromedp.KeyEvent(answer), chromedp.KeyEvent(kb.Enter))
		says(t, ctx, panel+" .xterm-accessibility", "the answer is "+answer)
	}
	ask("#panel-commands", "y")
	do(t, ctx, chromedp.Click("#tab-commands"), chromedp.KeyEvent("sleep 1000"), chromedp.KeyEvent(kb.Enter))
	says(t, ctx, "#panel-commands .xterm-accessibility", "sleep 1000")
	ask("#panel-more", "n")
	do(t, ctx, chromedp.Click("#tab-exercises"))
	says(t, ctx, "#panel-exercises .verdict", "✗ failed nothing was changed")
}

// TestTheCapstoneIsInTheList: its Begin asks in the terminal, and a specification with a mistake leaves the file open.
func TestTheCapstoneIsInTheList(t *testing.T) {
	f := start(t)
	const folder = "work/capstone/"
	testkit.Write(t, filepath.Join(f.root, "specification.yaml"), specification.Example)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "exercise:\n\t@mkdir -p "+folder+"; cp specification.yaml "+folder+"\n"+
		"\t@printf 'Kind [Greeting]: '; read a; echo \"package main // $(EX) $$a\" >"+folder+"main.go\n"+
		"\t@printf 'begun: {capstone: capstone}\\ncurrent: capstone\\n' >work/.state.yaml\n")
	ctx := f.browser(t)
	entry, begin := `//li/button[contains(., "capstone An operator for your own kind")]`, `//button[text()="Begin"]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(entry), chromedp.Click(entry))
	says(t, ctx, "#panel-exercises h2", "capstone An operator for your own kind")
	says(t, ctx, "#panel-exercises", "asks in the terminal for the kind and its fields")
	do(t, ctx, chromedp.Click(begin))
	says(t, ctx, "#panel-commands .xterm-accessibility", "Kind [Greeting]")
	do(t, ctx, chromedp.KeyEvent("Note"), chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(".editor .cm-content"))
	says(t, ctx, ".editor .cm-content", "package main // capstone Note")
	says(t, ctx, "#panel-exercises", "make -C 'work/capstone' run")
	testkit.Write(t, filepath.Join(f.root, folder, "specification.yaml"), "kind: 7\n")
	do(t, ctx, chromedp.Click("#tab-page"), chromedp.Click("#tab-exercises"))
	says(t, ctx, ".editor .cm-content", "package main // capstone Note")
	says(t, ctx, "#panel-exercises h2", "capstone An operator for your own kind")
}

func TestButtonsWorkWhileTheReadersProgramRunsInTheirTerminal(t *testing.T) {
	f := start(t)
	testkit.Must(t, os.WriteFile(filepath.Join(f.root, "work/04-x/main.go"), []byte("package main // right\n"), 0o644))
	ctx := f.browser(t)
	check := chromedp.Click(`//button[text()="Check"]`)
	const shown = "#panel-commands .xterm-accessibility"
	do(t, ctx, chromedp.Click("#tab-commands"))
	says(t, ctx, shown, "checkout $")
	do(t, ctx, chromedp.KeyEvent("cd work/04-x && echo $((6*7)) && sleep 1000"), chromedp.KeyEvent(kb.Enter))
	says(t, ctx, shown, "42")
	do(t, ctx, chromedp.Click("#tab-exercises"), check)
	says(t, ctx, "#panel-exercises .verdict", "passed")
	do(t, ctx, chromedp.Click("#tab-more"))
	says(t, ctx, "#panel-more .xterm-accessibility", "checkout $ make check EX=04.1")
	do(t, ctx, chromedp.Click("#tab-commands"), chromedp.KeyEvent("c", chromedp.KeyModifiers(2)))
	says(t, ctx, shown, "work/04-x $") // the program has ended, and the shell has stayed there
	do(t, ctx, chromedp.Click("#tab-exercises"), check, chromedp.Click("#tab-commands"))
	says(t, ctx, shown, "&& make check EX=04.1)")
	says(t, ctx, "#panel-exercises .verdict", "passed")
	do(t, ctx, chromedp.KeyEvent("pwd >place"), chromedp.KeyEvent(kb.Enter))
	eventually(t, func() bool { _, err := os.Stat(filepath.Join(f.root, "work/04-x/place")); return err == nil })
}

func TestAClosedWindowSaysSoAndKeepsNoCommand(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	counts, one := block(t, ctx, "wc -l"), block(t, ctx, "echo one")
	f.refuses.Store(true)
	f.close(t)
	says(t, ctx, ".closed", closedWindow)
	do(t, ctx, chromedp.Click(counts+" .run"))
	says(t, ctx, counts+" .verdict", "not run "+closedWindow)
	do(t, ctx, chromedp.Click("#tab-exercises"))
	says(t, ctx, "#panel-exercises", closedWindow)

	other := startAt(t, f.root, f.listener.Addr().(*net.TCPAddr).Port)
	says(t, ctx, ".closed", "Open the address that make open printed")
	other.refuses.Store(true) // it ends before the browser
	other.tab(t, ctx)         // the browser has the cookie now
	do(t, ctx, cdppage.BringToFront(), chromedp.Click("#tab-page"), chromedp.WaitVisible(`#panel-page[data-connected="yes"]`),
		chromedp.WaitNotVisible(".closed"), chromedp.Click(one+" .run"))
	says(t, ctx, one+" .verdict", "passed")
	if _, err := os.Stat(filepath.Join(f.root, "count")); err == nil {
		t.Error("a command that was clicked in the closed window has run")
	}
}

// closedWindow is what a web page says when its server is gone.
const closedWindow = "The window is closed: run make open, and use its new address."

func TestOnlyACheckCanPassAnExercise(t *testing.T) {
	f := start(t)
	makefile := filepath.Join(f.root, "Makefile")
	testkit.Must(t, os.WriteFile(makefile, []byte("hint:\n\t@echo look\n"), 0o644))
	ctx := f.browser(t)
	hint := `//button[text()="Hint"]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(hint), chromedp.Click(hint))
	says(t, ctx, "#panel-exercises .verdict", "✓ done")
}

func TestByKeyboardAlone(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	alt := chromedp.KeyModifiers(1)
	press := func(key string) chromedp.Action { return chromedp.KeyEvent(key, alt) }
	do(t, ctx, press("n"), press("r"))
	says(t, ctx, block(t, ctx, "echo one")+" .verdict", "passed")
	do(t, ctx, press("t"), chromedp.KeyEvent("echo $((6*7))"), chromedp.KeyEvent(kb.Enter))
	says(t, ctx, "#panel-page .xterm-accessibility", "42")
	var focused string
	do(t, ctx, press("w"), chromedp.Evaluate(`document.activeElement.id`, &focused))
	if focused != "page" {
		t.Errorf("Alt W leads to %q", focused)
	}
}

func TestReloadAndASecondTabShowTheSameTerminal(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	selector := block(t, ctx, "echo begin")
	do(t, ctx, chromedp.Click(selector+" .run"))
	says(t, ctx, "#panel-page .xterm-accessibility", "begin")
	do(t, ctx, chromedp.Reload(), chromedp.WaitVisible(`#panel-page[data-connected="yes"]`))
	says(t, ctx, "#panel-page .xterm-accessibility", "begin")
	says(t, ctx, selector+" .verdict", "running")
	other := f.tab(t, ctx)
	says(t, other, selector+" .verdict", "running")
	do(t, other, chromedp.Click("#panel-page .xterm"), chromedp.KeyEvent("words"), chromedp.KeyEvent(kb.Enter))
	for _, tab := range []context.Context{ctx, other} {
		do(t, tab, cdppage.BringToFront()) // a hidden tab draws nothing
		says(t, tab, "#panel-page .xterm-accessibility", "got words")
		says(t, tab, selector+" .verdict", "passed")
	}
}

// TestThePlaceInAPageIsKept: a reader who comes back, or who reloads, is at the same part of the page, below a picture that
// is drawn later.
func TestThePlaceInAPageIsKept(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	const top = `Math.round(document.querySelector("#below").getBoundingClientRect().top)`
	drawn := chromedp.WaitVisible("figure.picture img")
	connected := chromedp.WaitVisible(`#panel-page[data-connected="yes"]`)
	var was, is int
	do(t, ctx, drawn, chromedp.Evaluate(`document.querySelector("#below").scrollIntoView({ block: "center", behavior: "instant" })`, nil),
		chromedp.Poll(`history.state?.at > 3`, nil), chromedp.Evaluate(top, &was))
	for name, action := range map[string]chromedp.Action{
		"after a reload": chromedp.Reload(),
		"back":           chromedp.Tasks{chromedp.Navigate("http://" + f.host() + "/page/04-x/README.md"), connected, chromedp.NavigateBack()},
	} {
		do(t, ctx, action, connected, drawn, chromedp.Evaluate(top, &is))
		if is != was || was < 100 || was > 750 {
			t.Errorf("%s: the place is %d pixels below the top, was %d", name, is, was)
		}
	}
}

func TestTheSecondSecretIsInTheBrowserAndInNoCookie(t *testing.T) {
	f := start(t)
	tab, end := chromedp.NewContext(f.browser(t))
	t.Cleanup(end)
	connected := chromedp.WaitVisible(`#panel-page[data-connected="yes"]`)
	do(t, tab, chromedp.Navigate("http://"+f.host()+"/"), connected, chromedp.Reload(), connected)
	f.refuses.Store(true)
	do(t, tab, chromedp.Evaluate(`localStorage.removeItem("secret")`, nil), chromedp.Reload())
	says(t, tab, ".closed", "This tab has no secret of this window")
	do(t, tab, chromedp.Click("#tab-exercises"))
	says(t, tab, "#panel-exercises", "This tab has no secret of this window")
	do(t, tab, chromedp.Navigate(f.Address()), chromedp.WaitVisible("#panel-exercises button"), chromedp.Click("#tab-page"), connected)
}

func TestPicturesAreDrawn(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	var width int
	do(t, ctx, chromedp.WaitVisible("figure.picture img"),
		chromedp.Poll(`document.querySelector("figure.picture img").naturalWidth`, &width))
	if width < 50 {
		t.Errorf("the picture is %d pixels wide", width)
	}
	const wide = `data:image/svg+xml,<svg xmlns="http://www.w3.org/2000/svg" width="3000" height="9"/>`
	var tooWide bool
	do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`const wide = new Image(); wide.src = %q; pane = document.querySelector("#page");
		pane.append(wide)`, wide), nil), chromedp.Poll(`wide.naturalWidth === 3000`, nil),
		chromedp.Evaluate(`pane.scrollWidth > pane.clientWidth`, &tooWide))
	if tooWide {
		t.Error("a wide picture makes the page wider than its pane")
	}
}
