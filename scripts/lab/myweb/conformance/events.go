package conformance

import (
	"fmt"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func completedOnce(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	awaitNoMoreEvents(t, quiet)
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
	t.Reaction("the page is restored", 0, func() error {
		if page := t.Children(web).ConfigMap.Data["index.html"]; page != *web.Spec.PageContentHTML {
			return fmt.Errorf("index.html is %q", page)
		}
		return nil
	})
	noNews(t, mark)
}

// annotated only gives the Deployment a new generation. Its status is about the previous generation as long as the
// Deployment controller is stopped: usually a moment, which a busy operator may miss.
func annotated(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	awaitNoMoreEvents(t, quiet)
	mark, resume := t.Mark(), t.StopControllers()
	t.Edit(suite.Deployments, "web", `{"metadata":{"annotations":{"example.com/note":"a"}}}`)
	t.Pause(calm)
	resume()
	t.Eventually("the Deployment controller has seen it", 0, func() error {
		if d := t.Children(web).Deployment; d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("generation %d, seen %d", d.Generation, d.Status.ObservedGeneration)
		}
		return nil
	})
	noNews(t, mark)
	if writes := t.Writes(mark); len(writes) > 0 {
		t.Unexpected(writes, "expected no write; but the operator sent %d, and nothing became different", len(writes))
	}
}

// noNews fails the check when the operator recorded an event since a mark. It waits for a moment, because events are
// recorded a little later than the change that they report.
func noNews(t *suite.T, mark int) {
	t.Pause(700 * time.Millisecond)
	if news := recordings(t, mark); len(news) > 0 {
		t.Errorf("expected no event; but the operator sent %d, and nothing became different:%s\nthe events: %q", len(news),
			suite.Lines(news), t.Recorded("web"))
	}
}

func warnedOnce(t *suite.T) {
	t.Make(suite.Services, suite.Unmanaged(suite.Services, "web"))
	t.Create("web", suite.Sample())
	t.Await("web", "is Degraded by "+resourceConflict, 0, func(w *suite.Web) bool { return w.Degraded(resourceConflict) })
	awaitWarning(t, "web")
	awaitNoMoreEvents(t, quiet)
	mark := t.Mark()
	for i := range 3 { // each enqueues the MyWeb
		t.Edit(suite.Services, "web", fmt.Sprintf(`{"metadata":{"labels":{"touched":"%d"}}}`, i))
		t.Pause(100 * time.Millisecond)
	}
	noNews(t, mark)
	oneWarning(t, "web")
}

func noNewsAfterRestart(t *suite.T) {
	t.Make(suite.ConfigMaps, suite.Unmanaged(suite.ConfigMaps, "conflicted"))
	t.Create("conflicted", suite.Sample())
	t.Await("conflicted", "is Degraded by "+resourceConflict, 0, func(w *suite.Web) bool {
		return w.Degraded(resourceConflict)
	})
	t.Serve("web", suite.Sample())
	awaitWarning(t, "conflicted")
	awaitNoMoreEvents(t, quiet)
	mark := t.Mark()
	t.Must(t.Operator.Restart(t.Context()), "restart the operator")
	noNews(t, mark)
	oneWarning(t, "conflicted")
}
