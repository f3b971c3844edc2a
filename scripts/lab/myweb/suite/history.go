package suite

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A History has every version of the MyWebs of the check's namespace from a moment on.
type History struct {
	t    *T
	mu   sync.Mutex
	webs []*Web
	err  error
}

// Follow records the history of the MyWebs, past the proxy.
func (t *T) Follow() *History {
	h := &History{t: t}
	list, err := t.Objects(Resource).List(t.Ctx, metav1.ListOptions{})
	t.Must(err, "list MyWebs")
	w, err := t.Objects(Resource).Watch(t.Ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	t.Must(err, "watch MyWebs")
	t.Cleanup(func(context.Context) { w.Stop() })
	go func() {
		for e := range w.ResultChan() {
			web, err := &Web{}, fmt.Errorf("the watch of MyWebs says %v", e.Object)
			if u, ok := e.Object.(*unstructured.Unstructured); ok {
				web, err = asWeb(u)
			}
			h.mu.Lock()
			h.webs, h.err = append(h.webs, web), err
			h.mu.Unlock()
		}
	}()
	return h
}

// upTo waits for the given version, and returns the versions up to it.
func (h *History) upTo(last *Web) (all []*Web) {
	h.t.Eventually("the watch brings MyWeb "+last.Name, 0, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		all = slices.Clone(h.webs)
		if h.err != nil {
			return h.err
		}
		if !slices.ContainsFunc(all, func(w *Web) bool {
			return w.UID == last.UID && w.ResourceVersion == last.ResourceVersion
		}) {
			return fmt.Errorf("there are %d versions, and not %s", len(all), last.ResourceVersion)
		}
		return nil
	})
	return slices.DeleteFunc(all, func(w *Web) bool { return w.UID != last.UID })
}

// CompletedOnce fails the check when the newest generation was reported as completed, and later not: the first report
// was too early.
func (h *History) CompletedOnce(last *Web) {
	early := ""
	for _, w := range h.upTo(last) {
		switch {
		case w.Generation != last.Generation:
		case w.Is():
			early = JSON(w.Status)
		case early != "":
			h.t.Errorf("completed was reported too early: %s became %s", early, JSON(w.Status))
			return
		}
	}
}

// NeverCompleted fails the check when a version reported the generation of the last one as completed.
func (h *History) NeverCompleted(last *Web) {
	for _, w := range h.upTo(last) {
		if w.Status.Completed && w.Status.ObservedGeneration == last.Generation {
			h.t.Errorf("for a time completed for generation %d: %v", last.Generation, w.Status)
			return
		}
	}
}

// NeverDegraded fails the check when the MyWeb was Degraded in any version, or there was a warning about it: what
// passes by itself is not an error.
func (h *History) NeverDegraded(last *Web) {
	for _, w := range h.upTo(last) {
		if c := w.Condition("Degraded"); c.Status == metav1.ConditionTrue {
			h.t.Errorf("MyWeb %s was Degraded for a time: %s: %s", w.Name, c.Reason, c.Message)
			break
		}
	}
	h.t.Warned(last.Name, 0, 0)
}

// Warnings are the events of that type about a MyWeb, one for each time that they were recorded.
func (t *T) Warnings(name string) []string { return t.Recorded(name, corev1.EventTypeWarning) }

// Warned fails the check unless there are at least and at most so many warnings about a MyWeb.
func (t *T) Warned(name string, least, most int) {
	if all := t.Warnings(name); len(all) < least || len(all) > most {
		t.Errorf("expected %d to %d warnings; but there are %d: %q", least, most, len(all), all)
	}
}

// Recorded are the events about a MyWeb of the given types, or of all types, one for each time that they were
// recorded: a counter in an event counts, too.
func (t *T) Recorded(name string, kinds ...string) (all []string) {
	for _, e := range t.Events(name) {
		times := max(1, e.DeprecatedCount)
		if e.Series != nil {
			times = max(times, e.Series.Count)
		}
		for range times {
			if len(kinds) == 0 || slices.Contains(kinds, e.Type) {
				all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
			}
		}
	}
	return all
}
