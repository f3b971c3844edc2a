package suite

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
)

// outcomeOf runs a check that has some milliseconds, in a fixture without a cluster.
func outcomeOf(t *testing.T, within time.Duration, run func(*T)) Outcome {
	t.Helper()
	none, err := dynamic.NewForConfig(&rest.Config{Host: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	w := &fixture.Fixture{Ledger: ledger.New(nil), Dynamic: none}
	o := &Operator{User: &fixture.User{Name: "lab"}}
	o.AssumeAll()
	check := &T{Fixture: w, Operator: o, Namespace: "check", ctx: ctx, check: Check{ID: "test", Run: run}}
	return check.do()
}

// TestTimeThatRanOutIsNoPass has checks that see nothing wrong, the first two because they did not look for long
// enough.
func TestTimeThatRanOutIsNoPass(t *testing.T) {
	for name, run := range map[string]func(*T){
		"inside a quiet window": func(t *T) { t.StaysQuiet(time.Minute) },
		"inside a pause":        func(t *T) { t.Pause(time.Minute) },
		"after its last step":   func(t *T) { <-t.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			o := outcomeOf(t, 50*time.Millisecond, run)
			if o.Verdict != Failed || !strings.Contains(o.Reason, "the time of the check is over") {
				t.Errorf("%s: %s, want failed: the time of the check is over", o.Verdict, o.Reason)
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
	if o := outcomeOf(t, time.Minute, func(t *T) { t.StaysQuiet(time.Millisecond) }); o.Verdict != Passed {
		t.Errorf("a check that ends in time: %s: %s", o.Verdict, o.Reason)
	}
}

// TestEventuallySaysWhatIsMissing: that the time is over is not all that there is to say.
func TestEventuallySaysWhatIsMissing(t *testing.T) {
	o := outcomeOf(t, 50*time.Millisecond, func(t *T) {
		t.Eventually("the page is there", 0, func() error { return context.Canceled })
	})
	if o.Verdict != Failed || !strings.HasPrefix(o.Reason, "the page is there: not after") ||
		strings.Contains(o.Reason, "\n") {
		t.Errorf("%s: %s", o.Verdict, o.Reason)
	}
}

// TestASlowMachineIsNoVerdict: a program that is given up gets a number of looks, however long each of them takes.
func TestASlowMachineIsNoVerdict(t *testing.T) {
	for name, slow := range map[string]time.Duration{"idle": 0, "loaded": 5 * poll} {
		looks := 0
		o := outcomeOf(t, time.Minute, func(t *T) {
			t.Operator.AssumeNone()
			t.Operator.reports, t.Operator.patience = false, 10*poll
			t.Reaction("it is there", 0, func() error {
				looks++
				time.Sleep(slow)
				return errors.New("it is not")
			})
		})
		if !strings.Contains(o.Reason, "the operator sends nothing any more, and it is not") || looks < 6 {
			t.Errorf("%s: after %d looks: %s", name, looks, o.Reason)
		}
	}
}
