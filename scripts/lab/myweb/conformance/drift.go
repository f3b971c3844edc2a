package conformance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// driftCorrection are the checks of each kind of child and of each edit.
func driftCorrection() (checks []suite.Check) {
	for _, k := range suite.Kinds {
		checks = append(checks,
			suite.Check{ID: "behaviour/05-deleted-" + strings.ToLower(suite.KindOf[k]), Group: "5", Fast: k == suite.ConfigMaps,
				Title: "a deleted " + suite.KindOf[k] + " comes back, once", Run: func(t *suite.T) { deleted(t, k) }})
	}
	for _, e := range suite.Edits {
		checks = append(checks,
			suite.Check{ID: "behaviour/05-edited-" + e.ID, Group: "5", Fast: e.ID == "page" || e.ID == "image",
				Title: e.Title + " is restored by one write when a user edits it",
				Run:   func(t *suite.T) { edited(t, e) }})
	}
	return checks
}

func deleted(t *suite.T, k string) {
	port := t.NodePort()
	web := t.Serve("web", asking(port))
	t.AwaitQuiet(1500 * time.Millisecond) // so that a resync from before, a second away, does not count as a reaction
	before, mark := t.Children(web), t.Mark()
	old := before.Objects()[suite.KindOf[k]].GetUID()
	t.Remove(k, "web")
	t.Reaction("the "+suite.KindOf[k]+" is back", 0, func() error { return t.Another(k, "web", old) })
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	after := t.Children(web)
	wantPort(t, web, after, port)
	for name, o := range after.Objects() {
		if same := o.GetUID() == before.Objects()[name].GetUID(); same == (name == suite.KindOf[k]) {
			t.Errorf("expected another %s and the other children as they were; but the %s has the same UID: %v", suite.KindOf[k],
				name, same)
		}
	}
	onlyWrites(t, mark, k)
}

func allocatedPort(t *suite.T) {
	spec := suite.Sample()
	spec.NodePortNumber = nil
	web := t.Serve("web", spec)
	service := t.Children(web).Service
	t.Remove(suite.Services, "web")
	t.Eventually("another Service is there", 0, func() error { return t.Another(suite.Services, "web", service.UID) })
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	wantPort(t, web, t.Children(web), service.Spec.Ports[0].NodePort)
}

func edited(t *suite.T, e suite.Edit) {
	spec := suite.Sample()
	if e.Resource == suite.Services {
		spec.NodePortNumber = new(t.NodePort())
	}
	web := t.Serve("web", spec)
	before, mark := t.Children(web), t.Mark()
	want := e.Value(t, before)
	t.EditAs(e, "web", before)
	t.Reaction(e.Title+" is restored", 0, func() error {
		return suite.Differ(e.Value(t, t.Children(web)), want)
	})
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	after := t.Children(web)
	if err := suite.Differ(e.Value(t, after), want); err != nil {
		t.Errorf("expected that %s stays restored; but %v", e.Title, err)
	}
	t.SameChildren(before, after)
	onlyWrites(t, mark, e.Resource)
}

// editedHash restores the pod template of the earlier page: it differs only in the hash, whichever field has the
// hash.
func editedHash(t *suite.T) {
	old := t.Children(t.Serve("web", suite.Sample())).Deployment.Spec.Template
	t.SetPage("web", "<h1>Next</h1>")
	web := t.Completed("web")
	t.AwaitQuiet(quiet)
	before, mark := t.Children(web), t.Mark()
	want := before.Deployment.Spec.Template
	t.Set(suite.Deployments, "web", "/spec/template", old)
	t.Reaction("the hash is restored", 0, func() error {
		return suite.Differ(t.Children(web).Deployment.Spec.Template, want)
	})
	t.Completed("web")
	t.AwaitQuiet(quiet)
	t.SameChildren(before, t.Children(web))
	onlyWrites(t, mark, suite.Deployments)
}

// sidecar is what an injector adds to a pod template.
var sidecar = corev1.Container{Name: "sidecar", Image: "example.com/proxy:1"}

func othersStay(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	mark := t.Mark()
	for _, k := range suite.Kinds {
		t.Edit(k, "web", `{"metadata":{"labels":{"example.com/team":"a"},"annotations":{"example.com/note":"b"}}}`)
	}
	t.Edit(suite.Deployments, "web",
		`{"spec":{"template":{"metadata":{"labels":{"example.com/team":"a"},"annotations":{"example.com/note":"b"}}}}}`)
	t.Set(suite.Deployments, "web", "/spec/template/spec/containers/-",
		map[string]any{"name": sidecar.Name, "image": sidecar.Image})
	t.Eventually("the Deployment rolls with what others added", 0, func() error {
		d := t.Children(web).Deployment
		if s := d.Status; s.ObservedGeneration < d.Generation || s.UpdatedReplicas != 1 || s.AvailableReplicas != 1 ||
			s.Replicas != 1 {
			return fmt.Errorf("generation %d, status %s", d.Generation, suite.JSON(s))
		}
		return nil
	})
	t.Completed("web")
	t.AwaitQuiet(quiet)
	for _, k := range suite.Kinds {
		if writes := suite.About(t.Writes(mark), k); len(writes) > 0 {
			t.Unexpected(writes, "expected that what others added stays; but the operator wrote the %s", suite.KindOf[k])
		}
	}
	stays(t, web, "in steady state")
	t.Patch("web", `{"spec":{"image":"nginx:1.29","pageContentHtml":"next","replicas":2}}`)
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	stays(t, web, "after an update")
}

// stays fails the check when an addition by othersStay is gone.
func stays(t *suite.T, web *suite.Web, when string) {
	c := t.Children(web)
	all := map[string]metav1.Object{"pod template": &c.Deployment.Spec.Template}
	for name, o := range c.Objects() {
		all[name] = o
	}
	for name, o := range all {
		if o.GetLabels()["example.com/team"] != "a" || o.GetAnnotations()["example.com/note"] != "b" {
			t.Errorf("%s, label or annotation of others on the %s are gone: labels %v, annotations %v", when, name,
				o.GetLabels(), o.GetAnnotations())
		}
	}
	found := func(c corev1.Container) bool { return c.Name == sidecar.Name && c.Image == sidecar.Image }
	if all := c.Deployment.Spec.Template.Spec.Containers; !slices.ContainsFunc(all, found) {
		t.Errorf("%s, the sidecar is gone: containers %s", when, suite.JSON(all))
	}
}
