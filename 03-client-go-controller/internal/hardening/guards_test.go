package hardening

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

func TestWhatIsDrift(t *testing.T) {
	made := func(change func(*webv1.MyWeb)) *webv1.MyWeb {
		web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "u-1", Generation: 3},
			Spec: webv1.MyWebSpec{Image: "nginx"}}
		change(web)
		return web
	}
	reported := func(w *webv1.MyWeb) { w.Status.ObservedGeneration = w.Generation }
	for name, test := range map[string]struct {
		web      func(*webv1.MyWeb)
		existing bool
		applied  *webv1.MyWeb // what the existing child was made from
		want     bool
	}{
		"the first time":                    {func(*webv1.MyWeb) {}, false, nil, false},
		"a child that was there":            {reported, false, nil, true},
		"a new generation, a child missing": {func(w *webv1.MyWeb) { reported(w); w.Generation++ }, false, nil, false},
		"a child that was changed":          {reported, true, made(func(*webv1.MyWeb) {}), true},
		"a changed image":                   {reported, true, made(func(w *webv1.MyWeb) { w.Spec.Image = "old" }), false},
		"a new generation, the same child": {
			func(w *webv1.MyWeb) { reported(w); w.Generation++ }, true, made(func(*webv1.MyWeb) {}), true},
	} {
		t.Run(name, func(t *testing.T) {
			web := made(test.web)
			child := myweb.DesiredChildren(web)[1]
			if test.existing {
				child.Live.SetUID("d-1")
				child.Live.SetAnnotations(myweb.DesiredChildren(test.applied)[1].Meta.Annotations)
			}
			if got := isDrift(web, child); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
