package checks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func completedOnce(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	awaitNoMoreEvents(t)
	all := t.Recorded("web")
	if len(all) == 0 {
		t.Errorf("a MyWeb was served, and no event is about it")
	}
	slices.Sort(all)
	if once := slices.Compact(slices.Clone(all)); len(once) != len(all) {
		t.Errorf("an event was recorded more than once: %q", all)
	}
	mark := t.Mark()
	touch(t, "web")
	t.Edit(suite.ConfigMaps, "web", `{"data":{"index.html":"vandalism"}}`)
	t.Reaction("the page is restored", 0, func() error { return t.Children(web).Follow(web.Spec) })
	noNews(t, mark)
}

// annotated only gives the Deployment a new generation. Its status is about the previous generation as long as the
// Deployment controller is stopped: usually a moment, which a busy operator may miss.
func annotated(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	awaitNoMoreEvents(t)
	mark, resume := t.Mark(), t.Stop(fixture.ControllerManager)
	t.Edit(suite.Deployments, "web", `{"metadata":{"annotations":{"example.com/note":"a"}}}`)
	t.Pause(1500 * time.Millisecond)
	resume()
	t.Eventually("the Deployment controller has seen it", 0, func() error {
		if d := t.Children(web).Deployment; d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("generation %d, seen %d", d.Generation, d.Status.ObservedGeneration)
		}
		return nil
	})
	noNews(t, mark)
	wantNoWrite(t, mark)
}

// noNews fails the check when the operator recorded an event since a mark. It waits for a moment, because events are
// recorded a little later than the change that they report.
func noNews(t *suite.T, mark int) {
	t.Pause(700 * time.Millisecond)
	if news := t.Fixture.Ledger.Entries(recordings(t, mark)); len(news) > 0 {
		t.Errorf("expected no event; but the operator sent %s, and nothing became different:%s\nthe events: %q", suite.Count(len(news), "event"),
			suite.Lines(news), t.Recorded("web"))
	}
}

// onceReported has a MyWeb that is served and a MyWeb with a lasting conflict. It fails the check when the operator
// records an event after follows, or more than one warning.
func onceReported(t *suite.T, follows func()) {
	t.Make(suite.Services, suite.Unmanaged(suite.Services, "web"))
	t.Create("web", suite.Sample())
	t.Reported("web", resourceConflict, 0)
	t.Serve("served", suite.Sample())
	awaitWarning(t, "web")
	awaitNoMoreEvents(t)
	mark := t.Mark()
	follows()
	noNews(t, mark)
	oneWarning(t, "web")
}

func warnedOnce(t *suite.T) {
	onceReported(t, func() {
		for i := range 3 { // each enqueues the MyWeb
			t.Edit(suite.Services, "web", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
			t.Pause(100 * time.Millisecond)
		}
	})
}

func noNewsAfterRestart(t *suite.T) {
	onceReported(t, func() { t.Must(t.Operator.Restart(t.Ctx), "restart the operator") })
}

// recordings match the operator's requests about events of the check's namespace after a mark, including those that
// the API server did not accept, such as an increment of an existing event's counter.
func recordings(t *suite.T, mark int) ledger.Match {
	m := t.Mine(mark, wire.Writes...)
	m.Resources, m.Except = []string{"events", "events.events.k8s.io"}, nil
	return m
}

// awaitNoMoreEvents returns when the operator recorded no event for a moment.
func awaitNoMoreEvents(t *suite.T) {
	ctx, cancel := context.WithTimeout(t.Ctx, 20*time.Second)
	defer cancel()
	t.Must(t.Fixture.Ledger.AwaitQuiet(ctx, quiet, recordings(t, 0)), "wait until no more events are recorded")
}

func awaitWarning(t *suite.T, name string) {
	t.Reaction("there is a warning about MyWeb "+name, 0, func() error {
		if len(t.Warnings(name)) == 0 {
			return fmt.Errorf("its events are %q", t.Recorded(name))
		}
		return nil
	})
}

// oneWarning fails the check unless there is exactly one warning about the MyWeb. Events are recorded a moment after
// the change that they report.
func oneWarning(t *suite.T, name string) {
	awaitNoMoreEvents(t)
	t.Warned(name, 1, 1)
}
