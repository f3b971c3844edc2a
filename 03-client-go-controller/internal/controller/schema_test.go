package controller

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/test/mywebtest"
)

// What cannot be served need not be handled: the API server refuses it by the CRD, and says what is
// allowed.
func TestABadSpecNeverReachesTheController(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range mywebtest.BadSpecs() {
		web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: "site"}, Spec: webv1.MyWebSpec{Image: "nginx"}}
		test.Change(web)
		_, err := f.webs.Create(t.Context(), web, metav1.CreateOptions{})
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.Field+": ") ||
			!strings.Contains(err.Error(), test.Says) {
			t.Errorf("%s: got %v, want %s and %q", name, err, test.Field, test.Says)
		}
	}
}
