package suite

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/outcome"
)

func TestSelect(t *testing.T) {
	checks := []Check{{ID: "behaviour/01-a", Fast: true}, {ID: "behaviour/02-b"}}
	if got, err := Select(checks, "02"); err != nil || len(got) != 1 || got[0].ID != "behaviour/02-b" {
		t.Errorf("select: %v, %v", got, err)
	}
	if _, err := Select(checks, "03"); err == nil || !strings.Contains(err.Error(), "no check matches") {
		t.Errorf("nothing selected: %v", err)
	}
	if _, err := Select(checks, "("); err == nil || !strings.Contains(err.Error(), "--run") {
		t.Errorf("a bad pattern: %v", err)
	}
	if got := Fast(checks); len(got) != 1 {
		t.Errorf("fast: %v", got)
	}
}

func TestExpectedFailuresAreComparedBothWays(t *testing.T) {
	fails := []string{"fault/a", "fault/b"}
	var all []outcome.Result
	for _, o := range []outcome.Result{
		{ID: "fault/a", Verdict: outcome.Failed}, {ID: "fault/b", Verdict: outcome.Passed},
		{ID: "fault/c", Verdict: outcome.Failed}, {ID: "fault/d", Verdict: outcome.Passed},
		{ID: "fault/b", Verdict: outcome.Skipped}} {
		all = append(all, compared(o, fails))
	}
	if o := all[0]; o.Verdict != outcome.Failed || o.Accepted == "" {
		t.Errorf("a failure that is listed: %+v", o)
	}
	if o := all[1]; o.Verdict != outcome.Failed || o.Accepted != "" || !strings.Contains(o.What, "take it off the list") {
		t.Errorf("a check that is listed and passed: %+v", o)
	}
	if n := Unexpected(all); n != 2 {
		t.Errorf("%d unexpected failures, want the one that is not listed and the one that passed", n)
	}
}

// TestOneCheckIsAlone has two checks that wait for the end of a third, and then for each other.
func TestOneCheckIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{turn: make(chan struct{}, 1)}
		r.others.Add(1)
		var alone, most atomic.Int32
		for range 2 {
			go func() {
				c := &T{Trial: &frame.Trial{Ctx: t.Context()}, awaitAlone: r.awaitAlone}
				c.AwaitAlone()
				most.Store(max(most.Load(), alone.Add(1)))
				time.Sleep(time.Second)
				alone.Add(-1)
				<-r.turn
			}()
		}
		synctest.Wait()
		if most.Load() != 0 {
			t.Error("a check is alone beside another")
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if err := r.awaitAlone(ended); !errors.Is(err, context.Canceled) {
			t.Errorf("a check whose time is over: %v", err)
		}
		r.others.Done()
		time.Sleep(time.Minute)
		if most.Load() != 1 {
			t.Errorf("%d checks were alone at once", most.Load())
		}
	})
}
