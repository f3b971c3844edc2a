package checks

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

func crds(t *suite.T) dynamic.ResourceInterface {
	return t.Fixture.Dynamic.Resource(suite.GVR("customresourcedefinitions.apiextensions.k8s.io"))
}

// removeCRD deletes the CRD with all MyWebs, and returns a function that restores it; the end of the check restores
// it at the latest.
func removeCRD(t *suite.T) (restore func()) {
	crd, err := crds(t).Get(t.Ctx, suite.Resource, metav1.GetOptions{})
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
		_ = fixture.Eventually(ctx, time.Minute, func() error { return crdLeft(ctx, t) })
		if err := put(ctx); err != nil {
			t.Errorf("put the CRD back: %v", err)
		}
	})
	t.Must(crds(t).Delete(t.Ctx, suite.Resource, metav1.DeleteOptions{}), "delete the CRD")
	t.Eventually("the CRD is gone", time.Minute, func() error { return crdLeft(t.Ctx, t) })
	return func() {
		t.Must(put(t.Ctx), "put the CRD back")
		t.Must(t.Fixture.AwaitServed(t.Ctx, suite.MyWebs), "wait for the API server")
	}
}

// crdLeft returns an error while a CRD that is being deleted exists. It removes the finalizers of MyWebs that are
// being deleted, also of earlier checks: when no operator is left to remove them, they would block the CRD forever.
func crdLeft(ctx context.Context, t *suite.T) error {
	crd, err := crds(t).Get(ctx, suite.Resource, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && crd.GetDeletionTimestamp() == nil {
		return nil
	}
	all := t.Fixture.Dynamic.Resource(suite.MyWebs)
	webs, listErr := all.List(ctx, metav1.ListOptions{})
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	for _, web := range webs.Items {
		_, patchErr := all.Namespace(web.GetNamespace()).Patch(ctx, web.GetName(), types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
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
		t.Errorf("the operator ended, and its last words name neither the CRD nor MyWebs: %.60s", words)
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
		t.Must(t.Operator.Start(t.Ctx), "start the operator again, with the CRD")
	case <-time.After(8 * time.Second):
		if n := requestsSince(t, mark); n > 200 || n == 0 {
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
	if n := requestsSince(t, mark); n > 60 {
		t.Errorf("%d requests in 2 s without the CRD", n)
	}
	restore()
	t.Create("web", suite.Sample())
	awaitService(t, "web")
	wantNoPanic(t, true)
}
