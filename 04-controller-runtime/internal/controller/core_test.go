package controller_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/operator-workshop/04-controller-runtime/internal/controller"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

// The core without hardening is an operator that a user may run: it reports a problem once, in the status and as an event,
// and a watch starts the next reconcile. It neither logs an error nor tries again.
func TestTheCoreAloneReportsAProblemAndWaitsForAWatch(t *testing.T) {
	l := newLoop(t)
	var logged, reconciled atomic.Int32
	l.log = funcr.New(func(_, line string) {
		if strings.Contains(line, `"error"=`) {
			logged.Add(1)
			t.Log(line)
		}
	}, funcr.Options{})
	unmanaged := mywebtest.Unmanaged("ConfigMap", l.here, "site")
	l.Expect(l.admin.Create(t.Context(), unmanaged)).To(gomega.Succeed())
	l.start(func(mgr ctrl.Manager) error {
		c := mgr.GetClient()
		core := reconcile.AsReconciler(c, &controller.Reconciler{Client: c,
			Applier: owned.ServerSideApply{Client: c, FieldOwner: myweb.FieldOwner},
			Events:  mgr.GetEventRecorder(myweb.FieldOwner), Now: time.Now})
		counted := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
			reconciled.Add(1)
			return core.Reconcile(ctx, req)
		})
		return controller.Builder(mgr).Complete(counted)
	})
	condition := func(kind string) func() string {
		return func() string {
			c := meta.FindStatusCondition(l.web("site").Status.Conditions, kind)
			if c == nil {
				return ""
			}
			return string(c.Status) + " " + c.Reason
		}
	}
	inSteadyState := func() {
		t.Helper()
		var last int32
		l.Eventually(func() bool { before := last; last = reconciled.Load(); return before == last }, "20s", "300ms").
			Should(gomega.BeTrue())
		l.Consistently(reconciled.Load).Should(gomega.Equal(last), "it tries again, though nothing has changed")
	}

	l.create("site")
	l.Eventually(condition(owned.Degraded)).Should(gomega.Equal("True ResourceConflict"))
	inSteadyState()
	l.Expect(l.writes("PATCH")).To(gomega.BeZero(), "an unmanaged object has the name of a child")

	l.Expect(l.admin.Delete(t.Context(), unmanaged)).To(gomega.Succeed())
	l.Eventually(condition(owned.Degraded)).Should(gomega.Equal("False AsExpected"))
	deployment := &appsv1.Deployment{}
	l.Eventually(func() error {
		return l.admin.Get(t.Context(), client.ObjectKey{Namespace: l.here, Name: "site"}, deployment)
	}).Should(gomega.Succeed())
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation,
		Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	l.Expect(l.admin.Status().Update(t.Context(), deployment)).To(gomega.Succeed())
	l.Eventually(condition(owned.Progressing)).Should(gomega.Equal("False " + owned.ReasonComplete))
	inSteadyState()
	before, web := l.writes(), l.web("site")
	web.Labels = map[string]string{"a": "b"}
	l.Expect(l.admin.Update(t.Context(), web)).To(gomega.Succeed())
	inSteadyState()
	l.Expect(l.writes()).To(gomega.Equal(before), "no field that it desires has changed")
	l.Expect(logged.Load()).To(gomega.BeZero(), "errors in the log")
}
