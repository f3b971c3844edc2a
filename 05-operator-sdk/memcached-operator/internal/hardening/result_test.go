package hardening

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/example/memcached-operator/internal/conditions"
)

var services = schema.GroupResource{Resource: "services"}

func terminating() error {
	err := apierrors.NewForbidden(services, "site", errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

func invalid(path string) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "site",
		field.ErrorList{field.Invalid(field.NewPath(path), 0, "must be")})
}

func TestWhatARefusalMeans(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		rejected bool
	}{
		"an invalid field":         {invalid("spec"), true},
		"a quota, a policy":        {apierrors.NewForbidden(services, "site", errors.New("exceeded quota: none")), true},
		"a webhook refuses":        {apierrors.NewBadRequest("admission webhook denied the request"), true},
		"too large":                {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"another object":           {invalid("metadata.uid"), false},
		"a conflict":               {apierrors.NewConflict(services, "site", errors.New("uid mismatch")), false},
		"it was created meanwhile": {apierrors.NewAlreadyExists(services, "site"), false},
		"too many requests":        {apierrors.NewTooManyRequests("slow down", 1), false},
		"a server that is busy":    {apierrors.NewServiceUnavailable("starting"), false},
		"an internal error":        {apierrors.NewInternalError(errors.New("etcd")), false},
		"no answer in time":        {apierrors.NewServerTimeout(services, "patch", 1), false},
		"a gateway's timeout": {
			apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", services, "site", "", 0, true), false},
		"an expired certificate": {apierrors.NewUnauthorized("expired"), false},
		"the namespace ends":     {terminating(), false},
		"the network":            {errors.New("connection reset by peer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			problem := conditions.AsError(Rejected(fmt.Errorf("apply: %w", test.err)))
			if (problem != nil) != test.rejected || test.rejected &&
				(problem.Reason != conditions.ReasonChildRejected || !problem.Retry) {
				t.Errorf("got %+v, want a rejected child: %v", problem, test.rejected)
			}
		})
	}
	if err := Rejected(invalid("metadata.uid")); !apierrors.IsConflict(err) {
		t.Errorf("another object of that name is %v, want a conflict", err)
	}
}

func TestTheFourWaysToEndAReconcile(t *testing.T) {
	req := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "site"}}
	failed := errors.New("connection refused")
	retry := &conditions.ConditionError{Reason: "x", Retry: true}
	for name, test := range map[string]struct {
		requeueAfter time.Duration
		err          error
		result       ctrl.Result
		fails        bool
	}{
		"nothing is wrong":      {0, nil, ctrl.Result{}, false},
		"something has to wait": {time.Second, nil, ctrl.Result{RequeueAfter: time.Second}, false},
		"the cache is behind": {
			0, fmt.Errorf("x: %w", RequeueAfter(time.Minute)), ctrl.Result{RequeueAfter: time.Minute}, false},
		"a condition without a watch": {0, retry, ctrl.Result{RequeueAfter: firstRetry}, false},
		"that, and something waits":   {time.Millisecond, retry, ctrl.Result{RequeueAfter: time.Millisecond}, false},
		"a condition with a watch":    {0, conditions.Errorf("x", "x"), ctrl.Result{}, false},
		"that, and something has time": {
			time.Second, conditions.Errorf("x", "x"), ctrl.Result{RequeueAfter: time.Second}, false},
		"a conflict": {0, apierrors.NewConflict(services, "site", failed),
			ctrl.Result{RequeueAfter: firstRetry}, false},
		"the namespace ends":      {0, terminating(), ctrl.Result{}, false},
		"the API server failed":   {0, failed, ctrl.Result{}, true},
		"a fault of the operator": {0, reconcile.TerminalError(failed), ctrl.Result{}, true},
		"a failure, and a delay":  {time.Second, failed, ctrl.Result{}, true}, // controller-runtime would ignore the delay
	} {
		t.Run(name, func(t *testing.T) {
			result, err := Result(NewBackoff(), req, test.requeueAfter, test.err)
			if result != test.result || (err != nil) != test.fails || test.fails && !errors.Is(err, failed) {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
	backoff := NewBackoff()
	for i, want := range []time.Duration{firstRetry, 2 * firstRetry, 4 * firstRetry} {
		if result, _ := Result(backoff, req, 0, retry); result.RequeueAfter != want {
			t.Errorf("retry %d is after %s, want %s", i+1, result.RequeueAfter, want)
		}
	}
	if _, err := Result(backoff, req, 0, nil); err != nil {
		t.Error(err)
	}
	if result, _ := Result(backoff, req, 0, retry); result.RequeueAfter != firstRetry {
		t.Errorf("after a success the first retry is after %s", result.RequeueAfter)
	}
}

func TestSooner(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 0, 0}, {0, 2, 2}, {2, 0, 2}, {1, 2, 1}, {2, 1, 1}} {
		if got := Sooner(test[0], test[1]); got != test[2] {
			t.Errorf("of %d and %d got %d", test[0], test[1], got)
		}
	}
}

func TestAReconcileInFlightFinishes(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	reconciles := 0
	r := FinishInFlight(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		reconciles++
		stop() // the manager stops meanwhile
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it may take forever")
		}
		return ctrl.Result{}, ctx.Err()
	}))
	for range 2 { // what is queued is dropped
		if _, err := r.Reconcile(ctx, ctrl.Request{}); err != nil {
			t.Error(err)
		}
	}
	if reconciles != 1 {
		t.Errorf("%d reconciles ran, want 1", reconciles)
	}
}

func TestAHungWatchHoldsAWorkerForASecondOnly(t *testing.T) {
	hung := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			if end, bound := ctx.Deadline(); !bound || time.Until(end) > readTimeout {
				t.Errorf("it may wait until %s", end)
			}
			<-ctx.Done() // as a client does that waits until the cache has its own write
			return ctx.Err()
		},
	})
	c := Client{Client: hung}
	err := c.Get(t.Context(), client.ObjectKey{}, &corev1.Service{})
	if wait, _ := errors.AsType[RequeueAfter](err); time.Duration(wait) != staleRetry {
		t.Errorf("got %v, want to reconcile again after %s", err, staleRetry)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the program stops
	if err := c.Get(ctx, client.ObjectKey{}, &corev1.Service{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
