package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/operator-workshop/scripts/internal/loop"
)

// demo has the records of a run of the demo, which a lens has written, and the objects of its cluster in the middle of
// the run.
const (
	demoLedger  = "testdata/demo.jsonl"
	demoObjects = "testdata/demo-objects.json"
)

// startDemo serves the demo's ledger and objects.
func startDemo(t *testing.T) *fixture {
	t.Helper()
	f := start(t)
	data, err := os.ReadFile(demoLedger)
	if err == nil {
		err = os.WriteFile(f.Ledger, data, 0o644)
	}
	var objects answers
	if err == nil {
		data, err = os.ReadFile(demoObjects)
	}
	if err == nil {
		err = json.Unmarshal(data, &objects)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Objects = func() (Reader, error) { return objects, nil }
	return f
}

// add makes the lens deliver one more event.
func (f *fixture) add(t *testing.T, name string) {
	t.Helper()
	file, err := os.OpenFile(f.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		err = json.NewEncoder(file).Encode(loop.Record{Is: loop.Event, N: 100000, Time: time.Now(), Version: "v1",
			Resource: "services", Kind: "Service", Type: "MODIFIED", Namespace: "default", Name: name,
			By: loop.Program{Name: "myweb-operator", PID: 1}})
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// openLoop shows the loop, and waits for its records.
func (f *fixture) openLoop(t *testing.T) context.Context {
	t.Helper()
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click("#tab-loop"))
	says(t, ctx, ".loop-status", "live at")
	return ctx
}

const now = `.arrows [aria-selected="true"]`

func TestTheLoopOfTheDemoIsDrawn(t *testing.T) {
	f := startDemo(t)
	ctx := f.openLoop(t)
	for _, want := range []string{"users and tools", "API server", "myweb-operator"} {
		says(t, ctx, ".heads", want)
	}
	for _, want := range []string{"create mywebs myweb 201 moved", "MyWeb myweb ADDED", "apply deployments myweb 201 moved",
		"delete deployments myweb", "Deployment myweb DELETED", "update mywebs/status myweb 200 moved"} {
		says(t, ctx, ".arrows", want)
	}
	says(t, ctx, ".loop-status", "reads folded")
	var folded, unfolded, reads int
	do(t, ctx, chromedp.Evaluate(`document.querySelectorAll(".arrow").length`, &folded),
		chromedp.Click(`//label[text()="Reads"]`), chromedp.WaitVisible(".arrow.read"),
		chromedp.Evaluate(`document.querySelectorAll(".arrow").length`, &unfolded),
		chromedp.Evaluate(`document.querySelectorAll(".arrow.read").length`, &reads))
	if reads == 0 || unfolded < folded {
		t.Errorf("%d arrows with reads, %d without, %d reads", unfolded, folded, reads)
	}
	f.add(t, "newest")
	says(t, ctx, ".arrows", "Service newest MODIFIED")
}

func TestTheLoopStandsStepsAndPlays(t *testing.T) {
	f := startDemo(t)
	ctx := f.openLoop(t)
	button := func(text string) chromedp.Action {
		return chromedp.Click(fmt.Sprintf(`//div[@class="loop-bar"]/button[contains(text(), %q)]`, text))
	}
	var last, back string
	do(t, ctx, button("Pause"), chromedp.WaitVisible(now), chromedp.Text(now, &last))
	f.add(t, "newest")
	says(t, ctx, ".loop-status", "paused at")
	says(t, ctx, ".arrow.later", "Service newest MODIFIED")
	do(t, ctx, button("Step back"), chromedp.Text(now, &back))
	if back == last {
		t.Errorf("a step back stays at %q", last)
	}
	do(t, ctx, button("Step forward"))
	says(t, ctx, now, strings.Split(last, "\n")[0])
	do(t, ctx, button("Go live"), chromedp.WaitNotPresent(now))
	says(t, ctx, ".loop-status", "live at")
	do(t, ctx, chromedp.Focus(".arrows"), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft), button("Replay"))
	says(t, ctx, now, "Service newest MODIFIED")
	says(t, ctx, ".loop-status", "paused at")
}

func TestACheckIsReplayedAtTheMomentThatDiffered(t *testing.T) {
	f := start(t)
	f.writeCheck(t, loop.Judgement{Exercise: "04.1", Check: "05-deleted-configmap", Message: "it was made twice", At: 6}, 20)
	ctx := f.browser(t)
	replay := `//button[contains(text(), "step by step")]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(replay), chromedp.Click(replay))
	says(t, ctx, ".loop select option:checked", "Last check of 04.1: failed")
	says(t, ctx, now, "create configmaps myweb 201 moved")
	says(t, ctx, now+" .mark", "✗ here it differed: it was made twice")
	says(t, ctx, ".loop-status", "paused at 6 of 40")
	do(t, ctx, chromedp.KeyEvent(kb.ArrowLeft))
	says(t, ctx, ".loop-status", "paused at 5 of 40")
	f.writeCheck(t, loop.Judgement{Exercise: "04.1", Passed: true, Check: "05-deleted-configmap"}, 10)
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(replay), chromedp.Click(replay))
	says(t, ctx, now+" .mark", "✓ passed 05-deleted-configmap")
	says(t, ctx, ".loop-status", "paused at 20 of 20")
}

func TestTheLoopByKeyboardAlone(t *testing.T) {
	f := startDemo(t)
	ctx := f.browser(t)
	alt := chromedp.KeyModifiers(1)
	do(t, ctx, chromedp.KeyEvent("l", alt))
	says(t, ctx, ".loop-status", "live at")
	do(t, ctx, chromedp.KeyEvent(" "))
	says(t, ctx, ".loop-status", "paused at")
	do(t, ctx, chromedp.KeyEvent(kb.Home))
	says(t, ctx, ".loop-status", "paused at 1 of")
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	says(t, ctx, ".loop-status", "paused at 2 of")
	says(t, ctx, "#announce", "was delivered to kubectl")
	const named = `document.querySelector(".arrows [aria-selected=true]").textContent.includes("create mywebs myweb")`
	for found := false; !found; {
		do(t, ctx, chromedp.KeyEvent(kb.ArrowDown), chromedp.Evaluate(named, &found))
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	says(t, ctx, ".yaml h2", "mywebs myweb, now")
	var focused string
	do(t, ctx, chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible(".yaml"), chromedp.KeyEvent("w", alt),
		chromedp.Evaluate(`document.activeElement.id`, &focused))
	if focused != "page" {
		t.Errorf("Alt W leads to %q", focused)
	}
}

// The tab keeps a limited number of records: the newest.
func TestALongLedgerIsBounded(t *testing.T) {
	f := start(t)
	writeLedger(t, f.Ledger, 5000)
	ctx := f.openLoop(t)
	says(t, ctx, ".loop-status", "live at 6000 of 6000")
	var drawn int
	do(t, ctx, chromedp.Evaluate(`document.querySelectorAll(".arrow").length`, &drawn))
	if drawn > 400 {
		t.Errorf("%d arrows are drawn", drawn)
	}
	says(t, ctx, ".arrow:last-child", "create configmaps myweb")
}

// TestScreenshotsOfTheLoop writes pictures into WINDOW_SCREENSHOTS, for a person to look at.
func TestScreenshotsOfTheLoop(t *testing.T) {
	folder := os.Getenv("WINDOW_SCREENSHOTS")
	if folder == "" {
		t.Skip("WINDOW_SCREENSHOTS names no folder")
	}
	f := startDemo(t)
	f.writeCheck(t, loop.Judgement{Exercise: "04.1", Check: "05-deleted-configmap",
		Message: "expected the ConfigMap web to come back within 10 s; but no request created it", At: 6}, 20)
	ctx, cancel := chromedp.NewContext(f.openLoop(t))
	defer cancel()
	do(t, ctx, chromedp.Navigate(f.Address()), chromedp.WaitVisible("#tab-loop"), chromedp.Click("#tab-loop"))
	shoot := func(name string) {
		t.Helper()
		var shot []byte
		do(t, ctx, chromedp.Sleep(400*time.Millisecond), chromedp.CaptureScreenshot(&shot))
		if err := os.WriteFile(filepath.Join(folder, name+".png"), shot, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, width := range []int64{1024, 1280, 1920} {
		for _, scheme := range []string{"light", "dark"} {
			name := fmt.Sprintf("loop-%d-%s", width, scheme)
			do(t, ctx, chromedp.EmulateViewport(width, width*5/8),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.Navigate("http://"+f.host()+"/"), chromedp.WaitVisible(".tree button"))
			shoot(name)
			do(t, ctx, chromedp.Click("#wide"), chromedp.Click(`//div[@class="tree"]//button[contains(., "MyWeb")]`), chromedp.Focus(".arrows"),
				chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft))
			shoot(name + "-wide")
			const choose = `{ const s = document.querySelector(".loop select"); s.value = "04.1"; s.dispatchEvent(new Event("change")); }`
			do(t, ctx, chromedp.Evaluate(choose, nil), chromedp.WaitVisible(".mark", chromedp.ByQuery))
			shoot(name + "-check")
		}
	}
	do(t, ctx, chromedp.EmulateViewport(1280, 800), chromedp.Navigate("http://"+f.host()+"/"), chromedp.WaitVisible(".tree button"),
		chromedp.Click("#projector"), chromedp.KeyEvent("l", chromedp.KeyModifiers(1)))
	shoot("loop-projector")
}
