package window

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// shownText is the text of the rows that the page's terminal shows.
const shownText = `[...document.querySelectorAll("#panel-page .xterm-accessibility-tree > div")].map(row => row.textContent.trimEnd()).join("\n")`

// waitForText waits until the terminal's rows contain a text, and returns how long it took.
func waitForText(t *testing.T, ctx context.Context, want string) time.Duration {
	t.Helper()
	begin := time.Now()
	var got string
	for !strings.Contains(got, want) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the terminal shows %q, want %q", got, want)
		}
		do(t, ctx, chromedp.Evaluate(shownText, &got))
		time.Sleep(20 * time.Millisecond)
	}
	return time.Since(begin)
}

// typed types a line into the page's terminal.
func typed(line string) chromedp.Tasks {
	return chromedp.Tasks{chromedp.Evaluate(`document.querySelector("#panel-page .xterm-helper-textarea").focus()`, nil),
		chromedp.KeyEvent(line), chromedp.KeyEvent(kb.Enter)}
}

var ctrlC = chromedp.KeyEvent("c", chromedp.KeyModifiers(2))

func TestOutputWithoutEndEndsByCtrlC(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	do(t, ctx, typed("yes an output without end"))
	waitForText(t, ctx, "an output without end\nan output without end")
	do(t, ctx, chromedp.Poll(`performance.now() > 15000`, nil)) // it has printed for some time
	begin := time.Now()
	do(t, ctx, ctrlC, typed("echo the next command $((6*7))"))
	waitForText(t, ctx, "the next command 42")
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("the next command ran after %s", took)
	}
}

func TestSixtyMegabytesOfOutputArriveOrAreLeftOutInWords(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	const line = "a line of the sixty megabytes that a program prints"
	do(t, ctx, typed("yes "+line+" | head -c 60000000; echo the end $((6*7))"))
	if took := waitForText(t, ctx, "the end 42"); took > time.Minute {
		t.Errorf("60 MB took %s", took)
	}
}

// paste pastes lines of some bytes into the page's terminal.
func paste(bytes int) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`(() => {
		const place = document.querySelector("#panel-page .xterm-helper-textarea"), data = new DataTransfer();
		data.setData("text/plain", Array.from({ length: %d }, (_, i) => ("line " + i + " ").padEnd(59, "x")).join("\n"));
		place.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
	})()`, bytes/60), nil)
}

func TestAPasteInTheBrowserArrivesOrIsRefused(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	do(t, ctx, typed("clear; cat; echo the end $((6*7))"), paste(3<<20))
	says(t, ctx, "#panel-page .refused-input:not([hidden])", "refused: a terminal takes at most 1 MiB")
	do(t, ctx, chromedp.KeyEvent("now"), chromedp.KeyEvent(kb.Enter), chromedp.WaitNotVisible("#panel-page .refused-input"))
	waitForText(t, ctx, "now\nnow") // cat runs, and nothing of the paste came before
	do(t, ctx, ctrlC, typed("clear; echo alive $((6*7)); sleep 1000"))
	waitForText(t, ctx, "alive 42") // a paste before clear runs would be cleared
	for _, size := range []int{3000, 20_000, 60_000, 100_000} {
		do(t, ctx, paste(size))
		waitForText(t, ctx, "line 40")
		do(t, ctx, ctrlC)
		waitForText(t, ctx, "^C")
		do(t, ctx, typed(fmt.Sprintf("clear; echo alive $((%d+1)); sleep 1000", size)))
		waitForText(t, ctx, fmt.Sprintf("alive %d", size+1))
	}
}

func TestAClosedNarrowTabGivesTheWidthBack(t *testing.T) {
	f := start(t)
	wide := f.browser(t)
	calls := 41
	columns := func() (columns string) {
		calls++ // the output of the call before may still be shown
		do(t, wide, typed(fmt.Sprintf(`clear; echo "columns $(tput cols) of $((%d+0))"`, calls)))
		waitForText(t, wide, fmt.Sprintf(" of %d", calls))
		do(t, wide, chromedp.Evaluate(fmt.Sprintf(`(%s).match(/columns (\d+) of %d/)[1]`, shownText, calls), &columns))
		return columns
	}
	was := columns()
	narrow := f.tab(t, wide)
	const width = `document.querySelector("#panel-page .xterm-screen").clientWidth`
	do(t, narrow, chromedp.Evaluate("window.was = "+width, nil), chromedp.EmulateViewport(700, 600),
		chromedp.Poll(width+" !== window.was", nil))
	do(t, wide, cdppage.BringToFront()) // a hidden tab draws nothing
	eventually(t, func() bool { return columns() != was })
	do(t, narrow, cdppage.Close())
	eventually(t, func() bool { return columns() == was })
}

// TestALogLineIsShort: a terminal shows the time, the level, the message and the values, and the whole line on request.
func TestALogLineIsShort(t *testing.T) {
	f := start(t)
	const path = "work/log.txt"
	testkit.Write(t, filepath.Join(f.root, path), `2026-11-28T12:00:01+01:00	INFO	Starting Controller	{"controller": "myweb", "controllerKind": "MyWeb"}
2026-11-28T12:00:02+01:00	ERROR	Reconciler error	{"controller": "myweb", "MyWeb": {"name":"web","namespace":"default"}, "namespace": "default", "name": "web", "reconcileID": "1-2", "error": "no \"x\""}
sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[...]).Start.func2.2
	/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.25.2/pkg/internal/controller/controller.go:312
{"level":"info","ts":"2026-11-28T12:00:03Z","logger":"x","msg":"Synced","count":2}
{"level":"info","ts":"2026-11-28T12:00:03Z","msg":"a\u001b[2Jb","c\r":"d\ne\u009b6n","f":["\u007f"]}
I1128 12:00:04.123456   12345 main.go:58] "created" myweb="default/web"
not a log line: {"level": 1}
`)
	ctx := f.browser(t)
	do(t, ctx, typed("clear; cat "+filepath.Join(f.root, path)+`; printf '2026-11-28T12:00:05Z\tINFO\tunended'`))
	waitForText(t, ctx, `12:00:01 INFO  Starting Controller
12:00:02 ERROR Reconciler error MyWeb=default/web error=no "x"
12:00:03 INFO  Synced count=2
12:00:03 INFO  a\u001b[2Jb c\u000d=d\u000ae\u009b6n f=["\u007f"]
12:00:04 INFO  "created" myweb="default/web"
not a log line: {"level": 1}
2026-11-28T12:00:05Z    INFO    unended`)
	do(t, ctx, chromedp.Click("#panel-page .whole-lines"))
	waitForText(t, ctx, `"reconcileID": "1-2"`)
	do(t, ctx, chromedp.Click("#panel-page .whole-lines"))
	waitForText(t, ctx, "12:00:01 INFO  Starting Controller")
}

// TestAKeyLeadsIntoTheTerminal also when a tab without a terminal is shown.
func TestAKeyLeadsIntoTheTerminal(t *testing.T) {
	f := start(t)
	ctx := f.browser(t)
	for tab, want := range map[string]string{"exercises": "page", "loop": "page", "commands": "commands"} {
		do(t, ctx, chromedp.Click("#tab-"+tab), chromedp.KeyEvent("t", chromedp.KeyModifiers(1)), chromedp.Poll(
			`document.activeElement.closest("#panel-`+want+`:not([hidden]) .xterm") !== null`, nil, chromedp.WithPollingTimeout(10*time.Second)))
	}
}
