package controller

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// What cannot be served need not be handled: the API server refuses it by the CRD, and says what is
// allowed.
func TestABadSpecNeverReachesTheOperator(t *testing.T) {
	b := newBench(t)
	for name, test := range map[string]struct {
		change func(*webv1.MyWeb)
		field  string
		says   string
	}{
		"no image":            {func(w *webv1.MyWeb) { w.Spec.Image = "" }, "spec.image", "at least 1 char"},
		"a blank in an image": {func(w *webv1.MyWeb) { w.Spec.Image = "ng inx" }, "spec.image", "must be an image reference"},
		"a port too low":      {func(w *webv1.MyWeb) { w.Spec.NodePortNumber = new(int32(29999)) }, "spec.nodePortNumber", "greater than or equal to 30000"},
		"a port too high":     {func(w *webv1.MyWeb) { w.Spec.NodePortNumber = new(int32(32768)) }, "spec.nodePortNumber", "less than or equal to 32767"},
		"eleven pods":         {func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(11)) }, "spec.replicas", "less than or equal to 10"},
		"less than no pod":    {func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(-1)) }, "spec.replicas", "greater than or equal to 0"},
		"too long a page":     {func(w *webv1.MyWeb) { w.Spec.PageContentHTML = new(strings.Repeat("x", 262145)) }, "spec.pageContentHtml", "262144"},
		"a name of no label":  {func(w *webv1.MyWeb) { w.Name = "1st" }, "metadata", "start with a letter"},
	} {
		web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: b.key.Namespace, Name: "bad"}, Spec: webv1.MyWebSpec{Image: "nginx"}}
		test.change(web)
		err := b.Create(t.Context(), web)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.field+": ") || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %s and %q", name, err, test.field, test.says)
		}
	}
}
