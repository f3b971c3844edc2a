package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
)

func TestAllStepsRunAndAFailedOneIsNamed(t *testing.T) {
	var ran atomic.Int32
	good := step{"good", func(context.Context, io.Writer) error { ran.Add(1); return nil }}
	bad := step{"bad", func(context.Context, io.Writer) error { ran.Add(1); return errors.New("broken") }}
	err := runSteps(t.Context(), []step{good, bad, good})
	if ran.Load() != 3 || err == nil || !strings.HasPrefix(err.Error(), "failed: bad, ") {
		t.Errorf("%d steps ran, %v", ran.Load(), err)
	}
	if err := runSteps(t.Context(), []step{good}); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runSteps(ended, []step{good}); !errors.Is(err, context.Canceled) || ran.Load() != 4 {
		t.Errorf("interrupted, %d steps ran, %v", ran.Load(), err)
	}
}

func Example_runSteps() {
	bad := step{"bad", func(_ context.Context, w io.Writer) error { fmt.Fprintln(w, "why"); return errors.New("broken") }}
	fmt.Println(runSteps(context.Background(), []step{bad}))
	// Output:
	// == bad
	// why
	// broken
	// -- bad: FAILED (0 s)
	//
	// 0 of 1 steps ok, 0 s
	// failed: bad, which printed at last:
	// == bad
	// why
	// broken
	// -- bad: FAILED (0 s)
}

func TestSomeRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		start := time.Now()
		inParallel(6, func(int) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
		})
		if took := time.Since(start); most.Load() != atOnce || took != 6*time.Second/atOnce {
			t.Errorf("%d ran at once, in %s", most.Load(), took)
		}
	})
}

func TestWhatIsPrintedIsInOnePiece(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out, 2)
	outputs := map[string]*output.Buffer{"a": {}, "b": {}}
	for _, name := range []string{"a", "b"} {
		p.begin(name, outputs[name])
	}
	for _, name := range []string{"a", "b", "a"} {
		fmt.Fprint(outputs[name], name)
	}
	for _, name := range []string{"b", "a"} {
		p.end(outputs[name])
	}
	if out.String() != "baa" {
		t.Errorf("it prints %q", out.String())
	}
}

func TestASilentStepIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		p := newProgress(&out, 3)
		defer p.show()()
		var fast, slow output.Buffer
		p.begin("fast", &fast)
		p.begin("slow", &slow)
		p.end(&fast)
		fmt.Fprintln(&slow, "== slow\ngo test ./...")
		time.Sleep(silence + 2*time.Second)
		synctest.Wait()
		if want := "  1 of 3 steps done; running:\n    slow: go test ./...\n"; out.String() != want {
			t.Errorf("it prints %q, want %q", out.String(), want)
		}
	})
}

func TestPagesAreGroupedByFolder(t *testing.T) {
	groups := groupPages("/root", []string{"/root/01/README.md", "/root/05/README.md", "/root/05/a/README.md",
		"/root/README.md", "/root/scripts/examine/ci/README.md"})
	if got := fmt.Sprint(groups); got != "[{05 [/root/05/README.md /root/05/a/README.md]} {. [/root/README.md]} "+
		"{01 [/root/01/README.md]} {scripts/examine/ci [/root/scripts/examine/ci/README.md]}]" {
		t.Errorf("got %s", got)
	}
}
