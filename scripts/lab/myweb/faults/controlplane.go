package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// controlPlaneChecks are the checks of the control plane.
var controlPlaneChecks = []suite.Check{
	{ID: "fault/13-apiserver-away-5s", Alone: true, Within: 3 * time.Minute,
		Run:   apiServerAway(5 * time.Second),
		Title: "a kube-apiserver that is killed and back after 5 s is found again; the children are as before"},
	{ID: "fault/13-apiserver-away-60s", Alone: true, Within: 5 * time.Minute,
		Run:   apiServerAway(time.Minute),
		Title: "a kube-apiserver that is killed and back after 60 s is found again; the children are as before"},
	{ID: "fault/14-etcd-hangs", Alone: true, Run: etcdHangs,
		Title: "while etcd hangs for 5 s nothing is shown as failed; the write is done after it"},
	{ID: "fault/14-etcd-killed", Alone: true, Run: etcdKilled,
		Title: "writes that etcd's end refuses are tried again when it is back; the children are as before"},
	{ID: "fault/15-crd-missing", Alone: true, Run: crdMissing,
		Title: "without the CRD the operator ends with a message about it, or waits for it; no trace, no hot loop"},
	{ID: "fault/15-crd-removed", Alone: true, Within: 3 * time.Minute, Run: crdRemoved,
		Title: "a CRD that is removed under the operator and restored is served again"},
}

// reconnected is how long an operator may take to reconnect when the control plane is back: client-go's backoff grows
// to 30 s, and its jitter can double that.
const reconnected = 90 * time.Second

// nodeLease is how long the lease of a killed kubelet lasts: a new kubelet waits for its end.
const nodeLease = 40 * time.Second

// repair starts the components that are gone. It also restarts the controllers, because their backoff has grown, too.
func repair(t *suite.T, away time.Duration) {
	components := []string{fixture.ControllerManager, fixture.Scheduler}
	if away > nodeLease {
		components = append(components, fixture.Kubelets)
	}
	for _, component := range components {
		_ = t.Fixture.Signal(component, syscall.SIGKILL) // it may have ended by itself
	}
	t.Pause(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	t.Must(t.Fixture.Repair(ctx), "start the control plane again")
}

// repaired repairs the fixture for the next check, however this check ends.
func repaired(t *suite.T) {
	renew(t)
	t.Cleanup(func(context.Context) {
		_ = t.Fixture.Signal(fixture.Etcd, syscall.SIGCONT) // usually it is running
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := t.Fixture.Repair(ctx); err != nil {
			t.Errorf("repair the control plane: %v", err)
		}
	})
}

func apiServerAway(d time.Duration) func(*suite.T) {
	return func(t *suite.T) {
		repaired(t)
		before := t.Children(t.Serve("web", suite.Sample()))
		mark := t.Mark()
		t.Must(t.Fixture.Signal(fixture.APIServer, syscall.SIGKILL), "kill kube-apiserver")
		t.Pause(d)
		wantAlive(t)
		mine := t.Operator.Requests()
		mine.After = mark
		if n, most := t.Fixture.Ledger.Count(mine), 20+int(d.Seconds())*10; n > most {
			t.Errorf("%d requests in %v without an API server, more than %d", n, d, most)
		}
		repair(t, d)
		t.SetPage("web", "<h1>after it</h1>")
		t.Create("second", suite.Sample())
		t.Served("web", "is completed", reconnected)
		t.Served("second", "is completed", reconnected)
		_, after := converged(t, "web")
		t.SameChildren(before, after)
		wantMade(t, mark, 1, suite.Kinds...) // those of the second MyWeb
		wantAlive(t)
		wantNoPanic(t, true)
	}
}

// midWrite holds the operator's write of a changed page, and releases it while the control plane is disturbed.
func midWrite(t *suite.T, disturb func()) (before *suite.Children, mark int) {
	before = t.Children(t.Serve("web", suite.Sample()))
	mark = t.Mark()
	held := hold(t, suite.Kinds...)
	t.SetPage("web", "<h1>changed</h1>")
	t.AwaitFault(held, 1, patience)
	disturb()
	held.Release()
	t.Pause(5 * time.Second)
	wantAlive(t)
	if n := len(t.Writes(mark)); n > mostTries {
		t.Errorf("%d writes in 5 s without etcd: %s", n, suite.Lines(t.Writes(mark)))
	}
	return before, mark
}

// unharmed expects that the same children serve the changed page, and that no status showed a failure.
func unharmed(t *suite.T, before *suite.Children, mark int) {
	t.Served("web", "is completed", reconnected)
	_, after := converged(t, "web")
	t.SameChildren(before, after)
	wantMade(t, mark, 0, suite.Kinds...)
	t.Warned("web", 0, 0)
	wantAlive(t)
	wantNoPanic(t, true)
}

func etcdHangs(t *suite.T) {
	repaired(t)
	before, mark := midWrite(t, func() { t.Must(t.Fixture.Signal(fixture.Etcd, syscall.SIGSTOP), "stop etcd") })
	t.Must(t.Fixture.Signal(fixture.Etcd, syscall.SIGCONT), "let etcd go on")
	unharmed(t, before, mark)
}

func etcdKilled(t *suite.T) {
	repaired(t)
	before, mark := midWrite(t, func() { t.Must(t.Fixture.Signal(fixture.Etcd, syscall.SIGKILL), "kill etcd") })
	repair(t, 5*time.Second)
	unharmed(t, before, mark)
}

const crdName = suite.Resource

func crds(t *suite.T) dynamic.ResourceInterface {
	return t.Fixture.Dynamic.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// removeCRD deletes the CRD with all MyWebs, and returns a function that restores it; the end of the check restores
// it at the latest.
func removeCRD(t *suite.T) (restore func()) {
	crd, err := crds(t).Get(t.Context(), crdName, metav1.GetOptions{})
	t.Must(err, "read the CRD")
	renewed := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": crd.GetAPIVersion(), "kind": crd.GetKind(), "spec": crd.Object["spec"]}}
	renewed.SetName(crd.GetName())
	renewed.SetAnnotations(crd.GetAnnotations())
	put := func(ctx context.Context) error {
		_, err := crds(t).Create(ctx, renewed, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	t.Cleanup(func(ctx context.Context) {
		// A CRD that is still being deleted must not count as present.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		for crdLeft(ctx, t) != nil && ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
		}
		if err := put(ctx); err != nil {
			t.Errorf("put the CRD back: %v", err)
		}
	})
	t.Must(crds(t).Delete(t.Context(), crdName, metav1.DeleteOptions{}), "delete the CRD")
	t.Eventually("the CRD is gone", time.Minute, func() error { return crdLeft(t.Context(), t) })
	return func() {
		t.Must(put(t.Context()), "put the CRD back")
		t.Eventually("the API server knows MyWebs again", 30*time.Second, func() error {
			_, err := t.Fixture.Dynamic.Resource(myweb.MyWebs).List(t.Context(), metav1.ListOptions{})
			return err
		})
	}
}

// crdLeft returns an error while a CRD that is being deleted exists. It removes the finalizers of MyWebs that are
// being deleted, also of earlier checks: when no operator is left to remove them, they would block the CRD forever.
func crdLeft(ctx context.Context, t *suite.T) error {
	crd, err := crds(t).Get(ctx, crdName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && crd.GetDeletionTimestamp() == nil {
		return nil
	}
	webs, listErr := t.Fixture.Dynamic.Resource(myweb.MyWebs).List(ctx, metav1.ListOptions{})
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for _, web := range webs.Items {
		if len(web.GetFinalizers()) == 0 {
			continue
		}
		_, patchErr := t.Fixture.Dynamic.Resource(myweb.MyWebs).Namespace(web.GetNamespace()).Patch(ctx, web.GetName(),
			types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		err = errors.Join(err, patchErr)
	}
	return errors.Join(err, fmt.Errorf("it is there, with %d MyWebs", len(webs.Items)))
}

// wantGoodEnd fails when a process that ended by itself did not print the reason.
func wantGoodEnd(t *suite.T, p *fixture.Process) {
	exit, words := p.Exit(), p.Output()
	if exit.Signal != 0 || exit.Code == 0 {
		t.Errorf("without the CRD the operator %v; wanted is a code that is not 0", exit)
	}
	if strings.Contains(words, "panic:") || strings.Contains(words, "goroutine 1 [") {
		t.Errorf("without the CRD the operator ends with a trace")
	}
	if !strings.Contains(strings.ToLower(words), "myweb") && !strings.Contains(strings.ToLower(words), "crd") {
		t.Errorf("the operator ended, and its last words name neither the CRD nor MyWebs: %s", cut(words))
	}
}

func crdMissing(t *suite.T) {
	renew(t)
	t.Operator.Kill()
	restore := removeCRD(t)
	mark := t.Mark()
	p, err := t.Operator.Launch()
	t.Must(err, "start the operator")
	select {
	case <-p.Ended():
		wantGoodEnd(t, p)
		restore()
		t.Must(t.Operator.Start(t.Context()), "start the operator again, with the CRD")
	case <-time.After(8 * time.Second):
		mine := ledger.Match{Users: []string{t.Operator.User.Name}, After: mark}
		if n := t.Fixture.Ledger.Count(mine); n > 200 || n == 0 {
			t.Errorf("%d requests in 8 s without the CRD: a few are due, not a loop", n)
		}
		wantNoPanic(t, true)
		restore()
	}
	t.Create("web", suite.Sample())
	awaitService(t, "web")
}

// awaitService returns when a MyWeb is served. It restarts an operator that ends with a message because the CRD is
// missing, as Kubernetes does.
func awaitService(t *suite.T, name string) {
	started := 0
	t.Await(name, "is completed", reconnected, func(w *suite.Web) bool {
		if !t.Operator.Running() && started < 5 {
			started++
			wantGoodEnd(t, t.Operator.Process())
			t.Pause(time.Second)
			_, err := t.Operator.Launch()
			t.Must(err, "start the operator again")
		}
		return w.Is()
	})
	converged(t, name)
}

func crdRemoved(t *suite.T) {
	renew(t)
	t.Serve("old", suite.Sample())
	restore := removeCRD(t)
	t.Gone("old")
	mark := t.Mark()
	t.Pause(2 * time.Second)
	mine := t.Operator.Requests()
	mine.After = mark
	if n := t.Fixture.Ledger.Count(mine); n > 60 {
		t.Errorf("%d requests in 2 s without the CRD", n)
	}
	restore()
	t.Create("web", suite.Sample())
	awaitService(t, "web")
	wantNoPanic(t, true)
}
