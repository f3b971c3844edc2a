package owned

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWhatARefusalMeans(t *testing.T) {
	resource := schema.GroupResource{Resource: "services"}
	terminating := apierrors.NewForbidden(resource, "site", fmt.Errorf("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                       {nil, false},
		"an invalid field":           {apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, "site", field.ErrorList{field.Invalid(field.NewPath("spec"), 0, "must be")}), true},
		"a quota, a policy":          {apierrors.NewForbidden(resource, "site", fmt.Errorf("exceeded quota: none")), true},
		"a webhook says no":          {apierrors.NewBadRequest("admission webhook denied the request"), true},
		"too large":                  {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"a conflict":                 {apierrors.NewConflict(resource, "site", fmt.Errorf("uid mismatch")), false},
		"it came into being":         {apierrors.NewAlreadyExists(resource, "site"), false},
		"too many requests":          {apierrors.NewTooManyRequests("slow down", 1), false},
		"a server that is busy":      {apierrors.NewServiceUnavailable("starting"), false},
		"an internal error":          {apierrors.NewInternalError(fmt.Errorf("etcd")), false},
		"no answer in time":          {apierrors.NewServerTimeout(resource, "patch", 1), false},
		"a gateway's timeout":        {apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", resource, "site", "", 0, true), false},
		"a certificate that ran out": {apierrors.NewUnauthorized("expired"), false},
		"the namespace ends":         {terminating, false},
		"the network":                {fmt.Errorf("connection reset by peer"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refused(test.err); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReplacingTakesAwayWhatOthersAdded(t *testing.T) {
	type tree = map[string]any
	type list = []any
	for name, test := range map[string]struct{ want, have, patch any }{
		"a value":                {"a", "b", "a"},
		"a list":                 {list{"a"}, list{"a", "b"}, list{"a"}},
		"a field more":           {tree{"a": "1"}, tree{"a": "1", "b": "2"}, tree{"a": "1", "b": nil}},
		"a field missing":        {tree{"a": "1"}, tree{}, tree{"a": "1"}},
		"deep":                   {tree{"a": tree{"b": "1"}}, tree{"a": tree{"b": "2", "c": "3"}}, tree{"a": tree{"b": "1", "c": nil}}},
		"deep, nothing there":    {tree{"a": tree{"b": "1"}}, tree{}, tree{"a": tree{"b": "1"}}},
		"an object that is none": {tree{"a": "1"}, "x", tree{"a": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.patch, replacing(test.want, test.have)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheFourEndsOfAReconcile(t *testing.T) {
	k := keeper()
	req := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "site"}}
	failed := errors.New("connection refused")
	resource := schema.GroupResource{Resource: "services"}
	terminating := apierrors.NewForbidden(resource, "site", failed)
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		again  time.Duration
		err    error
		result ctrl.Result
		fails  bool
	}{
		"all is well":                  {0, nil, ctrl.Result{}, false},
		"to look again":                {time.Second, nil, ctrl.Result{RequeueAfter: time.Second}, false},
		"restoring has to wait":        {0, fmt.Errorf("x: %w", later(time.Minute)), ctrl.Result{RequeueAfter: time.Minute}, false},
		"told, and nobody watches":     {0, Obstacle{Unwatched: true}, ctrl.Result{RequeueAfter: FirstRetry}, false},
		"a conflict":                   {0, apierrors.NewConflict(resource, "site", failed), ctrl.Result{RequeueAfter: FirstRetry}, false},
		"the namespace ends":           {0, terminating, ctrl.Result{}, false},
		"a failure of the API server":  {0, failed, ctrl.Result{}, true},
		"a fault of the operator":      {0, ownFault(failed), ctrl.Result{}, true},
		"a failure, and a time to try": {time.Second, failed, ctrl.Result{}, true}, // controller-runtime would ignore the time, and say so
	} {
		t.Run(name, func(t *testing.T) {
			k.Forget(req)
			result, err := k.End(req, test.again, test.err)
			if result != test.result || (err != nil) != test.fails || test.fails && !errors.Is(err, failed) {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
	for i, want := range []time.Duration{FirstRetry, 2 * FirstRetry, 4 * FirstRetry} {
		if i == 0 {
			k.Forget(req)
		}
		if result, _ := k.End(req, 0, Obstacle{}); result.RequeueAfter != want {
			t.Errorf("pause %d is %s, want %s", i+1, result.RequeueAfter, want)
		}
	}
	if _, err := k.End(req, 0, nil); err != nil {
		t.Error(err)
	}
	if result, _ := k.End(req, 0, Obstacle{}); result.RequeueAfter != FirstRetry {
		t.Errorf("after it went well, the first pause is %s", result.RequeueAfter)
	}
}

func TestAReconcileUnderWayComesToItsEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	looks := 0
	r := Drained(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
		looks++
		stop() // the manager ends meanwhile
		if _, limited := ctx.Deadline(); !limited {
			t.Error("it may take for ever")
		}
		return ctrl.Result{}, ctx.Err()
	}))
	for range 2 { // what is queued is left
		if _, err := r.Reconcile(ctx, ctrl.Request{}); err != nil {
			t.Error(err)
		}
	}
	if looks != 1 {
		t.Errorf("%d reconciles ran, want 1", looks)
	}
}
