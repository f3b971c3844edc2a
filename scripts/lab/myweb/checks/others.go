package checks

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// portAdded adds a port to the Service, as a user who wants metrics does, and edits the operator's own port: first
// its number, which is its key in the API server, then its target.
func portAdded(t *suite.T) {
	before := t.Children(t.Serve("web", asking(t.NodePort())))
	ours, mark := before.Service.Spec.Ports[0], t.Mark()
	if ours.Name == "" {
		t.Set(suite.Services, "web", "/spec/ports/0/name", "http") // two ports need names
	}
	t.Set(suite.Services, "web", "/spec/ports/-", corev1.ServicePort{Name: "metrics", Port: 9113,
		TargetPort: intstr.FromInt32(9113), Protocol: corev1.ProtocolTCP})
	t.StaysQuiet(time.Second)
	now := func() []corev1.ServicePort { return t.Children(t.Web("web")).Service.Spec.Ports }
	theirs := now()[1]
	for path, value := range map[string]any{"port": 81, "targetPort": 8081, "nodePort": t.NodePort()} {
		t.Set(suite.Services, "web", "/spec/ports/0/"+path, value)
		t.Eventually("the edited "+path+" is restored beside the added port", patience, func() error {
			have := now()
			at := slices.IndexFunc(have, func(p corev1.ServicePort) bool { return p.Port == ours.Port })
			if at < 0 {
				return fmt.Errorf("no port is %d: %+v", ours.Port, have)
			}
			have[at].Name = ours.Name
			return suite.Differ(have[at], ours)
		})
		if have := now(); !slices.Contains(have, theirs) || len(have) != 2 {
			t.Fatalf("the added port %+v was changed: %+v", theirs, have)
		}
	}
	inPlace(t, before, mark, 0)
}

// stripped takes the owner references or the labels from all children.
func stripped(t *suite.T, field string) {
	web := t.Serve("web", suite.Sample())
	before, mark, was := t.Children(web), t.Mark(), map[string]any{}
	metadata := func(k string) any { return t.Read(k, "web").Object["metadata"].(map[string]any)[field] }
	for _, k := range suite.Kinds {
		was[k] = metadata(k)
		t.Edit(k, "web", `{"metadata":{"`+field+`":null}}`)
	}
	t.Eventually("the "+field+" are back", patience, func() error {
		for _, k := range suite.Kinds {
			if err := suite.Differ(metadata(k), was[k]); err != nil {
				return fmt.Errorf("%s of the %s: %w", field, suite.KindOf[k], err)
			}
		}
		return t.Controlled(web)
	})
	inPlace(t, before, mark, 0)
}

// secondWriter edits fields that the operator owns for ten seconds.
func secondWriter(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	fight(t, func(n int) {
		t.Edit(suite.ConfigMaps, "web", fmt.Sprintf(`{"data":{"index.html":"edit %d"}}`, n))
		if n == fights/2 {
			t.Create("other", suite.Sample())
		}
	})
	own := slices.DeleteFunc(suite.About(t.Writes(mark), suite.ConfigMaps), func(e ledger.Entry) bool {
		return e.Name == "other"
	})
	if len(own) > fights/2 {
		t.Errorf("%d writes against %d edits in %v: %s", len(own), fights, fights*100*time.Millisecond, suite.Lines(own))
	}
	t.Completed("other")
	t.Eventually("the page is restored when the other one has stopped", patience, func() error {
		return t.Children(t.Web("web")).Follow(suite.Sample())
	})
	_, after := converged(t, "web")
	t.SameChildren(before, after)
}

// sidecar is what an injector adds to a pod template.
var sidecar = corev1.Container{Name: "sidecar", Image: "example.com/proxy:1"}

// inject adds the sidecar to the pod template, as another program does.
func inject(t *suite.T) {
	t.Set(suite.Deployments, "web", "/spec/template/spec/containers/-",
		map[string]any{"name": sidecar.Name, "image": sidecar.Image})
}

// hasSidecar reports whether the sidecar is there as it was injected.
func hasSidecar(d *suite.Children) bool {
	return slices.ContainsFunc(d.Deployment.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Name == sidecar.Name && c.Image == sidecar.Image
	})
}

func othersStay(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	mark := t.Mark()
	const note = `{"metadata":{"labels":{"example.com/team":"a"},"annotations":{"example.com/note":"b"}}}`
	for _, k := range suite.Kinds {
		t.Edit(k, "web", note)
	}
	t.Edit(suite.Deployments, "web", `{"spec":{"template":`+note+`}}`)
	inject(t)
	t.Eventually("the Deployment rolls with what others added", 0, func() error {
		return suite.RolledOut(t.Children(web).Deployment)
	})
	t.Settled("web")
	stays(t, web, "in steady state")
	for _, k := range suite.Kinds {
		if writes := suite.About(t.Writes(mark), k); len(writes) > 0 {
			t.Unexpected(writes, "expected that what others added causes no write; but the operator wrote the %s", suite.KindOf[k])
		}
	}
	t.Patch("web", `{"spec":{"image":"nginx:1.29","pageContentHtml":"next","replicas":2}}`)
	web = t.Settled("web")
	stays(t, web, "after an update")
}

// stays fails the check when an addition by othersStay is gone.
func stays(t *suite.T, web *suite.Web, when string) {
	c := t.Children(web)
	all := map[string]metav1.Object{"pod template": &c.Deployment.Spec.Template}
	for name, o := range c.Objects() {
		all[name] = o
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		o := all[name]
		if o.GetLabels()["example.com/team"] != "a" || o.GetAnnotations()["example.com/note"] != "b" {
			t.Errorf("expected that what others added stays; but %s, label or annotation of others on the %s are gone: "+
				"labels %v, annotations %v", when, name, o.GetLabels(), o.GetAnnotations())
		}
	}
	if !hasSidecar(c) {
		t.Errorf("expected that what others added stays; but %s, the sidecar is gone: containers %s", when,
			suite.JSON(c.Deployment.Spec.Template.Spec.Containers))
	}
}
