package suite

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A Need is a property that a program must have for a check to apply. A check whose need is missing is skipped.
type Need = string

// Needs of checks.
const (
	// Status means that the program reports completed with observedGeneration. behaviour/01-status fails without it.
	Status Need = "status"
	// LeaderElection means that the program has a flag --leader-elect.
	LeaderElection Need = "leader election"
)

// missing names the need that the program lacks; empty when it has all.
func (o *Operator) missing(needs []Need) string {
	switch {
	case slices.Contains(needs, LeaderElection) && !o.Impl.Has("leader-elect"):
		return "the program has no --leader-elect"
	case slices.Contains(needs, Status) && o.surveyed && !o.reports:
		return "it needs status, and " + o.finding + ": see behaviour/01-status"
	}
	return ""
}

// AssumeAll makes every check judge status and owner references, without checking whether the program writes them.
func (o *Operator) AssumeAll() { o.surveyed, o.reports, o.owns = true, true, true }

// AssumeNone makes every check judge only the objects, without checking whether the program writes status or owner
// references. It is for programs that need not do this yet.
func (o *Operator) AssumeNone() {
	o.surveyed, o.finding = true, "the program is judged without its status"
}

// Reports reports whether the program reports status. If it does not, checks judge the objects themselves.
func (t *T) Reports() bool { return t.Operator.reports }

// WantStatus ends the check when the program does not report status.
func (t *T) WantStatus() {
	if !t.Operator.reports {
		found := t.Operator.found
		if found.namespace != "" { // the evidence is there
			t.Namespace, t.Start = found.namespace, 0
		}
		t.fail(found.end, "expected status; but "+t.Operator.finding+": a user cannot see that the MyWeb is served")
		t.did, t.reaction = found.did, found.reaction
		runtime.Goexit()
	}
}

// Time without a request after which the lab assumes that the program sends no more. When several checks run at once,
// the program may have to wait for its client's rate limiter.
const (
	idleAlone    = 2 * time.Second
	idleTogether = 5 * time.Second
	// idleReporting is for a program that writes status, and may still report completed.
	idleReporting = 10 * time.Second
)

// survey creates a MyWeb and finds out once what the program writes, so that no check waits for a report that never
// comes.
func (t *T) survey() {
	o := t.Operator
	t.Create("web", Sample())
	for begin := time.Now(); ; _ = fixture.Pause(t.Ctx, fixture.Poll) {
		web, err := t.Get("web")
		t.Must(err, "read MyWeb web")
		attempts := t.Fixture.Ledger.Count(t.statusWrites())
		idle := 2 * o.patience
		got := t.Fixture.Ledger.Delivered(o.User.Name, t.Namespace, "").Time
		if attempts > 0 || len(t.Requests(0)) == 0 && got.IsZero() { // a program may be slow to start
			idle = idleReporting
		}
		switch {
		case web.Is() || !o.Running() || t.Ctx.Err() != nil || t.endless(0, mostBefore) != nil:
			o.AssumeAll()
			return
		case t.idle(begin) < idle || t.rollsOut():
			continue
		}
		o.surveyed, o.owns = true, t.ownsChildren(web)
		o.found.namespace, o.found.end = t.Namespace, t.Fixture.Ledger.Newest()
		o.found.did, o.found.reaction = t.act.text, t.reactionTo(t.act)
		o.finding = "the program has not written status"
		if attempts > 0 {
			o.finding = fmt.Sprintf("the MyWeb is served, and the status that the program writes does not say so: "+
				"generation=%d %v", web.Generation, web.Status)
			if c, err := t.children("web"); err == nil {
				o.finding += fmt.Sprintf(", and the Deployment has readyReplicas=%d", c.Deployment.Status.ReadyReplicas)
			}
		}
		return
	}
}

// statusWrites matches the operator's writes of a status in the namespace, including refused ones.
func (t *T) statusWrites() ledger.Match {
	m := t.Mine(0, wire.Writes...)
	m.Resources = []string{StatusResource}
	return m
}

// idle is how long the operator has sent no requests about the namespace and got no event about it, since a moment.
// When its last request failed, it may be in its backoff: half of the time counts. While it may have other MyWebs to
// handle, a quarter counts.
func (t *T) idle(since time.Time) time.Duration {
	counts, last := time.Duration(1), time.Time{}
	for _, e := range t.Requests(0) {
		if e.Open && e.Verb != wire.Watch {
			return 0
		}
		if end := e.Start.Add(e.Took); end.After(last) {
			last, counts = end, 1
			if !e.Accepted() {
				counts = 2
			}
		}
	}
	for _, at := range []time.Time{last, t.Fixture.Ledger.Delivered(t.Operator.User.Name, t.Namespace, "").Time} {
		if at.After(since) {
			since = at
		}
	}
	if !t.hasPaused(since) {
		counts *= 4
	}
	return time.Since(since) / counts
}

// pause is longer than any gap between requests while a program's queue is not empty: it handles one MyWeb right
// after the other.
const pause = time.Second

// hasPaused reports whether the operator has sent no requests, in any namespace, for that time since a moment.
func (t *T) hasPaused(since time.Time) bool {
	m := t.Mine(0)
	m.Namespace = ""
	for _, e := range t.Fixture.Ledger.Entries(m) {
		switch end := e.Start.Add(e.Took); {
		case e.Open && e.Verb != wire.Watch:
			return false
		case e.Start.Sub(since) >= pause:
			return true
		case end.After(since):
			since = end
		}
	}
	return time.Since(since) >= pause
}

// rollsOut reports whether there is a Deployment whose pods are not all there yet.
func (t *T) rollsOut() bool {
	all, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	return err == nil && slices.ContainsFunc(all.Items, func(d appsv1.Deployment) bool { return RolledOut(&d) != nil })
}

// deletes reports whether the deletion of a MyWeb or of a child has begun and not ended. The operator may wait for its end.
func (t *T) deletes() bool {
	return slices.ContainsFunc(slices.Concat([]string{Resource}, Kinds), func(resource string) bool {
		list, err := t.Objects(resource).List(t.Ctx, metav1.ListOptions{})
		return err == nil && slices.ContainsFunc(list.Items, func(u unstructured.Unstructured) bool {
			return u.GetDeletionTimestamp() != nil
		})
	})
}

// ownsChildren reports whether every existing child has the MyWeb as its controller.
func (t *T) ownsChildren(web *Web) bool {
	return !slices.ContainsFunc(Kinds, func(k string) bool {
		o, err := t.Objects(k).Get(t.Ctx, web.Name, metav1.GetOptions{})
		return err == nil && !metav1.IsControlledBy(o, web)
	})
}

// Reaction is Eventually for actions that the operator takes as soon as it sees a change. It gives up when it is certain
// that the operator does not react, or when the operator has sent no requests for a while.
func (t *T) Reaction(what string, within time.Duration, observe func() error) {
	patience := t.Operator.patience
	if t.Operator.reports { // it may report only after waiting for others
		patience *= 2
	}
	begin, looks, last, w := time.Now(), 0, time.Duration(0), waiting{}
	t.Eventually(what, within, func() error {
		err := observe()
		sure := !t.Operator.reports && w.isCertain(t, certain)
		idle := t.idle(begin)
		if looks++; idle < last {
			looks = 0
		}
		// On a loaded machine each look takes longer, and so does the program.
		last = idle
		silent := idle > patience && looks > int(patience/(2*fixture.Poll)) && !t.works()
		if err != nil && (silent || sure && !t.deletes()) && !t.rollsOut() {
			t.Fatalf("expected that %s; but %s", what, t.silence(err))
		}
		return err
	})
}

// silence says how the operator stopped to send requests, with the missing condition. An operator whose last request was
// refused may still try again.
func (t *T) silence(missing error) string {
	requests := t.Requests(t.act.mark)
	if last := len(requests) - 1; last >= 0 && requests[last].Code >= http.StatusBadRequest {
		return fmt.Sprintf("the API server refused the operator's last request, and %v", missing)
	}
	return fmt.Sprintf("the operator sends nothing any more, and %v", missing)
}

// Served returns the MyWeb when its newest generation is served: by its status, or, when the program reports none,
// when the children match the spec and the operator is in steady state.
func (t *T) Served(name, what string, within time.Duration) (web *Web) {
	if t.Operator.reports {
		return t.Await(name, what, within, (*Web).Is)
	}
	for range 2 { // once more in steady state: an object that the operator will still change may look served
		t.Reaction("the children of MyWeb "+name+" are as its spec wants them", within, func() (err error) {
			if web, err = t.Get(name); err != nil {
				return err
			}
			c, err := t.children(name)
			if err != nil {
				return err
			}
			return c.Follow(web.Spec)
		})
		t.Eventually("the pods of MyWeb "+name+" run", within, func() error {
			d, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Get(t.Ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			return RolledOut(d)
		})
		t.quietSince(t.awaited, steady)
	}
	return web
}

// limit shortens a wait for an event that may never come, unless the program is known to cause it.
func (t *T) limit(within time.Duration, has bool) time.Duration {
	if has {
		return within
	}
	return min(within, 2*t.Operator.patience)
}
