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
	for _, k := range kinds {
		checks = append(checks,
			suite.Check{ID: "behaviour/05-deleted-" + strings.ToLower(k.name), Group: "5", Fast: k.name == "ConfigMap",
				Title: "a deleted " + k.name + " comes back, once", Run: func(t *suite.T) { deleted(t, k) }})
	}
	for _, e := range edits {
		checks = append(checks,
			suite.Check{ID: "behaviour/05-edited-" + e.id, Group: "5", Fast: e.id == "page" || e.id == "image",
				Title: e.title + " is restored by one write when a user edits it", Run: e.run})
	}
	return checks
}

func deleted(t *suite.T, k kind) {
	port := t.NodePort()
	web := t.Serve("web", asking(port))
	t.AwaitQuiet(1500 * time.Millisecond) // so that a resync from before, a second away, does not count as a reaction
	before, mark := t.Children(web), t.Mark()
	old := before.Objects()[k.name].GetUID()
	k.delete(t, "web")
	t.Reaction("the "+k.name+" is back", 0, func() error {
		o, err := k.of(t).Get(t.Context(), "web", readNow)
		if err == nil && o.GetUID() == old {
			err = fmt.Errorf("the old one is still there")
		}
		return err
	})
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	after := t.Children(web)
	wantPort(t, web, after, port)
	for name, o := range after.Objects() {
		if same := o.GetUID() == before.Objects()[name].GetUID(); same == (name == k.name) {
			t.Errorf("expected another %s and the other children as they were; but the %s has the same UID: %v", k.name,
				name, same)
		}
	}
	onlyWrites(t, mark, k.ledger)
}

func allocatedPort(t *suite.T) {
	spec := suite.Sample()
	spec.NodePortNumber = nil
	web := t.Serve("web", spec)
	service := t.Children(web).Service
	t.Must(t.Fixture.Kube.CoreV1().Services(t.Namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}),
		"delete the Service")
	t.Eventually("another Service is there", 0, func() error {
		o, err := t.Fixture.Kube.CoreV1().Services(t.Namespace).Get(t.Context(), "web", readNow)
		if err == nil && o.GetUID() == service.UID {
			err = fmt.Errorf("the old one is still there")
		}
		return err
	})
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	wantPort(t, web, t.Children(web), service.Spec.Ports[0].NodePort)
}

// An edit is another client's change of a field that the operator owns.
type edit struct {
	id, title, kind string
	// do makes the edit; value returns the value that must be the same before and after.
	do    func(t *suite.T, c *suite.Children)
	value func(t *suite.T, c *suite.Children) any
	// spec changes the spec of the MyWeb for the edit; it may be nil.
	spec func(*suite.T, *suite.WebSpec)
}

// inContainer is the JSON pointer of a field of the container with the page.
func inContainer(t *suite.T, c *suite.Children, field string) string {
	i, _ := server(t, c.Deployment)
	return fmt.Sprintf("/spec/template/spec/containers/%d/%s", i, field)
}

func onPort(t *suite.T, s *suite.WebSpec) { s.NodePortNumber = new(t.NodePort()) }

// ports is the part of a Service about its ports.
func ports(_ *suite.T, c *suite.Children) any { return c.Service.Spec.Ports }

var edits = []edit{{
	id: "page", title: "the page", kind: "ConfigMap",
	do: func(t *suite.T, _ *suite.Children) {
		merge(t, kindNamed("ConfigMap").of(t), "web", `{"data":{"index.html":"vandalism"}}`)
	},
	value: func(_ *suite.T, c *suite.Children) any { return c.ConfigMap.Data["index.html"] },
}, {
	id: "page-removed", title: "a removed page", kind: "ConfigMap",
	do: func(t *suite.T, _ *suite.Children) {
		merge(t, kindNamed("ConfigMap").of(t), "web", `{"data":{"index.html":null}}`)
	},
	value: func(_ *suite.T, c *suite.Children) any { return c.ConfigMap.Data["index.html"] },
}, {
	id: "image", title: "the image", kind: "Deployment",
	do: func(t *suite.T, c *suite.Children) {
		set(t, kindNamed("Deployment").of(t), "web", inContainer(t, c, "image"), "example.com/other")
	},
	value: func(t *suite.T, c *suite.Children) any { return image(t, c.Deployment) },
}, {
	id: "replicas", title: "the replica count", kind: "Deployment",
	do: func(t *suite.T, _ *suite.Children) {
		merge(t, kindNamed("Deployment").of(t), "web", `{"spec":{"replicas":4}}`)
	},
	value: func(_ *suite.T, c *suite.Children) any { return *c.Deployment.Spec.Replicas },
}, {
	id: "mount", title: "the mount of the page", kind: "Deployment",
	do: func(t *suite.T, c *suite.Children) {
		_, j := server(t, c.Deployment)
		set(t, kindNamed("Deployment").of(t), "web",
			inContainer(t, c, fmt.Sprintf("volumeMounts/%d/mountPath", j)), "/elsewhere")
	},
	value: func(_ *suite.T, c *suite.Children) any {
		for _, container := range c.Deployment.Spec.Template.Spec.Containers {
			for _, m := range container.VolumeMounts {
				if m.MountPath == pageFolder {
					return m.Name
				}
			}
		}
		return "nothing is mounted at " + pageFolder
	},
}, {
	id: "port", title: "the Service's port", kind: "Service", value: ports,
	do: func(t *suite.T, _ *suite.Children) {
		set(t, kindNamed("Service").of(t), "web", "/spec/ports/0/port", 8080)
	},
}, {
	id: "node-port", title: "a node port that was asked for", kind: "Service", value: ports, spec: onPort,
	do: func(t *suite.T, _ *suite.Children) {
		set(t, kindNamed("Service").of(t), "web", "/spec/ports/0/nodePort", t.NodePort())
	},
}, {
	id: "service-type", title: "the Service's type", kind: "Service", spec: onPort,
	do: func(t *suite.T, _ *suite.Children) {
		set(t, kindNamed("Service").of(t), "web", "/spec/type", "ClusterIP")
	},
	value: func(_ *suite.T, c *suite.Children) any { return []any{c.Service.Spec.Type, c.Service.Spec.Ports} },
}, {
	id: "selector", title: "the Service's selector", kind: "Service",
	do: func(t *suite.T, _ *suite.Children) {
		merge(t, kindNamed("Service").of(t), "web", `{"spec":{"selector":{"app.kubernetes.io/instance":"other"}}}`)
	},
	value: func(_ *suite.T, c *suite.Children) any { return c.Service.Spec.Selector },
}}

func (e edit) run(t *suite.T) {
	spec := suite.Sample()
	if e.spec != nil {
		e.spec(t, &spec)
	}
	web := t.Serve("web", spec)
	before, mark := t.Children(web), t.Mark()
	want := e.value(t, before)
	e.do(t, before)
	t.Reaction(e.title+" is restored", 0, func() error {
		return suite.Differ(e.value(t, t.Children(web)), want)
	})
	web = t.Completed("web")
	t.AwaitQuiet(quiet)
	after := t.Children(web)
	if err := suite.Differ(e.value(t, after), want); err != nil {
		t.Errorf("expected that %s stays restored; but %v", e.title, err)
	}
	samePlaces(t, before, after)
	onlyWrites(t, mark, kindNamed(e.kind).ledger)
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
	set(t, kindNamed("Deployment").of(t), "web", "/spec/template", old)
	t.Reaction("the hash is restored", 0, func() error {
		return suite.Differ(t.Children(web).Deployment.Spec.Template, want)
	})
	t.Completed("web")
	t.AwaitQuiet(quiet)
	samePlaces(t, before, t.Children(web))
	onlyWrites(t, mark, deployments)
}

// sidecar is what an injector adds to a pod template.
var sidecar = corev1.Container{Name: "sidecar", Image: "example.com/proxy:1"}

func othersStay(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	mark := t.Mark()
	for _, k := range kinds {
		merge(t, k.of(t), "web", `{"metadata":{"labels":{"example.com/team":"a"},"annotations":{"example.com/note":"b"}}}`)
	}
	pods := kindNamed("Deployment").of(t)
	merge(t, pods, "web",
		`{"spec":{"template":{"metadata":{"labels":{"example.com/team":"a"},"annotations":{"example.com/note":"b"}}}}}`)
	set(t, pods, "web", "/spec/template/spec/containers/-", map[string]any{"name": sidecar.Name, "image": sidecar.Image})
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
	for _, k := range kinds {
		if writes := about(t.Writes(mark), k.ledger); len(writes) > 0 {
			t.Unexpected(writes, "expected that what others added stays; but the operator wrote the %s", k.name)
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
