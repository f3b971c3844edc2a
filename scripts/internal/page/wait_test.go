package page

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// impatient runs a page whose waits end after a short time without progress, and returns its error.
func impatient(t *testing.T, patience time.Duration, text string) error {
	t.Helper()
	page, err := Parse(write(t, text))
	testkit.Must(t, err)
	for _, part := range page.Parts {
		if b := part.Block; b != nil {
			b.Timeout = patience
			b.Within = min(b.Within, patience)
		}
	}
	_, err = Runner{Env: os.Environ(), W: &bytes.Buffer{}}.Run(t.Context(), page)
	return err
}

// A block fails when its program makes no progress, and the error names the awaited event.
func TestWaitsWithoutProgressEnd(t *testing.T) {
	for name, test := range map[string]struct{ page, want string }{
		"another output": {"'''sh within=1s\necho a\n'''\n'''console contains\nb\n'''",
			`until the output has the line "b"`},
		"a command that keeps failing": {"'''sh within=1s\nfalse\n'''", "until the command succeeds"},
		"a command that hangs":         {"'''sh\nsleep 100\n'''", "until the command ends"},
		"a background process, silent": {"'''sh background=op until=ready\nexec sleep 100\n'''\n'''sh stop=op\ntrue\n'''",
			`until op prints "ready"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := impatient(t, 300*time.Millisecond, test.page)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "without progress") {
				t.Fatalf("got %v\nwant an error with %q", err, test.want)
			}
		})
	}
}

// A program that needs much longer than the patience of its block, but makes progress, does not fail the page.
func TestWaitsGoOnWhileThereIsProgress(t *testing.T) {
	const patience = 2 * time.Second // an idle second of the machine must not fail the test
	slowly := "for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 0.5; echo $n; done"
	busy := "end=$((SECONDS+6)); while [ $SECONDS -lt $end ]; do :; done"
	for name, text := range map[string]string{
		"a command that prints":         "'''sh\n" + slowly + "\n'''",
		"a command that works silently": "'''sh\n" + busy + "\n'''",
		"a child that works silently":   "'''sh\nbash -c '" + busy + "; true'; true\n'''",
		"a background process that works silently": "'''sh background=op until=ready\n" + busy +
			"; echo ready; sleep 100\n'''\n'''sh stop=op\ntrue\n'''",
		"an output that changes": "'''sh\nn=0\n'''\n'''sh within=1s\nsleep 0.5; n=$((n+1)); echo $n\n'''\n" +
			"'''console contains\n12\n'''",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testkit.Must(t, impatient(t, patience, text))
		})
	}
}

// Words of a page cannot make a wait shorter than a minute.
func TestNoWaitIsShorterThanAMinute(t *testing.T) {
	page, err := Parse(write(t, "'''sh within=10s timeout=5s\ntrue\n'''"))
	testkit.Must(t, err)
	if b := page.Parts[0].Block; b.Within != time.Minute || b.Timeout != time.Minute {
		t.Errorf("within %s, timeout %s", b.Within, b.Timeout)
	}
}

func TestTheReaderSeesWhatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := newWait(&out, time.Minute, `operator prints "Starting workers"`)
		for w.goesOn(false) {
			time.Sleep(time.Second)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if want := `(waiting until operator prints "Starting workers": 15 s)`; lines[0] != want || len(lines) != 4 {
			t.Errorf("got %q", lines)
		}
	})
}

// Even a program that works without end does not keep a page forever.
func TestProgressWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begin := newWait(&bytes.Buffer{}, time.Minute, "the command ends"), time.Now()
		for w.goesOn(true) {
			time.Sleep(time.Second)
		}
		if took := time.Since(begin); took != 10*time.Minute {
			t.Errorf("it ended after %s", took)
		}
	})
}
