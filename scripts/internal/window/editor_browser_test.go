package window

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/testkit"
)

const (
	codeText   = ".editor .cm-content"
	codeStatus = `.editor .bar [role="status"]`
)

// editor opens the window with the file of the exercise.
func (f *fixture) editor(t *testing.T) context.Context {
	t.Helper()
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(codeText))
	return ctx
}

// typeCode types at the end of the file.
func typeCode(text string) chromedp.Tasks {
	return chromedp.Tasks{chromedp.Focus(codeText), ctrl(kb.End), chromedp.KeyEvent(text)}
}

func ctrl(key string) chromedp.Action { return chromedp.KeyEvent(key, chromedp.KeyModifiers(2)) }

// enter presses Enter as a keyboard does: the browser inserts a line only if no script has handled the key.
func enter(modifiers input.Modifier) chromedp.Action {
	key := input.DispatchKeyEvent(input.KeyDown).WithKey("Enter").WithCode("Enter").WithWindowsVirtualKeyCode(13)
	return key.WithText("\r").WithModifiers(modifiers)
}

func (f *fixture) code() string { return filepath.Join(f.root, "work/04-x/main.go") }

// codeBecomes waits until the file on the disk has a text.
func (f *fixture) codeBecomes(t *testing.T, want string) {
	t.Helper()
	eventually(t, func() bool { data, err := os.ReadFile(f.code()); return err == nil && string(data) == want })
}

// shows returns the text of the editor.
func shows(t *testing.T, ctx context.Context) (text string) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll(".editor .cm-line")].map(line => line.textContent).join("\n")`, &text))
	return text
}

func TestTheEditorAndTheReadersOwnEditorHaveOneFile(t *testing.T) {
	f := start(t)
	other := filepath.Join(t.TempDir(), "other.go")
	testkit.Write(t, other, "package main // from outside\n")
	t.Setenv("VISUAL", "cp "+other) // an editor that writes the file with which it was started
	ctx := f.editor(t)
	do(t, ctx, typeCode("// here"))
	says(t, ctx, codeStatus, "Not saved yet.")
	do(t, ctx, ctrl("s"))
	f.codeBecomes(t, "package main // wrong\n// here\n")
	says(t, ctx, codeStatus, "Saved.")
	do(t, ctx, chromedp.Click(`//button[text()="Open in your editor"]`))
	says(t, ctx, codeText, "from outside")
	says(t, ctx, codeStatus, "Another program has changed the file.")
	do(t, ctx, chromedp.Focus(codeText), ctrl("z"))
	says(t, ctx, codeText, "// here")
	if is := testkit.Read(t, f.code()); is != "package main // from outside\n" {
		t.Errorf("Undo has written %q", is)
	}
	left, err := os.ReadDir(filepath.Dir(f.code()))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder has %v: %v", left, err)
	}
}

func TestBothHaveChangedTheFile(t *testing.T) {
	f := start(t)
	ctx := f.editor(t)
	const other = "package main // other\n"
	change := func() {
		t.Helper()
		do(t, ctx, typeCode("// mine"))
		testkit.Write(t, f.code(), other)
		says(t, ctx, ".question:not([hidden]) .difference", "+// mine")
		says(t, ctx, ".question .difference", "-package main // other")
	}
	press := func(name string) {
		t.Helper()
		do(t, ctx, chromedp.Click(fmt.Sprintf(`//button[text()=%q]`, name)), chromedp.WaitNotVisible(".question"))
	}
	change()
	var stays bool
	do(t, ctx, chromedp.Evaluate(`var button = document.querySelector(".question button")`, nil), chromedp.Focus(codeText), ctrl("s"),
		ctrl("s"), chromedp.Poll(`performance.getEntries().filter(e => e.name.includes("/file/difference")).length === 3`, nil),
		chromedp.WaitVisible(".question"), chromedp.Evaluate(`button.isConnected`, &stays))
	says(t, ctx, codeStatus, "Not saved: the question waits for your answer.")
	if !stays {
		t.Error("the same question is drawn again, and a click on its button would be lost")
	}
	if is := testkit.Read(t, f.code()); is != other {
		t.Errorf("Save has written %q over another text", is)
	}
	press("Use the file's text")
	if is := shows(t, ctx); is != strings.TrimSuffix(other, "\n")+"\n" {
		t.Errorf("the editor shows %q", is)
	}
	do(t, ctx, chromedp.Focus(codeText), ctrl("z"))
	says(t, ctx, codeText, "// mine")
	testkit.Write(t, f.code(), other+"// again\n")
	says(t, ctx, ".question:not([hidden]) .difference", "-// again")
	press("Keep my text")
	f.codeBecomes(t, "package main // wrong\n// mine\n")
}

// TestTheEditorSearches: the search has the whole file, also its lines that the browser has not drawn.
func TestTheEditorSearches(t *testing.T) {
	f := start(t)
	testkit.Write(t, f.code(), "package main\n"+strings.Repeat("\n", 500)+"// far below\n")
	ctx := f.editor(t)
	do(t, ctx, chromedp.Focus(codeText), ctrl("f"), chromedp.Poll(`document.activeElement.matches(".cm-search input")`, nil),
		chromedp.KeyEvent("below"), enter(input.ModifierNone), chromedp.Poll(`document.querySelector(".editor .cm-searchMatch-selected") !== null`, nil),
		chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent(".editor .cm-search"),
		chromedp.Poll(`document.activeElement.matches(".editor .cm-content")`, nil), chromedp.KeyEvent("found"))
	says(t, ctx, codeText, "// far found")
	do(t, ctx, chromedp.EmulateViewport(640, 400, chromedp.EmulateScale(2)), ctrl("f"), chromedp.WaitVisible(".editor .cm-search"))
	fits(t, ctx)
}

// A save formats a Go file that parses. The cursor stays beside its word, and Undo takes the format back.
func TestASaveFormatsTheFile(t *testing.T) {
	f := start(t)
	testkit.Write(t, f.code(), "package main\n\nfunc main() {\nx   :=  1\n_ =    x}\n")
	ctx := f.editor(t)
	do(t, ctx, chromedp.Focus(codeText), ctrl(kb.End), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft),
		chromedp.KeyEvent("y"), ctrl("s"))
	const want = "package main\n\nfunc main() {\n\tx := 1\n\t_ = xy\n}\n"
	f.codeBecomes(t, want)
	says(t, ctx, codeStatus, "Saved.")
	if is := shows(t, ctx); is != want {
		t.Errorf("the editor shows %q", is)
	}
	do(t, ctx, chromedp.KeyEvent("z"), ctrl("s"))
	f.codeBecomes(t, strings.Replace(want, "_ = xy", "_ = xyz", 1))
	do(t, ctx, ctrl("z"), ctrl("z"))
	if is := shows(t, ctx); !strings.HasPrefix(is, "package main\n\nfunc main() {\nx   :=  1\n_ =    xy}") {
		t.Errorf("after Undo the editor shows %q", is)
	}
	do(t, ctx, ctrl("a"), chromedp.KeyEvent("package   main   !"), ctrl("s"))
	f.codeBecomes(t, "package   main   !")
}

func TestAFileThatIsGoneOrHalfSavedLosesNothing(t *testing.T) {
	f := start(t)
	ctx := f.editor(t)
	testkit.Write(t, f.code(), "")
	says(t, ctx, codeStatus, "only half saved")
	testkit.Write(t, f.code(), "package main // whole\n")
	says(t, ctx, codeText, "whole")
	do(t, ctx, typeCode("// mine"))
	testkit.Must(t, os.Remove(f.code()))
	says(t, ctx, codeStatus, "The file was deleted or renamed. Your text is still here, and Save writes it again.")
	do(t, ctx, chromedp.Click(`//button[text()="Save"]`))
	f.codeBecomes(t, "package main // whole\n// mine\n")
	says(t, ctx, codeStatus, "Saved.")

	f.refuses.Store(true) // the browser reports answers that are errors
	outside := filepath.Join(t.TempDir(), "outside")
	testkit.Must(t, os.Rename(filepath.Dir(f.code()), outside))
	testkit.Must(t, os.Symlink(outside, filepath.Dir(f.code())))
	do(t, ctx, typeCode("// more"), ctrl("s"))
	says(t, ctx, codeStatus, "Your text is still here.")
	says(t, ctx, codeText, "// mine// more")
	if is := testkit.Read(t, filepath.Join(outside, "main.go")); strings.Contains(is, "more") {
		t.Errorf("a link has led a write out of work/: %q", is)
	}
}

// marked waits until the gutter has a mark beside a line: the editor measures its lines later than it draws them.
func marked(kind string, line int) chromedp.Action {
	return chromedp.Poll(fmt.Sprintf(`(() => {
		const mark = document.querySelector(".editor .cm-lint-marker-%s")?.closest(".cm-gutterElement").getBoundingClientRect();
		return mark && %d === 1 + [...document.querySelectorAll(".editor .cm-line")].findIndex(
			line => line.getBoundingClientRect().bottom > mark.top + mark.height / 2);
	})()`, kind, line), nil)
}

func TestAnErrorOfTheCompilerStandsAtItsLine(t *testing.T) {
	f := start(t)
	f.Course.All[0].Wrong = []exercise.Wrong{{Name: "swapped", Says: "no owner", Source: `Swapped`, Hint: "Swap them."}}
	e := f.Course.All[0]
	testkit.Write(t, f.code(), "package main\n\nfunc main() {\n\tundefined()\n\tSwapped(child, owner)\n}\n")
	judged := func(r exercise.Judgement) {
		t.Helper()
		s, err := f.Course.State()
		testkit.Must(t, err)
		testkit.Must(t, f.Course.Judged(e, s, f.Course.Digest(e), r))
	}
	judged(exercise.Judgement{Compile: errors.New("it does not compile:\nwork/04-x/main.go:4:2: undefined: undefined")})
	ctx := f.editor(t)
	do(t, ctx, marked("error", 4))
	do(t, ctx, chromedp.Focus(codeText), ctrl(kb.Home), enter(input.ModifierNone))
	do(t, ctx, marked("error", 5))
	do(t, ctx, chromedp.KeyEvent(kb.F8))
	says(t, ctx, ".cm-tooltip", "undefined: undefined")
	do(t, ctx, ctrl("z"), ctrl("s"))
	says(t, ctx, codeStatus, "Saved.")
	judged(exercise.Judgement{Own: []exercise.Result{{ID: "a", Verdict: "failed", What: "no owner"}}})
	do(t, ctx, chromedp.Click("#tab-exercises"))
	do(t, ctx, marked("warning", 5))
	do(t, ctx, chromedp.WaitVisible(`//button[text()="Line 5 of main.go"]`), typeCode("// fixed"), ctrl("s"),
		chromedp.WaitNotPresent(".editor .cm-lint-marker"), chromedp.WaitNotPresent(`//button[text()="Line 5 of main.go"]`))
}

// A button below the card, or F8, puts the cursor on the line of which the card or the hint speaks, in any of the files.
func TestTheCardLeadsToItsLines(t *testing.T) {
	f := start(t)
	folder := filepath.Join(f.root, "work/capstone")
	for name, text := range map[string]string{"main.go": "package main\n", "types.go": "package main\n" + strings.Repeat("\n", 98) + "\tno\n",
		"specification.yaml": specification.Example, "../.state.yaml": "current: capstone\nbegun: {capstone: capstone}\n"} {
		testkit.Write(t, filepath.Join(folder, name), text)
	}
	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(exercise.Capstone, s, f.Course.Digest(exercise.Capstone), exercise.Judgement{
		Compile: errors.New("it does not compile:\nwork/capstone/main.go:1:9: other\nwork/capstone/types.go:100:2: undefined: no")}))
	ctx := f.browser(t)
	const entry = `//li/button[contains(., "An operator for your own kind")]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.Click(entry), chromedp.WaitVisible(codeText),
		chromedp.Click(`//button[text()="Line 100 of types.go"]`),
		chromedp.Poll(`document.activeElement.matches('.cm-content[aria-label="work/capstone/types.go"]')`, nil), chromedp.KeyEvent("here "))
	says(t, ctx, codeText, "here no")
	do(t, ctx, chromedp.Focus(`//button[text()="Check"]`), chromedp.KeyEvent(kb.F8),
		chromedp.Poll(`document.activeElement.matches('.cm-content[aria-label="work/capstone/main.go"]')`, nil), chromedp.KeyEvent("my"))
	says(t, ctx, codeText, "package mymain")
}

// TestTheLineIsSeenBetweenTheBars: the buttons above the editor and the bar below it hide no line to which the reader is led.
func TestTheLineIsSeenBetweenTheBars(t *testing.T) {
	f := start(t)
	testkit.Write(t, f.code(), "package main\n"+strings.Repeat("// a long file\n", 98)+"no\n")
	ctx := f.editor(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 400))
	for _, line := range []int{2, 40, 100} {
		s, err := f.Course.State()
		testkit.Must(t, err)
		e := f.Course.All[0]
		testkit.Must(t, f.Course.Judged(e, s, f.Course.Digest(e), exercise.Judgement{
			Compile: fmt.Errorf("it does not compile:\nwork/04-x/main.go:%d:1: undefined", line)}))
		button := fmt.Sprintf(`//button[text()="Line %d of main.go"]`, line)
		do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitReady(button))
		for name, lead := range map[string]chromedp.Tasks{
			"button": {chromedp.Click(button)},
			"F8":     {chromedp.Focus(`//button[text()="Check"]`), chromedp.KeyEvent(kb.F8)},
		} {
			for _, from := range []int{0, 9999} {
				do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`getSelection().removeAllRanges();
					for (const part of ["#panel-exercises", ".editor .cm-scroller"]) document.querySelector(part).scrollTop = %d;`, from), nil), lead)
				err := chromedp.Run(ctx, chromedp.Poll(`(() => {
					const node = getSelection().anchorNode;
					const at = (node instanceof Element ? node : node?.parentElement)?.closest(".editor .cm-line");
					const { left, top, bottom } = at?.getBoundingClientRect() ?? {};
					return at && [top + 2, bottom - 2].every((y) => document.elementFromPoint(left + 2, y)?.closest(".cm-line") === at);
				})()`, nil, chromedp.WithPollingTimeout(10*time.Second)))
				if err != nil {
					t.Errorf("line %d by %s, from %d: %v", line, name, from, err)
				}
			}
		}
	}
}

// TestAReaderChoosesTheFile: a choice above the editor leads to each file that the exercise gives to its reader, and a new
// verdict leads to the file with the error. The specification is only read.
func TestAReaderChoosesTheFile(t *testing.T) {
	f := start(t)
	folder := filepath.Join(f.root, "work/capstone")
	for name, text := range map[string]string{"main.go": "package main\n", "types.go": "package main // types\n",
		"specification.yaml": specification.Example, "../.state.yaml": "current: capstone\nbegun: {capstone: capstone}\n"} {
		testkit.Write(t, filepath.Join(folder, name), text)
	}
	types := filepath.Join(folder, "types.go")
	ctx := f.browser(t)
	const names, entry = ".editor select", `//li/button[contains(., "An operator for your own kind")]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(entry), chromedp.Click(entry), chromedp.WaitVisible(codeText))
	choose := func(name string) {
		t.Helper()
		do(t, ctx, chromedp.SetValue(names, name), chromedp.Evaluate(
			`document.querySelector(".editor select").dispatchEvent(new Event("change")); 0`, nil),
			chromedp.WaitVisible(fmt.Sprintf(`.cm-content[aria-label="work/capstone/%s"]`, name)))
	}
	do(t, ctx, typeCode("// main"))
	choose("types.go")
	says(t, ctx, names, "main.go: Not saved yet.")
	do(t, ctx, typeCode("// mine"), ctrl("s"))
	eventually(t, func() bool { return testkit.Read(t, types) == "package main // types\n// mine\n" })
	says(t, ctx, codeStatus, "Saved.")
	testkit.Write(t, types, "package main // other\n")
	says(t, ctx, codeStatus, "Another program has changed the file.")
	do(t, ctx, chromedp.Focus(codeText), ctrl("z"), ctrl("s"))
	eventually(t, func() bool { return testkit.Read(t, types) == "package main // types\n// mine\n" })
	choose("main.go")
	says(t, ctx, codeText, "// main")
	says(t, ctx, codeStatus, "Not saved yet.")
	if is := testkit.Read(t, filepath.Join(folder, "main.go")); is != "package main\n" {
		t.Errorf("main.go is %q", is)
	}

	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(exercise.Capstone, s, f.Course.Digest(exercise.Capstone), exercise.Judgement{
		Compile: errors.New("it does not compile:\nwork/capstone/types.go:2:1: undefined: mine")}))
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(`.cm-content[aria-label="work/capstone/types.go"]`))
	do(t, ctx, marked("error", 2))
	choose("main.go") // and it stays
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(`.cm-content[aria-label="work/capstone/main.go"]`),
		chromedp.WaitNotPresent(".editor .cm-lint-marker"))
	says(t, ctx, ".beside label", "read-only")
	var read string
	do(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll(".beside option")].map(o => o.value).join(" ")`, &read))
	if read != " work/capstone/specification.yaml work/capstone/types.go" {
		t.Errorf("beside it are %q", read)
	}
	do(t, ctx, chromedp.Focus(".beside select"), chromedp.KeyEvent(kb.ArrowDown))
	says(t, ctx, ".beside .tok-propertyName", "kind") // YAML has colours
}

func TestUndoSurvivesAReload(t *testing.T) {
	f := start(t)
	ctx := f.editor(t)
	do(t, ctx, typeCode("// saved"), ctrl("s"))
	says(t, ctx, codeStatus, "Saved.")
	do(t, ctx, chromedp.Reload(), chromedp.WaitVisible(codeText), typeCode("// not saved"), chromedp.Reload(), chromedp.WaitVisible(codeText))
	says(t, ctx, codeText, "// not saved")
	says(t, ctx, codeStatus, "Not saved yet.")
	do(t, ctx, chromedp.Focus(codeText))
	for shows(t, ctx) != "package main // wrong\n" {
		was := shows(t, ctx)
		if do(t, ctx, ctrl("z")); shows(t, ctx) == was {
			t.Fatalf("Undo ends at %q", was)
		}
	}
	if is := testkit.Read(t, f.code()); is != "package main // wrong\n// saved\n" {
		t.Errorf("the file is %q", is)
	}
}

// tooWide are the elements around the editor and of the loop whose contents are cut, or need a scroll bar.
const tooWide = `[document.documentElement, ...document.querySelectorAll("#panel-exercises, #panel-loop, " +
	":is(#panel-exercises, #panel-loop) *:not(.cm-editor *, pre, code)")]
	.filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== "inline")
	.map(e => e.tagName + "." + e.className)`

func fits(t *testing.T, ctx context.Context) {
	t.Helper()
	var wide []string
	if do(t, ctx, chromedp.Evaluate(tooWide, &wide)); len(wide) > 0 {
		t.Errorf("wider than their place: %v", wide)
	}
}

// TestAReaderWritesByKeyboardAlone also has the place of 200 % zoom: a window of 1280 x 800 has 640 x 400 pixels of CSS.
func TestAReaderWritesByKeyboardAlone(t *testing.T) {
	for name, size := range map[string][3]int64{"usual": {1280, 800, 1}, "at 200 %": {640, 400, 2}} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			ctx := f.browser(t)
			alt := chromedp.KeyModifiers(1)
			do(t, ctx, chromedp.EmulateViewport(size[0], size[1], chromedp.EmulateScale(float64(size[2]))), chromedp.KeyEvent("e", alt),
				chromedp.Poll(`document.activeElement.matches(".editor .cm-content")`, nil), ctrl("a"), chromedp.KeyEvent("package main // right"),
				enter(input.ModifierNone), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent("// indented"), enter(input.ModifierCtrl))
			f.codeBecomes(t, "package main // right\n// indented\n")
			says(t, ctx, "#panel-exercises .verdict", "passed")
			var inside, left bool
			do(t, ctx, chromedp.Evaluate(`document.activeElement.matches(".editor .cm-content")`, &inside),
				chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent(kb.Tab),
				chromedp.Evaluate(`document.activeElement.textContent === "Save" && document.activeElement.checkVisibility()`, &left))
			if !inside || !left {
				t.Errorf("the focus stays in the editor: %t; Escape and Tab lead to Save: %t", inside, left)
			}
			fits(t, ctx)
			says(t, ctx, "#editor-keys", "Escape and then Tab leaves the editor.")
			do(t, ctx, chromedp.KeyEvent("w", alt))
			says(t, ctx, "main:focus", "A page")
		})
	}
}

func TestASaveIsChecked(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "check:\n\t@echo x >>checks; grep -q right work/04-x/main.go\n")
	checks := func() int {
		data, _ := os.ReadFile(filepath.Join(f.root, "checks"))
		return strings.Count(string(data), "x")
	}
	ctx := f.editor(t)
	do(t, ctx, typeCode("// one"), ctrl("s"))
	says(t, ctx, codeStatus, "Saved.")
	do(t, ctx, chromedp.Click(`//label[contains(., "each time the file is saved")]`), typeCode("// two"), ctrl("s"))
	says(t, ctx, "#panel-exercises .verdict", "failed Its terminal says why.")
	if checks() != 1 {
		t.Errorf("%d checks have run", checks())
	}
	testkit.Write(t, f.code(), "package main // right, by the reader's own editor\n")
	says(t, ctx, "#panel-exercises .verdict", "passed")
	if checks() != 2 || !isVisible(t, ctx, codeText) {
		t.Errorf("%d checks have run; the editor is visible: %t", checks(), isVisible(t, ctx, codeText))
	}
}

// sayMore adds an exercise to the course.
func (f *fixture) sayMore() {
	next := f.Course.All[0]
	next.ID, next.Title, next.Starter, next.Solution = "04.2", "Say more", "stages/2", "stages/1"
	f.Course.All = append(f.Course.All, next)
}

// A page's link opens its exercise beside the page, which stays. Escape closes the list of the chapters.
func TestAPageLeadsToItsExercise(t *testing.T) {
	f := start(t)
	f.sayMore()
	ctx := f.browser(t)
	var address string
	do(t, ctx, chromedp.Click(`//a[text()="exercise 04.2"]`))
	says(t, ctx, "#panel-exercises:not([hidden]) h2", "04.2 Say more")
	do(t, ctx, chromedp.Location(&address), chromedp.Click(".chapters summary"), chromedp.WaitReady(".chapters[open]"),
		chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent(".chapters[open]"))
	if strings.Contains(address, "#write-it-yourself") {
		t.Errorf("the page is %s", address)
	}
}

func TestAfterAPassComesTheNextExercise(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "exercise:\n\t@sed -i 's/\"04\\.1\"/\"04.2\"/' work/.state.yaml\n")
	f.sayMore()
	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(f.Course.All[0], s, "", exercise.Judgement{Own: []exercise.Result{{ID: "a", Verdict: "passed"}}}))
	ctx := f.editor(t)
	button := `//button[text()="Next: 04.2 Say more"]`
	var scrolled float64
	do(t, ctx, chromedp.EmulateViewport(1280, 400), chromedp.WaitVisible(button), chromedp.ScrollIntoView(button),
		chromedp.Evaluate(`document.querySelector("#panel-exercises").scrollTop`, &scrolled), chromedp.Click(button))
	says(t, ctx, "#panel-exercises h2", "04.2 Say more")
	do(t, ctx, chromedp.WaitVisible(codeText), chromedp.Poll(`document.activeElement.matches(".editor .cm-content")`, nil),
		chromedp.Poll(`document.querySelector("#panel-exercises").scrollTop === 0`, nil))
	if scrolled == 0 {
		t.Error("the story was in view before")
	}
}

// After a later failure of an exercise that was passed, nothing comes next.
func TestAFailureOffersNoNextExercise(t *testing.T) {
	f := start(t)
	f.sayMore()
	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(f.Course.All[0], s, "", exercise.Judgement{Own: []exercise.Result{{ID: "a", Verdict: "passed"}}}))
	f.fails(t, isBack)
	ctx := f.editor(t)
	says(t, ctx, "#panel-exercises .card", "✗ failed")
	says(t, ctx, `[aria-label="The exercise"]`, "✓ passed")
	var result string
	do(t, ctx, chromedp.Evaluate(`document.querySelector('[aria-label="The result"]').textContent`, &result))
	if strings.Contains(result, "Next:") {
		t.Errorf("below the card of a failure stands %q", result)
	}
}

// TestTheCommandOfTheWindowIsNoOtherProgram: the reader has clicked Begin, and knows who has written the file.
func TestTheCommandOfTheWindowIsNoOtherProgram(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "exercise:\n\t@echo 'package main // begun' >work/04-x/main.go\n")
	ctx := f.editor(t)
	do(t, ctx, chromedp.Click(`//button[text()="Begin"]`))
	says(t, ctx, codeText, "// begun")
	says(t, ctx, codeStatus, "The command has written the file.")
	do(t, ctx, chromedp.Poll(`document.activeElement.matches(".editor .cm-content")`, nil)) // the command has ended
	testkit.Write(t, f.code(), "package main // from outside\n")
	says(t, ctx, codeStatus, "Another program has changed the file.")
}

// TestCodeInAStoryLooksLikeCode: between backticks, and in lines of source code.
func TestCodeInAStoryLooksLikeCode(t *testing.T) {
	f := start(t)
	f.Course.All[0].Story = "Write `kind: MyWeb` and this:\n    func Of(obj any) `json`\nThe end."
	ctx := f.editor(t)
	says(t, ctx, ".story", "this:\n    func Of(obj any) `json`\nThe end.")
	var code []string
	do(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll(".story *")].filter(
		(part) => getComputedStyle(part).fontFamily.includes("monospace")).map((part) => part.textContent)`, &code))
	if want := []string{"kind: MyWeb", "    func Of(obj any) `json`"}; !slices.Equal(code, want) {
		t.Errorf("%q, want %q", code, want)
	}
}

// An exercise that was passed before says where the files are now, and why it has no editor.
func TestAnEarlierExerciseSaysWhereTheFilesAre(t *testing.T) {
	f := start(t)
	f.sayMore()
	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(f.Course.All[0], s, "", exercise.Judgement{Own: []exercise.Result{{ID: "a", Verdict: "passed"}}}))
	testkit.Must(t, f.Course.GoOn(f.Course.All[1]))
	ctx := f.editor(t)
	const earlier = `//li/button[contains(., "04.1 ")]`
	do(t, ctx, chromedp.WaitVisible(earlier), chromedp.Click(earlier))
	says(t, ctx, `[aria-label="The exercise"]`, "There is no editor here: your program is at 04.2 now. Begin puts the starter of 04.1 there")
}

// The capstone has no number: the list says which exercise it follows, and the exercise leads to its page.
func TestTheCapstoneFollowsAnExercise(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	const entry = `//li/button[contains(., "An operator for your own kind (after 04.6)")]`
	link := fmt.Sprintf(`[aria-label="The exercise"] a[href="/page/%s"]`, exercise.CapstonePage)
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(entry), chromedp.Click(entry))
	says(t, ctx, link, "Its page")
	do(t, ctx, chromedp.Reload())
	says(t, ctx, link, "Its page")
}

func TestSavedIsInView(t *testing.T) {
	f := start(t)
	testkit.Write(t, f.code(), strings.Repeat("// a long file\n", 99))
	ctx := f.editor(t)
	var inView bool
	do(t, ctx, chromedp.EmulateViewport(1280, 500), chromedp.Focus(codeText), ctrl(kb.Home), chromedp.KeyEvent("x"), ctrl("s"))
	says(t, ctx, codeStatus, "Saved.")
	do(t, ctx, chromedp.Evaluate(`(() => {
		document.querySelector("#panel-exercises").scrollTop = 0;
		const at = document.querySelector('.editor .bar [role="status"]').getBoundingClientRect();
		const save = document.querySelector(".editor .bar button").getBoundingClientRect();
		return at.bottom <= innerHeight && Math.abs(at.top - save.top) < 20 && document.elementFromPoint(at.x + 5, at.y + 5).textContent === "Saved.";
	})()`, &inView))
	if !inView {
		t.Error("Saved. is not in view beside the button")
	}
}

// While a check runs, the card of the check before is dimmed; then the card comes into view. The buttons keep their place.
// The code of make is no reason: the card has the reason, and a screen reader reads the command's own error.
func TestTheCardComesIntoViewBelowTheButtons(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"),
		"check:\n\t@until test -e end; do sleep 0.05; done; echo 'error: not every check passed'; false\nhint:\n\t@echo look\n")
	f.fails(t, isBack)
	ctx := f.editor(t)
	top := func() (top float64) {
		do(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll("#panel-exercises button")]
			.find((button) => button.textContent === "Check").getBoundingClientRect().top`, &top))
		return top
	}
	const inView = `(() => {
		const card = document.querySelector("#panel-exercises .card").getBoundingClientRect();
		return card.top >= 0 && card.bottom <= innerHeight;
	})()`
	var before bool
	do(t, ctx, chromedp.EmulateViewport(1280, 400), chromedp.WaitVisible("#panel-exercises .card"), chromedp.Evaluate(inView, &before))
	was := top()
	do(t, ctx, chromedp.Click(`//button[text()="Check"]`), chromedp.WaitVisible("#panel-exercises .card.old"))
	f.fails(t, isBack)
	testkit.Write(t, filepath.Join(f.root, "end"), "")
	says(t, ctx, "#announce", "✗ failed: not every check passed")
	do(t, ctx, chromedp.Poll(`document.querySelector("#panel-exercises .verdict").textContent.trim() === "✗ failed"`, nil),
		chromedp.WaitNotPresent("#panel-exercises .card.old"), chromedp.Poll(inView, nil))
	if is := top(); before || is != was {
		t.Errorf("the card was in view before: %t; the button was at %v, and is at %v", before, was, is)
	}
	do(t, ctx, chromedp.Click(`//button[text()="Hint"]`))
	says(t, ctx, "#announce", "done")
	says(t, ctx, "#panel-exercises .card", "✗ failed")
	var above string
	do(t, ctx, chromedp.Evaluate(`document.querySelector("#panel-exercises .verdict").textContent`, &above))
	if strings.Contains(above, "done") {
		t.Errorf("above the card of a failure stands %q", above)
	}
}

// While a check runs, and when it was refused, the card and the hint of the check before are dimmed. A long step is said.
func TestARefusedCheckNamesTheTab(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"),
		"check:\n\t@echo '  running check 2 of 5: 8 s'; until test -e end; do sleep 0.05; done; false\n")
	s := f.fails(t, isBack)
	s.Hints = 1
	testkit.Must(t, f.Course.SetState(s))
	ctx := f.editor(t)
	check := chromedp.Click(`//button[text()="Check"]`)
	const old = `document.querySelectorAll("#panel-exercises .card.old").length === 2`
	do(t, ctx, chromedp.WaitVisible(`[aria-label="The last hint"]`), check, chromedp.Poll(old, nil))
	says(t, ctx, "#panel-exercises .verdict", "running check 2 of 5: 8 s")
	do(t, ctx, check)
	says(t, ctx, "#panel-exercises .verdict", "Something runs in the tab Commands: wait for it, or press Ctrl-C there.")
	do(t, ctx, chromedp.Poll(old, nil, chromedp.WithPollingTimeout(10*time.Second)))
	testkit.Write(t, filepath.Join(f.root, "end"), "")
	do(t, ctx, chromedp.WaitNotPresent("#panel-exercises .card.old"))
}

func TestTheCardCountsTheOtherFailures(t *testing.T) {
	f := start(t)
	f.fails(t, exercise.Judgement{Own: append(isBack.Own, exercise.Result{ID: "b", Verdict: "failed"},
		exercise.Result{ID: "c", Verdict: "failed"})})
	ctx := f.editor(t)
	says(t, ctx, "#panel-exercises .card", "2 more checks failed; they often follow from the first.")
}

func TestFilesOpenBesideThePage(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(filepath.Dir(f.code()), "other.go"), "package main // beside\n")
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click(`main a[href="/file/code/main.go"]`), chromedp.WaitVisible("#panel-file .cm-content"))
	says(t, ctx, "#panel-file", "code/main.go")
	do(t, ctx, chromedp.KeyEvent("x"))
	var text, page string
	do(t, ctx, chromedp.Text("#panel-file .cm-content", &text), chromedp.Location(&page))
	if strings.TrimSpace(text) != "package main" || !strings.HasSuffix(page, "/page/README.md") {
		t.Errorf("%s shows %q", page, text)
	}
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(".beside select"),
		chromedp.Focus(".beside select"), chromedp.KeyEvent(kb.ArrowDown), chromedp.WaitVisible(".beside .cm-content"))
	says(t, ctx, ".beside .cm-content", "package main // beside")
	if !isVisible(t, ctx, codeText) {
		t.Error("the editor is hidden")
	}
}

// A reader who goes to another file, or to another tab, comes back to the same line of the file that is read beside.
func TestThePlaceInAFileBesideIsKept(t *testing.T) {
	f := start(t)
	for _, name := range []string{"a.go", "b.go"} {
		testkit.Write(t, filepath.Join(filepath.Dir(f.code()), name), strings.Repeat("// a long file\n", 400))
	}
	ctx := f.editor(t)
	choose := func(name string) {
		t.Helper()
		do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`(() => {
			const choice = document.querySelector(".beside select");
			choice.value = %q;
			choice.dispatchEvent(new Event("change"));
		})()`, name), nil))
	}
	end := func(shown bool) chromedp.Action { // the end of the file is in view
		return chromedp.Poll(fmt.Sprintf(`%t === [...document.querySelectorAll(".beside .cm-gutterElement")].some(
			number => number.textContent === "400" && number.checkVisibility())`, shown), nil, chromedp.WithPollingTimeout(time.Minute))
	}
	const long = "work/04-x/a.go"
	do(t, ctx, chromedp.WaitVisible(".beside select"))
	choose(long)
	do(t, ctx, chromedp.Focus(".beside .cm-content"), chromedp.Evaluate(`document.querySelector(".beside .cm-scroller").scrollTop = 9999`, nil),
		end(true))
	choose("work/04-x/b.go")
	do(t, ctx, end(false))
	choose(long)
	do(t, ctx, end(true))
	testkit.Write(t, filepath.Join(filepath.Dir(f.code()), "c.go"), "package main\n")
	do(t, ctx, chromedp.Click("#tab-loop"), chromedp.WaitNotVisible("#panel-exercises"), chromedp.Click("#tab-exercises"),
		chromedp.WaitReady(`.beside option[value="work/04-x/c.go"]`), end(true))
}

func TestTheReadersProgramRunsInATerminalOfItsOwn(t *testing.T) {
	f := start(t)
	f.Course.All[0].Lab = []string{"behaviour/01-status"}
	testkit.Write(t, filepath.Join(filepath.Dir(f.code()), "go.mod"), "module x.test/work\n\ngo 1.26\n")
	program := func(says string) {
		testkit.Write(t, f.code(), fmt.Sprintf("package main\n\nimport \"time\"\n\nfunc main() {\n\tprintln(%q)\n\ttime.Sleep(time.Hour)\n}\n", says))
	}
	program("the first program")
	ctx := f.editor(t)
	run := chromedp.Tasks{chromedp.Click("#tab-exercises"), chromedp.Click(".program")}
	for _, words := range []string{"the first program", "the second program"} {
		program(words)
		do(t, ctx, run)
		says(t, ctx, "#panel-program .xterm-accessibility", words)
	}
}

// TestTheEditorOfAnExercise compiles a mistake in an exercise of this checkout. The test writes the picture of the README
// into WINDOW_PICTURES.
func TestTheEditorOfAnExercise(t *testing.T) {
	f := withSlides(t)
	var err error
	f.Course.Root = f.Root
	f.Course.Judge = exercise.Judge{Root: f.Root, Env: os.Environ()}
	f.Course.Plane = func(context.Context) (string, error) { return "", nil } // a program that does not compile needs none
	f.Course.All, err = exercise.Load(f.Root)
	testkit.Must(t, err)
	e, err := exercise.Find(f.Course.All, "04.3")
	testkit.Must(t, err)
	_, err = f.Course.Goto(e, exercise.Always)
	testkit.Must(t, err)
	path := filepath.Join(f.Course.Dir(e), e.File)
	const call, mistake = "For(&webv1.MyWeb{}).", "\t\tOwns(&corev1.ConfigMap{}).\n"
	source := testkit.Read(t, path)
	testkit.Write(t, path, strings.Replace(source, call+"\n", call+"\n"+mistake, 1))
	state, err := f.Course.State()
	testkit.Must(t, err)
	digest := f.Course.Digest(e)
	report, err := f.Course.Check(t.Context(), e)
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(e, state, digest, report))

	ctx := f.browser(t)
	do(t, ctx, chromedp.EmulateViewport(1120, 700), chromedp.Navigate("http://"+f.host()+"/page/04-controller-runtime/README.md"),
		chromedp.WaitVisible("#tab-exercises"), chromedp.Click("#tab-exercises"), chromedp.WaitVisible(codeText))
	says(t, ctx, "#panel-exercises .card", "undefined: corev1")
	says(t, ctx, ".beside option + option", "04-controller-runtime/")
	line := fmt.Sprint(1 + strings.Count(source[:strings.Index(source, call)], "\n") + 1)
	do(t, ctx, chromedp.Focus(codeText))
	eventually(t, func() (shown bool) {
		do(t, ctx, chromedp.KeyEvent(kb.F8), chromedp.Evaluate(`document.querySelector(".cm-lint-marker-error") !== null`, &shown))
		return shown
	})
	var at string
	do(t, ctx, chromedp.Evaluate(`(() => {
		const mark = document.querySelector(".cm-lint-marker-error").getBoundingClientRect();
		return [...document.querySelectorAll(".cm-lineNumbers .cm-gutterElement")].find(
			number => number.getBoundingClientRect().top <= mark.top + 4 && number.getBoundingClientRect().bottom > mark.top + 4).textContent;
	})()`, &at))
	if at != line {
		t.Errorf("the error is at line %s, want %s", at, line)
	}
	if folder := os.Getenv("WINDOW_PICTURES"); folder != "" {
		writePicture(t, ctx, filepath.Join(folder, "5-an-error-at-its-line.png"))
	}
}

// fails records a check of the exercise that failed, and returns the state.
func (f *fixture) fails(t *testing.T, r exercise.Judgement) exercise.State {
	t.Helper()
	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(f.Course.All[0], s, "", r))
	s, err = f.Course.State()
	testkit.Must(t, err)
	return s
}

// isBack is a report of one failure.
var isBack = exercise.Judgement{Own: []exercise.Result{
	{ID: "a", Verdict: "failed", What: "expected that it is back; but it is not"}}}

func TestTheLastHintSaysSo(t *testing.T) {
	f := start(t)
	s := f.fails(t, isBack)
	s.Hints = 1
	testkit.Must(t, f.Course.SetState(s))
	ctx := f.editor(t)
	const hint = `[aria-label="The last hint"]`
	says(t, ctx, hint, "make hint says more.")
	s.Hints = 3
	testkit.Must(t, f.Course.SetState(s))
	do(t, ctx, chromedp.Click("#tab-exercises"))
	says(t, ctx, hint, "That was the last hint; make solution shows a diff.")
	s = f.fails(t, exercise.Judgement{Compile: errors.New("it does not compile:\nwork/04-x/main.go:4:2: undefined: x")})
	s.Hints = 1
	testkit.Must(t, f.Course.SetState(s))
	do(t, ctx, chromedp.Click("#tab-exercises"))
	says(t, ctx, hint, "Open work/04-x/main.go at line 4") // no other hint follows
}

// Each text of make hint stands in the panel: also that of the capstone, and after an error of the compiler.
func TestEachHintIsInThePanel(t *testing.T) {
	f := start(t)
	f.enter(t)
	doesNotCompile := exercise.Judgement{Compile: errors.New("it does not compile:\nwork/04-x/main.go:4:2: undefined: x")}
	for _, test := range []struct {
		id     string
		report exercise.Judgement
		want   string
	}{
		{"04.1", isBack, "A nudge:"},
		{"04.1", doesNotCompile, "Open work/04-x/main.go at line 4"},
		{"04.1", exercise.Judgement{Own: []exercise.Result{{ID: "a", Verdict: "passed"}}}, "it needs no hint"},
		{"capstone", isBack, "A nudge:"},
	} {
		e, err := exercise.Find(f.Course.All, test.id)
		testkit.Must(t, err)
		testkit.Must(t, f.Course.GoOn(e))
		s, err := f.Course.State()
		testkit.Must(t, err)
		testkit.Must(t, f.Course.Judged(e, s, "", test.report))
		var task Task
		f.getJSON(t, "/exercises/"+test.id, &task)
		if task.Hint != "" {
			t.Errorf("%s has the hint %q before one was asked for", test.id, task.Hint)
		}
		s, err = f.Course.State()
		testkit.Must(t, err)
		s.Hints++
		testkit.Must(t, f.Course.SetState(s))
		if f.getJSON(t, "/exercises/"+test.id, &task); !strings.Contains(task.Hint, test.want) {
			t.Errorf("%s has the hint %q, want %q", test.id, task.Hint, test.want)
		}
	}
}

// The card of a failure leads to the requests and the log lines.
func TestAllDetailsOfACardAreOneClickAway(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "check:\n\t@echo \"the details: $(VERBOSE) of $(EX)\"\n")
	f.fails(t, isBack)
	ctx := f.browser(t)
	details := `//button[text()="All details"]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(details))
	says(t, ctx, "#panel-exercises .card", "it is not")
	do(t, ctx, chromedp.Click(details))
	says(t, ctx, "#panel-commands:not([hidden]) .xterm-accessibility", "the details: 1 of 04.1")
}
