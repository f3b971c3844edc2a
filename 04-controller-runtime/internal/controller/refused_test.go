package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

func TestWhatARefusalMeans(t *testing.T) {
	for name, test := range mywebtest.Refusals() {
		t.Run(name, func(t *testing.T) {
			err := fmt.Errorf("apply Service default/site: %w", test.Err)
			r := New(nil, nil, nil)
			for range freeingTries { // a node port is not reported as taken before
				r.backoff.When(requestFor(&webv1.MyWeb{}))
			}
			got := r.refused(&webv1.MyWeb{}, &myweb.Child{Kind: "Service"}, err)
			if reported, ok := errors.AsType[*myweb.ConditionError](got); ok != (test.Reason != "") || ok &&
				(reported.Reason != test.Reason || !reported.Retry) {
				t.Errorf("got %#v, want %q", got, test.Reason)
			}
			if test.Reason == "" && !errors.Is(got, err) {
				t.Errorf("got %v, want the error itself", got)
			}
		})
	}
}

func TestAChildThatChangesBeforeItsElementsAreReplacedIsNotRejected(t *testing.T) {
	b := newFixture(t)
	b.reconcile()
	edit(b, &corev1.Service{}, func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 })
	once := sync.OnceFunc(func() {
		edit(b, &corev1.Service{}, func(s *corev1.Service) { s.Annotations["note"] = "somebody was faster" })
	})
	b.intercept(interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, obj client.Object,
		patch client.Patch, opts ...client.PatchOption) error {
		once()
		return c.Patch(ctx, obj, patch, opts...)
	}})
	if result, err := b.reconcileLater(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("Reconcile returned %+v, %v; want a time", result, err)
	}
	if c := b.condition(webv1.ConditionDegraded); c.Status != metav1.ConditionFalse {
		t.Errorf("Degraded is %+v", c)
	}
	b.reconcile()
	if s := get(b, &corev1.Service{}); len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 80 ||
		s.Annotations["note"] == "" {
		t.Errorf("the Service is %+v", s)
	}
}
