package operator

import (
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// holder is who holds the lease in a namespace, empty when nobody does.
func (w *world) holder(namespace string) string {
	lease := &coordinationv1.Lease{}
	if !w.get(namespace, leaseName, lease) || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestOneOfTwoReplicasWorksAndTheOtherTakesOver(t *testing.T) {
	w := newWorld(t)
	ns := w.namespace()
	var replicas [2]*process
	for i, user := range []string{"first", "second"} {
		kubeconfig := w.operator(user, ns)
		w.allow(user, ns, leaseRules(t))
		flags := []string{"--namespaces=" + ns, "--leader-elect", "--leader-election-namespace=" + ns}
		if i == 0 {
			replicas[i] = started(t, program, kubeconfig, flags...)
		} else {
			replicas[i] = launch(t, program, kubeconfig, flags...)
		}
	}
	begun := func(user string) int { // watches: the caches of both are filled
		return len(filter(w.audit.of(t, user), func(r request) bool { return r.Verb == "watch" }))
	}
	w.Eventually(func() int { return begun("second") }).Should(gomega.Equal(4))
	w.ask(ns, "site")
	w.served(ns, "site")
	w.Expect(writes(w.settled("second"))).To(gomega.BeEmpty(), "only one writes")

	first := w.holder(ns)
	replicas[0].signal(syscall.SIGSTOP) // it hangs, and its lease runs out
	w.Eventually(func() string { return w.holder(ns) }, "40s").ShouldNot(gomega.Or(gomega.Equal(first), gomega.BeEmpty()))
	w.change(ns, "site", func(spec *webv1.MyWebSpec) { spec.PageContentHTML = new("taken over") })
	w.served(ns, "site")
	before := len(writes(w.settled("first")))
	replicas[0].signal(syscall.SIGCONT)
	if code := replicas[0].exitCode("20s"); code == 0 {
		t.Error("a leader that lost its lease ended with code 0")
	}
	w.Expect(writes(w.settled("first"))).To(gomega.HaveLen(before), "it wrote after its lease had run out")

	replicas[1].stop()
	w.Expect(w.holder(ns)).To(gomega.BeEmpty(), "who comes next should not have to wait")
	w.Expect(w.Delete(t.Context(), w.web(ns, "site"))).To(gomega.Succeed())
}

// A lock is a lease that is kept nowhere.
type lock struct {
	resourcelock.Interface
	fails error
	seen  func()
}

func (l *lock) Identity() string { return "us" }
func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return l.Update(context.Background(), resourcelock.LeaderElectionRecord{})
}
func (l *lock) Update(context.Context, resourcelock.LeaderElectionRecord) error {
	if l.seen != nil {
		l.seen()
	}
	return l.fails
}

func TestTheFenceOpensWithTheLease(t *testing.T) {
	stored := &lock{}
	l := &lease{Interface: stored}
	sent := 0
	f := fence{l, roundTripper(func(*http.Request) (*http.Response, error) { sent++; return &http.Response{}, nil })}
	passes := func(method string) bool {
		before := sent
		_, err := f.RoundTrip(&http.Request{Method: method})
		if (err == nil) != (sent > before) {
			t.Fatalf("sent: %v, yet %v", sent > before, err)
		}
		return err == nil
	}
	record := func(holder string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: holder}
	}
	update := func(holder string) { _ = l.Update(t.Context(), record(holder)) }
	for _, step := range []struct {
		what string
		do   func()
		open bool
	}{
		{"before the election", func() {}, false},
		{"elected, but not stored", func() { stored.fails = errors.New("conflict"); update("us") }, false},
		{"elected", func() { stored.fails = nil; _ = l.Create(t.Context(), record("us")) }, true},
		{"a renewal fails", func() { stored.fails = errors.New("timeout"); update("us") }, true},
		{"its time is over", func() { l.hold(time.Now().Add(-time.Millisecond)) }, false},
		{"renewed", func() { stored.fails = nil; update("us") }, true},
		{"given back", func() { update("") }, false},
		{"renewed once more", func() { update("us") }, true},
		{"given back, the answer is lost", func() { stored.fails = errors.New("reset"); update("") }, false},
	} {
		step.do()
		if got := passes(http.MethodPatch); got != step.open {
			t.Errorf("%s: a write passes: %v, want %v", step.what, got, step.open)
		}
		if !passes(http.MethodGet) {
			t.Errorf("%s: a read does not pass", step.what)
		}
	}
	update("us")
	stored.seen = func() {
		if passes(http.MethodPatch) {
			t.Error("while the lease is given back, a write passes: another may hold it already")
		}
	}
	update("")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
