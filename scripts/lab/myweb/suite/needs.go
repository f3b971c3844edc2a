package suite

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/wire"
)

// A Need is what a program must have for a check to be about it. A check whose need is missing is skipped.
type Need string

// Needs of checks.
const (
	// Status is that the program reports completed with observedGeneration. behaviour/01-status fails without it.
	Status Need = "status"
	// LeaderElection is a flag --leader-elect.
	LeaderElection Need = "leader election"
)

// missing says which of the needs the program has not; nothing when it has all.
func (o *Operator) missing(needs []Need) string {
	switch {
	case slices.Contains(needs, LeaderElection) && !o.Impl.Has("leader-elect"):
		return "the program has no --leader-elect"
	case slices.Contains(needs, Status) && o.surveyed && !o.reports:
		return "it needs status, and " + o.finding + ": see behaviour/01-status"
	}
	return ""
}

// AssumeAll has every check judged by status and owner references, without a look whether the program writes them.
func (o *Operator) AssumeAll() { o.surveyed, o.reports, o.owns = true, true, true }

// AssumeNone has every check judged by the objects alone, without a look whether the program writes status or owner
// references. It is for programs of which nobody has asked that yet.
func (o *Operator) AssumeNone() {
	o.surveyed, o.finding = true, "the program is judged without its status"
}

// Reports is whether the program reports status. Where it does not, the objects themselves are judged.
func (t *T) Reports() bool { return t.Operator.reports }

// WantStatus ends the check when the program does not report status.
func (t *T) WantStatus() {
	if !t.Operator.reports {
		t.Fatalf("%s: the checks that need it are skipped, the others judge the objects", t.Operator.finding)
	}
}

// How long a program without status may send nothing before the lab takes it that nothing comes any more. Several
// checks at once may have to wait for the rate limiter of the program's client.
const (
	idleAlone    = 3 * time.Second
	idleTogether = 5 * time.Second
	// idleReporting is for a program that does write status, and could yet report completed.
	idleReporting = 10 * time.Second
)

// survey makes a MyWeb and finds out once what the program writes, so that no check waits for what never comes.
func (t *T) survey() {
	o := t.Operator
	t.Create("web", Sample())
	for begin := time.Now(); ; t.sleep(poll) {
		web, err := t.Get("web")
		t.Must(err, "read MyWeb web")
		attempts := t.Fixture.Ledger.Count(t.statusWrites())
		idle := 2 * o.patience
		if attempts > 0 || len(t.Requests(0)) == 0 { // a program that has sent nothing yet may be slow to start
			idle = idleReporting
		}
		switch {
		case web.Is() || !o.Running() || t.ctx.Err() != nil:
			o.AssumeAll()
			return
		case t.idle(begin) < idle || t.rollsOut("web"):
			continue
		}
		o.surveyed, o.owns = true, t.ownsChildren(web)
		o.finding = "the program does not write status"
		if attempts > 0 {
			o.finding = fmt.Sprintf("the program writes a status in which a MyWeb that is served is not completed for its "+
				"observedGeneration: %v", web.Status)
		}
		return
	}
}

// statusWrites are the operator's attempts to write a status in the namespace.
func (t *T) statusWrites() ledger.Match {
	m := t.mine(0, wire.Writes...)
	m.Resources = []string{Resource + "/status"}
	return m
}

// idle is for how long the operator has sent nothing about the namespace, since a moment. One whose last request
// failed may be in its backoff: half of the time counts. One that works in other namespaces meanwhile may handle one
// MyWeb after the other: a quarter counts.
func (t *T) idle(since time.Time) time.Duration {
	counts := time.Duration(1)
	for _, e := range t.Requests(0) {
		if e.Open && e.Verb != "watch" {
			return 0
		}
		if end := e.Start.Add(e.Took); end.After(since) {
			since, counts = end, 1
			if !e.Accepted() {
				counts = 2
			}
		}
	}
	if t.worksElsewhere() {
		counts *= 4
	}
	return time.Since(since) / counts
}

// worksElsewhere reports whether the operator has asked for something in another namespace in the last
// seconds.
func (t *T) worksElsewhere() bool {
	m := t.mine(0)
	m.Namespace = ""
	all := t.Fixture.Ledger.Entries(m)
	return len(all) > 0 && all[len(all)-1].Namespace != t.Namespace && time.Since(all[len(all)-1].Start) < 3*time.Second
}

// rollsOut reports whether there is a Deployment whose pods are not there yet.
func (t *T) rollsOut(name string) bool {
	d, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Get(t.ctx, name, metav1.GetOptions{})
	return err == nil && rolledOut(d) != nil
}

// ownsChildren reports whether every child that there is has the MyWeb as its controller.
func (t *T) ownsChildren(web *Web) bool {
	c, _ := t.children(web.Name) // those that are missing have no owner
	for _, o := range c.existing() {
		if !metav1.IsControlledBy(o, web) {
			return false
		}
	}
	return true
}

// Reaction is Eventually for what the operator has to do. A program without status is given up when it has sent
// nothing for a while: nothing will come.
func (t *T) Reaction(what string, within time.Duration, observe func() error) {
	if t.Operator.reports {
		t.Eventually(what, within, observe)
		return
	}
	begin, looks, last := time.Now(), 0, time.Duration(0)
	t.Eventually(what, within, func() error {
		err := observe()
		idle := t.idle(begin)
		if looks++; idle < last {
			looks = 0
		}
		// On a loaded machine each look takes longer, and so does all that the program does.
		if last = idle; err != nil && idle > t.Operator.patience && looks > int(t.Operator.patience/(2*poll)) {
			t.Fatalf("%s: the operator sends nothing any more, and %v", what, err)
		}
		return err
	})
}

// Served returns the MyWeb when its newest generation is served: by its status, or, where the program reports none,
// by its children, when they are as the spec wants them, and the operator has come to rest.
func (t *T) Served(name, what string, within time.Duration) (web *Web) {
	if t.Operator.reports {
		return t.Await(name, what, within, (*Web).Is)
	}
	for range 2 { // once more in steady state: an object that is to be changed next may look served
		t.Reaction("the children of MyWeb "+name+" are as its spec wants them", within, func() (err error) {
			if web, err = t.Get(name); err != nil {
				return err
			}
			c, err := t.children(name)
			if err != nil {
				return err
			}
			return c.follow(web.Spec)
		})
		t.Eventually("the pods of MyWeb "+name+" run", within, func() error {
			c, err := t.children(name)
			if err != nil {
				return err
			}
			return rolledOut(c.Deployment)
		})
		t.AwaitQuiet(300 * time.Millisecond)
	}
	return web
}

// limit shortens a wait for what may never come, unless the program is known to have what brings it about.
func (t *T) limit(within time.Duration, has bool) time.Duration {
	if has {
		return within
	}
	return min(within, 2*t.Operator.patience)
}
