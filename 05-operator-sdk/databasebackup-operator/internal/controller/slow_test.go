package controller

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A response for one object is slow, or the watch of one kind delivers nothing: the other objects still progress.

// holdFirst lets the first request whose description begins with a text wait until the test ends. The channel is closed
// when there is one.
func (l *loop) holdFirst(text string) (held chan struct{}) {
	held = make(chan struct{})
	released, seen := make(chan struct{}), atomic.Bool{}
	l.t.Cleanup(func() { close(released) })
	l.between(func(what string, pass func() (*http.Response, error)) (*http.Response, error) {
		if strings.HasPrefix(what, text) && seen.CompareAndSwap(false, true) {
			close(held)
			<-released
		}
		return pass()
	})
	return held
}

func yearly(x *backup) { x.Spec.Schedule = "@yearly" }

// beside creates another DatabaseBackup in the namespace, and waits until both are reconciled.
func (l *loop) beside() client.ObjectKey {
	l.t.Helper()
	other := complete(l.namespace)
	other.Name = "other"
	yearly(other)
	l.must(l.Create(l.t.Context(), other))
	key := client.ObjectKeyFromObject(other)
	l.Eventually(l.reasonOf(key)).Should(gomega.Equal("Scheduled"))
	l.Eventually(l.reasonOf(l.request().NamespacedName)).Should(gomega.Equal("Scheduled"))
	return key
}

func (l *loop) reasonOf(key client.ObjectKey) func() string {
	return func() string {
		x := &backup{}
		l.must(l.Get(l.t.Context(), key, x))
		return condition(x.Status.Conditions, "Ready").Reason
	}
}

// runsSoon requests a run, and waits for it less than one reconcile may take.
func (l *loop) runsSoon(key client.ObjectKey) {
	l.t.Helper()
	x := &backup{}
	l.must(l.Get(l.t.Context(), key, x))
	asks("now")(x)
	l.must(l.Update(l.t.Context(), x))
	l.Eventually(func() bool {
		l.must(l.Get(l.t.Context(), key, x))
		return x.Status.InProgress
	}, timeout/3).Should(gomega.BeTrue(), "%s runs", key.Name)
}

func TestASlowCreateOfOneJobDoesNotStopOthers(t *testing.T) {
	l := newLoop(t, yearly)
	other := l.beside()
	held := l.holdFirst("POST jobs ")
	l.edit(asks("now"))
	<-held
	l.runsSoon(other)
}

func TestASlowStatusWriteDoesNotStopEventHandlers(t *testing.T) {
	l := newLoop(t, yearly)
	other := l.beside()
	held := l.holdFirst("PUT databasebackups/status orders")
	l.edit(func(x *backup) { x.Spec.Suspend = true })
	<-held
	l.must(l.Delete(t.Context(), &corev1.Service{ObjectMeta: l.meta("db-rw")}))
	l.Eventually(l.reasonOf(other), timeout/3).Should(gomega.Equal("TargetNotFound"), "the handler of Services goes on")
}

func TestAWatchOfJobsThatBringsNothingDoesNotStopRuns(t *testing.T) {
	l := newLoop(t, yearly)
	other := l.beside()
	l.freeze("jobs")
	l.runsSoon(l.request().NamespacedName)
	l.runsSoon(other)
}
