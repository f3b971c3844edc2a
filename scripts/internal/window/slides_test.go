package window

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/teaching"
	"example.com/operator-workshop/scripts/internal/testkit"
)

var checkoutRoot = filepath.Join("..", "..", "..")

// withSlides shows the pages and slides of this checkout.
func withSlides(t *testing.T) *fixture {
	t.Helper()
	f := start(t)
	root, err := filepath.Abs(checkoutRoot)
	testkit.Must(t, err)
	f.Root, f.terminals.config.Root = root, root
	f.pages, err = findPages(root)
	testkit.Must(t, err)
	f.spoken, err = speakers(root)
	testkit.Must(t, err)
	return f
}

// slideTitles returns the titles of the slides of this checkout.
func slideTitles(t *testing.T) (titles []string) {
	t.Helper()
	p, err := page.Parse(filepath.Join(checkoutRoot, teaching.SlidesFile))
	testkit.Must(t, err)
	for _, part := range p.Parts[1:] { // the first one is the title of the page
		if part.Heading {
			titles = append(titles, part.Prose)
		}
	}
	return titles
}

// slideNumber returns the number of a slide, by its title: a new slide shifts no test.
func slideNumber(t *testing.T, title string) int {
	t.Helper()
	at := slices.Index(slideTitles(t), title)
	if at < 0 {
		t.Fatalf("no slide has the title %q", title)
	}
	return at + 1
}

// slide returns the path of a slide, by its title.
func slide(t *testing.T, title string) string {
	t.Helper()
	return fmt.Sprintf("/slides#%d", slideNumber(t, title))
}

// showsSlide waits until a slide is shown.
func showsSlide(t *testing.T, ctx context.Context, title string) {
	t.Helper()
	says(t, ctx, "#place", fmt.Sprintf("%d / ", slideNumber(t, title)))
}

func TestEachSlideOfTheFileIsServed(t *testing.T) {
	f := withSlides(t)
	f.enter(t)
	all := slideTitles(t)
	code, body := f.get(t, "http://"+f.host()+"/slides")
	if n := strings.Count(body, `<section class="slide"`); code != http.StatusOK || n != len(all) {
		t.Errorf("%d: %d slides are served, not %d", code, n, len(all))
	}
	if strings.Contains(body, `id="notes"`) {
		t.Error("the notes are on the projector")
	}
	code, body = f.get(t, "http://"+f.host()+"/slides/sheets")
	if code != http.StatusOK || !strings.Contains(body, "90 minutes") {
		t.Errorf("the run sheets: %d %.200s", code, body)
	}
}

// The slides of an instructor have numbers after the others, and come second in a run sheet.
func TestOwnSlidesShiftNoOther(t *testing.T) {
	f := start(t)
	for name, text := range map[string]string{
		"SLIDES.md": "# The slides\n\n## One\n\n## Two\n", "work/qr.png": "a picture",
		"work/slides.md": "## Ada\n\nAt <script>x()</script> 192.168.1.5 ![a code](qr.png) ![no](../../secret.png)\n\n> a note\n\n## Wi-Fi\n",
		"../secret.png":  "a secret",
		"TEACHING.md": "# T\n\n## Run sheets\n\n### S\n\n| 0:00 | 5 | a (slides [1](SLIDES.md#one), [2](SLIDES.md#two)) | – | | |\n" +
			"| 0:05 | 5 | b (slide [2](SLIDES.md#two)) | – | | |\n",
	} {
		testkit.Write(t, filepath.Join(f.root, name), text)
	}
	var err error
	f.pages, err = findPages(f.root)
	testkit.Must(t, err)
	f.enter(t)
	_, sheets := f.get(t, "http://"+f.host()+"/slides/sheets")
	for _, want := range []string{`"slides":[1,3,4,2]`, `"slides":[2]`} {
		if !strings.Contains(sheets, want) {
			t.Errorf("%s is not in %s", want, sheets)
		}
	}
	_, body := f.get(t, "http://"+f.host()+"/slides")
	_, own, _ := strings.Cut(body, "Two</h2>")
	for part, want := range map[string]bool{"Ada</h2>": true, "Wi-Fi</h2>": true, "192.168.1.5": true, "<script>x": false,
		"data:image/png;base64,YSBwaWN0dXJl": true, "YSBzZWNyZXQ": false} {
		if strings.Contains(own, part) != want {
			t.Errorf("%q among the own slides: %v\n%s", part, !want, own)
		}
	}
}

func TestSlidesAreGuarded(t *testing.T) {
	f := withSlides(t)
	for _, path := range []string{"/slides", "/slides/presenter", "/slides/sheets"} {
		answer, err := http.Get("http://" + f.host() + path) // without the cookie
		testkit.Must(t, err)
		answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s", path, answer.Status)
		}
	}
}

// toSlides opens the slides, and waits until all pictures are drawn.
func (f *fixture) toSlides(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate("http://"+f.host()+path), chromedp.Poll(
		`document.querySelector("#place")?.textContent && !document.querySelector("figure.picture:not(:has(img))")`, nil))
}

// measured returns the faults of the shown slide: text that is cut off, code that is too small, an empty picture or an
// empty slide. %d is the least size of letters in its picture.
const measured = `(() => {
  const slide = document.querySelector(".slide:not([hidden])");
  const wrong = [];
  const high = slide.scrollHeight - slide.clientHeight;
  if (high > 1) wrong.push("it is " + high + " pixels too high");
  if (slide.scrollWidth > slide.clientWidth + 1) wrong.push("it is too wide");
  for (const pre of slide.querySelectorAll(".block pre")) {
    const wide = pre.scrollWidth - pre.clientWidth;
    if (wide > 1) wrong.push("code is " + wide + " pixels too wide");
    const size = parseFloat(getComputedStyle(pre.querySelector("code")).fontSize);
    if (size < 24) wrong.push("code has " + size + " pixels");
  }
  for (const image of slide.querySelectorAll("img")) {
    if (!image.naturalWidth) wrong.push("a picture is not drawn");
    const letters = 16 * Math.min(image.clientWidth / image.naturalWidth, image.clientHeight / image.naturalHeight);
    if (letters < %d) wrong.push("the letters of a picture have " + letters.toFixed(1) + " pixels");
    if (image.clientHeight < 250) wrong.push("a picture is " + image.clientHeight + " pixels high");
  }
  if (slide.innerText.trim().length < 30 && !slide.querySelector("img")) wrong.push("it is empty");
  return wrong.join(", ");
})()`

// manyNodes has the least size of letters in pictures with too many nodes for 28 pixels.
var manyNodes = map[string]int{"02: Go types and generated code": 20, "06: the deployed objects": 20}

// TestEachSlideFits shows every slide, in each language.
func TestEachSlideFits(t *testing.T) {
	all := slideTitles(t)
	for _, test := range []struct {
		language      string
		width, height int64
	}{{"en", 1280, 720}, {"en", 1280, 800}, {"en", 1920, 1080}, {"zh-TW", 1280, 720}, {"ja", 1280, 720}, {"ko", 1280, 720}} {
		t.Run(fmt.Sprintf("%s %dx%d", test.language, test.width, test.height), func(t *testing.T) {
			f := withSlides(t)
			ctx := f.browser(t)
			do(t, ctx, network.SetCookie("language", test.language).WithURL("http://"+f.host()),
				chromedp.EmulateViewport(test.width, test.height))
			f.toSlides(t, ctx, "/slides")
			for at, title := range all {
				number := at + 1
				letters := cmp.Or(manyNodes[title], 28)
				var wrong string
				here := fmt.Sprintf(`document.querySelector("#place").textContent.startsWith("%d /")`, number)
				do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`location.hash = "#%d"`, number), nil),
					chromedp.Poll(here, nil), chromedp.Evaluate(fmt.Sprintf(measured, letters), &wrong))
				if wrong != "" {
					t.Errorf("slide %d, %q: %s", number, title, wrong)
				}
			}
			var shown string
			do(t, ctx, chromedp.Evaluate(`document.documentElement.lang.slice(0, 2)`, &shown))
			if !strings.HasPrefix(test.language, shown) {
				t.Errorf("the slides are in %s", shown)
			}
		})
	}
}

// toLastStep shows all steps of a slide that grows.
func toLastStep() chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var place string
			err := chromedp.Evaluate(`document.querySelector("#place").textContent`, &place).Do(ctx)
			_, at, grows := strings.Cut(place, ", step ")
			step, steps, _ := strings.Cut(at, " of ")
			if err != nil || !grows || step == steps {
				return err
			}
			if err := chromedp.KeyEvent(kb.ArrowRight).Do(ctx); err != nil {
				return err
			}
		}
	})
}

func TestSlidesByKeyAndByRunSheet(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	f.toSlides(t, ctx, "/slides")
	says(t, ctx, "#place", "1 / ")
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	says(t, ctx, "#place", "2 / ")
	do(t, ctx, chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Home), chromedp.KeyEvent(" "))
	says(t, ctx, "#place", "2 / ")
	do(t, ctx, chromedp.SetValue("#sheet", "90 minutes"), chromedp.Evaluate(
		`document.querySelector("#sheet").dispatchEvent(new Event("change"))`, nil),
		chromedp.Evaluate(fmt.Sprintf("location.hash = %d", slideNumber(t, "How an exercise goes")), nil), chromedp.Focus("#stage"))
	showsSlide(t, ctx, "How an exercise goes")
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	showsSlide(t, ctx, "Inside a controller") // slides that are not in this sheet are skipped
	do(t, ctx, chromedp.Evaluate(fmt.Sprintf("location.hash = %d", slideNumber(t, "Solution 04.4: a status that is true")), nil))
	says(t, ctx, "#goto", "make goto EX=04.5") // of a row that is shown
}

func TestAPictureGrows(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	f.toSlides(t, ctx, slide(t, "Every controller is the same loop"))
	hidden := func() (n int) {
		do(t, ctx, chromedp.Evaluate(`decodeURIComponent(document.querySelector(".slide:not([hidden]) img").src)
			.split("visibility: hidden").length - 1`, &n))
		return n
	}
	before := hidden()
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	says(t, ctx, "#place", "step 1 of 3")
	after := hidden()
	do(t, ctx, toLastStep())
	if last := hidden(); before <= after || after <= last || last != 0 {
		t.Errorf("%d, %d and %d nodes are hidden", before, after, last)
	}
}

func TestAPresenterSeesNotesAndTheRunSheet(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	f.toSlides(t, ctx, slide(t, "Task 04.2: Children that are created (20 minutes)"))
	do(t, ctx, chromedp.SetValue("#sheet", "90 minutes"),
		chromedp.Evaluate(`document.querySelector("#sheet").dispatchEvent(new Event("change"))`, nil))
	other := f.tab(t, ctx)
	f.toSlides(t, other, "/slides/presenter")
	says(t, other, "#row", "0:27–0:50 04.2 Children that are created")
	says(t, other, "#checkpoint", "by 0:50 everyone has stage 2 of 04")
	says(t, other, "#late", "make goto EX=04.3")
	says(t, other, "#notes", "Let them find the answer")
	says(t, other, "#next", "Solution 04.2")
	says(t, other, "#preview .slide:not([hidden]) h2", "Solution 04.2")
	if isVisible(t, ctx, "#goto") {
		t.Error("the goto of the row is on the task")
	}
	do(t, other, chromedp.Click("#begin"), chromedp.KeyEvent(kb.ArrowRight))
	says(t, other, "#elapsed", "0:00 since the beginning, 50 min left")
	showsSlide(t, ctx, "Solution 04.2: create missing children") // the tab of the projector follows
	says(t, ctx, "#goto", "make goto EX=04.3")
	says(t, ctx, "#countdown", ":")
	do(t, other, chromedp.Click("#add"))
	says(t, other, "#row", "0:27–0:53 04.2")
	says(t, other, "#elapsed", "53 min left")
	says(t, other, "#rows", "0:53 04.3")
	var again bool
	do(t, other, chromedp.Evaluate(`!document.querySelector("#add").disabled`, &again))
	if again {
		t.Error("minutes can be added twice")
	}
	// On another day the clock begins anew.
	do(t, other, chromedp.Evaluate(`localStorage.setItem("slides", JSON.stringify({
		...JSON.parse(localStorage.getItem("slides")), began: Date.now() - 26 * 3600 * 1000 }))`, nil))
	do(t, ctx, chromedp.Poll(`JSON.parse(localStorage.getItem("slides")).began < Date.now() - 25 * 3600 * 1000`, nil,
		chromedp.WithPollingInterval(100*time.Millisecond))) // it is stored; a tab in the background draws no frames
	f.toSlides(t, other, "/slides/presenter")
	says(t, other, "#row", "0:27–0:50 04.2")
	var elapsed string
	do(t, other, chromedp.Text("#elapsed", &elapsed, chromedp.ByQuery))
	if elapsed != "" {
		t.Errorf("a new day begins with %q", elapsed)
	}
}

// covered names the parts of the presenter's desk that another part covers, or that are outside of the screen.
const covered = `(() => {
  const wrong = [], desk = document.querySelector("#desk");
  for (const part of desk.querySelectorAll("button, dd, h2, summary, #notes")) {
    if (part.closest("details:not([open])") && part.localName !== "summary") continue;
    part.scrollIntoView({ block: "nearest", behavior: "instant" });
    const box = part.getBoundingClientRect();
    for (const x of [box.left + 2, box.right - 2]) {
      if (box.height && !desk.contains(document.elementFromPoint(x, box.top + box.height / 2))) wrong.push(part.textContent);
    }
  }
  const bar = document.querySelector("#bar"), edge = desk.getBoundingClientRect().left;
  for (const part of bar.querySelectorAll("*")) {
    if (part.getBoundingClientRect().right > edge) wrong.push("the bar: " + part.textContent);
  }
  return wrong.join(", ");
})()`

// TestTheRunSheetIsNotCovered: with long notes, the run sheet is on the screen, and nothing covers its rows.
func TestTheRunSheetIsNotCovered(t *testing.T) {
	for language, name := range map[string]string{"en": "90 minutes", "zh-TW": "90 分鐘"} { // the bar is widest in Chinese
		f := withSlides(t)
		ctx := f.browser(t)
		do(t, ctx, network.SetCookie("language", language).WithURL("http://"+f.host()), chromedp.EmulateViewport(1280, 800))
		f.toSlides(t, ctx, slide(t, "Inside a controller"))
		says(t, ctx, "#sheet", name)
		do(t, ctx, chromedp.Evaluate(`{
			const sheet = document.querySelector("#sheet");
			sheet.selectedIndex = 1;
			sheet.dispatchEvent(new Event("change"));
		}`, nil), toLastStep())
		f.toSlides(t, ctx, "/slides/presenter")
		var below float64
		var wrong string
		do(t, ctx, chromedp.Click("#begin"), chromedp.Evaluate(
			`document.querySelector("#desk summary").getBoundingClientRect().bottom - innerHeight`, &below),
			chromedp.Click("#desk summary"), chromedp.WaitVisible("#rows button"), chromedp.Evaluate(covered, &wrong))
		if below > 0 || wrong != "" {
			t.Errorf("%s: the run sheet is %.0f pixels below the screen; covered: %s", language, below, wrong)
		}
	}
}

// A break has its place between the slides, and the projector shows how long it still is.
func TestABreakIsBetweenTheSlides(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	f.toSlides(t, ctx, slide(t, "Picture 04.3: Owns enqueues the owner"))
	do(t, ctx, chromedp.SetValue("#sheet", "3 hours"),
		chromedp.Evaluate(`document.querySelector("#sheet").dispatchEvent(new Event("change"))`, nil))
	says(t, ctx, "#goto", "make goto EX=04.4")
	other := f.tab(t, ctx)
	f.toSlides(t, other, "/slides/presenter")
	do(t, other, chromedp.Click("#begin"), chromedp.Focus("#stage"))
	for range 9 { // of the slide's steps
		var title string
		do(t, other, chromedp.Text("#next", &title, chromedp.ByQuery))
		if title != "Break" {
			break
		}
		do(t, other, chromedp.KeyEvent(kb.ArrowRight))
	}
	says(t, other, "#row", "1:32–1:42 Break")
	says(t, ctx, ".slide:not([hidden]) h2", "Break")
	says(t, ctx, ".slide:not([hidden]) .countdown", ":")
	do(t, other, chromedp.KeyEvent(kb.ArrowRight))
	showsSlide(t, ctx, "Task 04.4: A status that is true (25 minutes)")
	do(t, other, chromedp.KeyEvent(kb.ArrowLeft))
	says(t, ctx, ".slide:not([hidden]) h2", "Break")
}

// A printed slide is a page, with all steps and without what belongs to the screen.
func TestARunSheetIsPrinted(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	f.toSlides(t, ctx, "/slides")
	do(t, ctx, chromedp.SetValue("#sheet", "90 minutes"),
		chromedp.Evaluate(`document.querySelector("#sheet").dispatchEvent(new Event("change"))`, nil),
		chromedp.Evaluate(`window.print = () => { document.documentElement.dataset.printed = "yes"; }`, nil),
		chromedp.Click("#pdf"), chromedp.Poll(`document.documentElement.dataset.printed`, nil))
	var pdf []byte
	do(t, ctx, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = cdppage.PrintToPDF().WithPreferCSSPageSize(true).WithPrintBackground(true).Do(ctx)
		return err
	}))
	all, err := teaching.Sheets(checkoutRoot, spoken{}.T)
	testkit.Must(t, err)
	want := 0
	for _, row := range all[0].Rows {
		want += len(row.Slides)
	}
	pages := regexp.MustCompile(`/Type ?/Page\b`).FindAll(pdf, -1)
	size := regexp.MustCompile(`/MediaBox ?\[0 0 960 540\]`).FindAll(pdf, -1) // 1280 x 720 pixels in points
	if len(pages) != want || len(size) < 1 {
		t.Errorf("%d pages are printed for %d slides, %d with the size of a slide", len(pages), want, len(size))
	}
}

func TestTheLoopIsBesideASlide(t *testing.T) {
	f := withSlides(t)
	ctx := f.browser(t)
	do(t, ctx, chromedp.EmulateViewport(1280, 720))
	f.toSlides(t, ctx, slide(t, "See it: make demo"))
	do(t, ctx, chromedp.KeyEvent("l"))
	says(t, ctx, "#panel-loop:not([hidden]) .loop-bar", "Local cluster, live")
	do(t, ctx, chromedp.KeyEvent("t"), chromedp.Poll(`document.querySelectorAll("#below .xterm-rows > div").length > 12`, nil),
		chromedp.KeyEvent("l"))
	if isVisible(t, ctx, "#panel-loop") || !isVisible(t, ctx, "#below") {
		t.Error("the second l does not hide the loop alone")
	}
}

func TestABlockOfASlideRuns(t *testing.T) {
	f := withSlides(t)
	f.terminals.config.Env = append(f.terminals.config.Env, "PATH="+fakeMake(t)+":"+os.Getenv("PATH"))
	ctx := f.browser(t)
	f.toSlides(t, ctx, slide(t, "See it: make demo"))
	do(t, ctx, chromedp.WaitReady(`#panel-page[data-connected="yes"]`), chromedp.KeyEvent("r"))
	says(t, ctx, "#panel-page .xterm-accessibility", "the demo of demo PAUSE=1")
	says(t, ctx, ".slide:not([hidden]) .verdict", "passed")
}

// fakeMake is a folder whose program make prints its arguments.
func fakeMake(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "make"), []byte("#!/bin/sh\necho \"the demo of $*\"\n"), 0o755))
	return dir
}
