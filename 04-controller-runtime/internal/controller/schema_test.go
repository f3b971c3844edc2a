package controller_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

// The operator need not handle a spec that it cannot serve: the API server refuses the spec by the CRD, and its message
// names the allowed values.
func TestABadSpecNeverReachesTheOperator(t *testing.T) {
	b := newFixture(t)
	for name, test := range mywebtest.BadSpecs() {
		web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: "bad"},
			Spec: webv1.MyWebSpec{Image: "nginx"}}
		test.Change(web)
		err := b.Create(t.Context(), web)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.Field+": ") ||
			!strings.Contains(err.Error(), test.Says) {
			t.Errorf("%s: got %v, want %s and %q", name, err, test.Field, test.Says)
		}
	}
}
