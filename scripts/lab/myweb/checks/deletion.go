package checks

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// withoutCreates is how long nothing may be created for MyWebs that are being deleted, unless it is certain earlier that
// nothing is.
const withoutCreates = 1500 * time.Millisecond

func leavesNothing(t *suite.T) {
	ways := map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground, "foreground": metav1.DeletePropagationForeground}
	for name := range ways {
		t.Create(name, suite.Sample())
	}
	for name, how := range ways {
		if web := t.Completed(name); len(web.Finalizers) > 0 {
			t.Errorf("the MyWeb has finalizers %v, want none: the garbage collector does all there is to do", web.Finalizers)
		}
		t.AwaitQuiet(quiet)
		t.Remove(suite.Resource, name, how)
		if _, err := t.Get(name); how == metav1.DeletePropagationBackground && !apierrors.IsNotFound(err) {
			t.Errorf("the MyWeb was deleted and is still there: error %v", err)
		}
	}
	t.Pause(fixture.DeletionObserved)
	mark := t.Mark()
	t.Pause(quiet)
	wantNoCreates(t, mark)
	for range 2 { // and they do not come back
		for name := range ways {
			t.Gone(name)
		}
		t.Eventually("MyWebs and pods are gone", 0, func() error {
			left, err := t.Objects(suite.Resource).List(t.Ctx, metav1.ListOptions{})
			if pods := pods(t, ""); err == nil && len(left.Items)+len(pods) > 0 {
				err = fmt.Errorf("%d MyWebs and %d pods are left", len(left.Items), len(pods))
			}
			return err
		})
		t.Pause(quiet)
	}
	wantNoCreates(t, mark)
}

// wantNoCreates ends the check when the operator has created children since a mark. All MyWebs are being deleted.
func wantNoCreates(t *suite.T, mark int) {
	creates := slices.DeleteFunc(suite.About(t.Writes(mark), suite.Kinds...),
		func(e ledger.Entry) bool { return !e.Creates() })
	if len(creates) > 0 {
		t.Unexpected(creates, "expected no creates for MyWebs that have a deletion timestamp; but the operator sent %s",
			suite.Count(len(creates), "create"))
		runtime.Goexit()
	}
}

// noCreate deletes MyWebs in each way. A finalizer keeps each of them, as finalizers of other programs do, and its
// ConfigMap is deleted meanwhile. An operator that ignores the deletion timestamp recreates the ConfigMap, against
// the garbage collector.
func noCreate(t *suite.T) {
	for name := range fixture.Propagations {
		t.Create(name, replicas(0)) // the pods do not matter
	}
	t.Settled(slices.Collect(maps.Keys(fixture.Propagations))...)
	var releases []func(context.Context) error
	for name, how := range fixture.Propagations {
		release, err := fixture.Hold(t.Ctx, t.Objects(suite.Resource), name)
		t.Cleanup(func(ctx context.Context) { _ = release(ctx) })
		t.Must(err, "hold MyWeb "+name)
		t.Remove(suite.Resource, name, how)
		releases = append(releases, release)
	}
	t.Observed(suite.Resource, fixture.DeletionObserved)
	mark := t.Mark()
	t.ActOn(suite.ConfigMaps, "a user deleted MyWebs, whose finalizers keep them, and then their ConfigMaps")
	for name := range fixture.Propagations {
		err := t.Objects(suite.ConfigMaps).Delete(t.Ctx, name, metav1.DeleteOptions{})
		if !apierrors.IsNotFound(err) { // in the foreground, the garbage collector is faster
			t.Must(err, "delete ConfigMap "+name)
		}
	}
	t.Handled(withoutCreates)
	wantNoCreates(t, mark)
	t.ActOn(suite.Resource, "a user removed the finalizers of the deleted MyWebs")
	for _, release := range releases {
		t.Must(release(t.Ctx), "take the finalizer away")
	}
	t.Gone("background")
	t.Gone("foreground")
	for name := range fixture.Propagations { // a finalizer of the operator may keep it
		t.AwaitGone(suite.Resource, name, 0)
	}
	wantNoErrors(t)
}

// isGone matches an error of an operator that does not find a MyWeb.
var isGone = regexp.MustCompile(`(?i)myweb\S* \\*"([a-z]+)\\*" not found`)

// wantNoErrors fails the check when the operator logs again and again that a deleted MyWeb is not found. The first times
// may be requests that the deletion overtook.
func wantNoErrors(t *suite.T) {
	const overtaken = 3
	times := map[string]int{}
	for line := range strings.Lines(t.Operator.Process().Output()) {
		found := isGone.FindStringSubmatch(line)
		if found == nil || !strings.Contains(line, t.Namespace) {
			continue
		}
		if times[found[1]]++; times[found[1]] > overtaken {
			t.Fatalf("expected no error; but the deletion was taken for an error: %s", strings.TrimSpace(line))
		}
	}
}

// newChildren waits until a recreated MyWeb is served, and fails the check when a child is that of the deleted MyWeb.
func newChildren(t *suite.T, before *suite.Children, made *suite.Web) *suite.Children {
	web := t.Served("web", "is completed", 30*time.Second)
	if web.UID != made.UID {
		t.Fatalf("the MyWeb has UID %s, want %s", web.UID, made.UID)
	}
	after := t.Children(web)
	for kind, o := range after.Objects() {
		if o.GetUID() == before.Objects()[kind].GetUID() {
			t.Errorf("the %s is that of the deleted MyWeb", kind)
		}
	}
	return after
}

func recreated(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	t.Remove(suite.Resource, "web")
	made := t.Create("web", page("<h1>Again</h1>"))
	after := newChildren(t, before, made)
	t.Must(after.Follow(made.Spec), "compare the children with the spec")
	t.AwaitQuiet(quiet)
	t.SameChildren(after, t.Children(t.Completed("web"))) // the garbage collector deleted none of them
}

// leftovers recreates a MyWeb while the children of the old MyWeb still exist.
func leftovers(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	resume := t.Stop(fixture.ControllerManager)
	t.Remove(suite.Resource, "web")
	mark := t.Mark()
	made := t.Create("web", suite.Sample())
	t.Pause(700 * time.Millisecond)
	if writes := accepted(suite.About(t.Writes(mark), suite.Kinds...)); len(writes) > 0 {
		t.Unexpected(writes, "expected no writes of children of the deleted MyWeb; but the operator sent %s", suite.Count(len(writes), "write"))
	}
	if now := t.Web("web"); now.Status.Completed {
		t.Errorf("served by children of the deleted MyWeb? Its status is %v", now.Status)
	}
	resume()
	newChildren(t, before, made)
}
