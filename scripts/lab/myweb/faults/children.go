package faults

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// children are the checks of each kind of child.
func children() (checks []suite.Check) {
	for _, resource := range kinds {
		checks = append(checks,
			suite.Check{ID: "fault/17-" + short(resource) + "-deleted", Group: "17", Fast: resource == "configmaps",
				Run:   deleted(resource),
				Title: "a " + kindOf[resource] + " that was deleted comes back once"},
			suite.Check{ID: "fault/22-" + short(resource) + "-taken", Group: "22", Fast: resource == "services",
				Within: 2 * time.Minute,
				Title: "a " + kindOf[resource] +
					" that has the name but another owner is not touched; it is reported, and recovers",
				Run: taken(resource)},
			suite.Check{ID: "fault/27-" + short(resource) + "-create-held", Group: "27", Fast: resource == "configmaps",
				Within: 2 * time.Minute,
				Title:  "a MyWeb deleted and recreated while its " + kindOf[resource] + " is being created gets new children",
				Run:    recreated(resource)})
	}
	return checks
}

func deleted(resources ...string) func(*suite.T) {
	return func(t *suite.T) {
		before := t.Children(t.Serve("web", suite.Sample()))
		mark := t.Mark()
		var kindsGone []string
		for _, resource := range resources {
			remove(t, resource, "web")
			kindsGone = append(kindsGone, kindOf[resource])
		}
		t.Eventually("the children are back", patience, func() error {
			for _, resource := range resources {
				if made(t, mark, resource) == 0 {
					return fmt.Errorf("no %s was made", kindOf[resource])
				}
			}
			return nil
		})
		_, after := converged(t, "web")
		wantSame(t, before, after, kindsGone...)
		for _, resource := range kinds {
			n := 0
			if slices.Contains(resources, resource) {
				n = 1
			}
			wantMade(t, mark, n, resource)
		}
		t.StaysQuiet(time.Second)
	}
}

// An operation is an operation of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// anyPort is a value in edits: a free node port.
const anyPort = "any port"

// edits are changes by another client to fields that every operator must own, because the MyWeb sets them or the
// children do not work without them.
var edits = map[string]map[string][]operation{
	"configmaps": {
		"the page":         {{"replace", "/data/index.html", "vandalism"}},
		"the page is gone": {{"remove", "/data/index.html", nil}},
	},
	"deployments.apps": {
		"replicas":       {{"replace", "/spec/replicas", 3}},
		"image":          {{"replace", "/spec/template/spec/containers/0/image", "vandal:1"}},
		"container port": {{"replace", "/spec/template/spec/containers/0/ports/0/containerPort", 8080}},
		"mount of page":  {{"replace", "/spec/template/spec/containers/0/volumeMounts/PAGE/mountPath", "/nowhere"}},
	},
	"services": {
		"port":      {{"replace", "/spec/ports/0/port", 81}},
		"node port": {{"replace", "/spec/ports/0/nodePort", anyPort}},
		"selector":  {{"replace", "/spec/selector", map[string]string{"app": "vandal"}}},
		"type":      {{"replace", "/spec/type", "ClusterIP"}, {"remove", "/spec/ports/0/nodePort", nil}},
	},
}

// edited has a separate MyWeb for each edit, because an operator may limit the rate of corrections for each MyWeb.
func edited(resource string) func(*suite.T) {
	return func(t *suite.T) {
		names, before := map[string]string{}, map[string]*suite.Children{}
		for n, what := range slices.Sorted(maps.Keys(edits[resource])) {
			spec := suite.Sample()
			spec.NodePortNumber = new(t.NodePort())
			names[what] = t.Create(fmt.Sprintf("web-%d", n), spec).Name
		}
		specs := map[string]any{}
		for what, name := range names {
			_, before[what] = converged(t, name)
			specs[what] = contentOf(t, resource, name)
		}
		mark := t.Mark()
		for what, operations := range edits[resource] {
			operations = slices.Clone(operations)
			for n, o := range operations {
				operations[n].Path = strings.Replace(o.Path, "PAGE", pageMount(before[what].Deployment), 1)
				if o.Value == anyPort {
					operations[n].Value = t.NodePort()
				}
			}
			editBy(t, resource, names[what], operations)
		}
		for what, name := range names {
			t.Eventually(what+" is restored", patience, func() error {
				now := contentOf(t, resource, name)
				if !holds("", now, specs[what]) {
					return suite.Differ(now, specs[what])
				}
				return nil
			})
		}
		for what, name := range names {
			_, after := converged(t, name)
			wantSame(t, before[what], after)
		}
		wantMade(t, mark, 0, kinds...)
		t.StaysQuiet(time.Second)
	}
}

// editBy changes a child by a JSON patch.
func editBy(t *suite.T, resource, name string, operations []operation) {
	data, err := json.Marshal(operations)
	t.Must(err, "encode the edit")
	_, err = child(t, resource).Patch(t.Context(), name, types.JSONPatchType, data, metav1.PatchOptions{})
	t.Must(err, fmt.Sprintf("edit the %s by %s", kindOf[resource], data))
}

// portAdded adds a port to the Service, as a user who wants metrics does, and edits the operator's own port: first
// its number, which is its key in the API server, then its target.
func portAdded(t *suite.T) {
	spec := suite.Sample()
	spec.NodePortNumber = new(t.NodePort())
	before := t.Children(t.Serve("web", spec))
	ours := before.Service.Spec.Ports[0]
	theirs := corev1.ServicePort{Name: "metrics", Port: 9113, TargetPort: intstr.FromInt32(9113),
		Protocol: corev1.ProtocolTCP}
	if ours.Name == "" {
		editBy(t, "services", "web", []operation{{"add", "/spec/ports/0/name", "http"}}) // two ports need names
	}
	editBy(t, "services", "web", []operation{{"add", "/spec/ports/-", theirs}})
	t.StaysQuiet(time.Second)
	theirs = t.Children(get(t, "web")).Service.Spec.Ports[1]
	for path, value := range map[string]any{"port": 81, "targetPort": 8081, "nodePort": t.NodePort()} {
		editBy(t, "services", "web", []operation{{"replace", "/spec/ports/0/" + path, value}})
		t.Eventually("the edited "+path+" is restored beside the added port", patience, func() error {
			have := t.Children(get(t, "web")).Service.Spec.Ports
			at := slices.IndexFunc(have, func(p corev1.ServicePort) bool { return p.Port == ours.Port })
			if at < 0 {
				return fmt.Errorf("no port is %d: %+v", ours.Port, have)
			}
			have[at].Name = ours.Name
			return suite.Differ(have[at], ours)
		})
		have := t.Children(get(t, "web")).Service.Spec.Ports
		if !slices.Contains(have, theirs) || len(have) != 2 {
			t.Fatalf("the added port %+v was changed: %+v", theirs, have)
		}
	}
	_, after := converged(t, "web")
	wantSame(t, before, after)
	t.StaysQuiet(time.Second)
}

// contentOf is the desired state in a child: its spec, or its data.
func contentOf(t *suite.T, resource, name string) any {
	o := read(t, resource, name).Object
	if resource == "configmaps" {
		return o["data"]
	}
	return o["spec"]
}

// holds reports whether a value contains another value. Additions by other clients may stay, except in selectors of
// pods.
func holds(field string, have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		for key, value := range want {
			ok = ok && holds(key, have[key], value)
		}
		return ok && (field != "selector" || len(have) == len(want))
	case []any:
		have, ok := have.([]any)
		for _, value := range want {
			ok = ok && slices.ContainsFunc(have, func(h any) bool { return holds("", h, value) })
		}
		return ok
	default:
		return reflect.DeepEqual(have, want)
	}
}

// pageMount is the index of the page's mount in the list.
func pageMount(d *appsv1.Deployment) string {
	mounts := d.Spec.Template.Spec.Containers[0].VolumeMounts
	return strconv.Itoa(max(0, slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool {
		return m.MountPath == "/usr/share/nginx/html"
	})))
}

// get reads a MyWeb.
func get(t *suite.T, name string) *suite.Web {
	web, err := t.Get(name)
	t.Must(err, "read MyWeb "+name)
	return web
}

func ownersStripped(t *suite.T) {
	web := t.Serve("web", suite.Sample())
	before := t.Children(web)
	mark := t.Mark()
	for _, resource := range kinds {
		edit(t, resource, "web", `{"metadata":{"ownerReferences":null}}`)
	}
	t.Eventually("the owner references are back", patience, func() error { return controlled(t, web) })
	_, after := converged(t, "web")
	wantSame(t, before, after)
	wantMade(t, mark, 0, kinds...)
	t.StaysQuiet(time.Second)
}

// controlled returns an error unless all children exist and are controlled by the MyWeb.
func controlled(t *suite.T, web *suite.Web) error {
	for _, resource := range kinds {
		o, err := child(t, resource).Get(t.Context(), web.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !metav1.IsControlledBy(o, web) {
			return fmt.Errorf("%s has ownerReferences %v, the MyWeb's UID is %s", kindOf[resource],
				o.GetOwnerReferences(), web.UID)
		}
	}
	return nil
}

func labelsStripped(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	for _, resource := range kinds {
		edit(t, resource, "web", `{"metadata":{"labels":null}}`)
	}
	t.Eventually("the labels are back", patience, func() error {
		for _, resource := range kinds {
			was := before.Objects()[kindOf[resource]].GetLabels()
			if err := suite.Differ(read(t, resource, "web").GetLabels(), was); err != nil {
				return fmt.Errorf("labels of the %s: %w", kindOf[resource], err)
			}
		}
		return nil
	})
	_, after := converged(t, "web")
	wantSame(t, before, after)
	wantMade(t, mark, 0, kinds...)
	t.StaysQuiet(time.Second)
}

// secondWriter edits fields that the operator owns for ten seconds.
func secondWriter(t *suite.T) {
	before := t.Children(t.Serve("web", suite.Sample()))
	mark := t.Mark()
	const fights = 100
	for n := range fights {
		edit(t, "configmaps", "web", fmt.Sprintf(`{"data":{"index.html":"edit %d"}}`, n))
		t.Pause(100 * time.Millisecond)
		if n == fights/2 {
			t.Create("other", suite.Sample())
		}
	}
	wantAlive(t)
	own := slices.DeleteFunc(t.Writes(mark), func(e ledger.Entry) bool {
		return e.Name == "other" || e.FullResource() != "configmaps"
	})
	if len(own) > fights/2 {
		t.Errorf("%d writes against %d edits in %v: %s", len(own), fights, fights*100*time.Millisecond, suite.Lines(own))
	}
	t.Completed("other")
	t.Eventually("the page is restored when the other one has stopped", patience, func() error {
		return suite.Differ(contentOf(t, "configmaps", "web"), map[string]any{"index.html": before.ConfigMap.Data["index.html"]})
	})
	_, after := converged(t, "web")
	wantSame(t, before, after)
}

// taken creates an object that has a child's name and no owner.
func taken(resource string) func(*suite.T) {
	return func(t *suite.T) {
		conflict(t, resource)
		before := untouched(t, resource)
		t.Create("web", suite.Sample())
		t.Await("web", "is Degraded for ResourceConflict", patience, func(w *suite.Web) bool {
			return w.Degraded("ResourceConflict")
		})
		t.AwaitQuiet(500 * time.Millisecond)
		t.SetPage("web", "<h1>changed meanwhile</h1>")
		web := t.Await("web", "reports so of the new generation too", patience, func(w *suite.Web) bool {
			return w.Degraded("ResourceConflict")
		})
		if web.Status.Completed {
			t.Errorf("completed is true beside ResourceConflict")
		}
		wantBackoff(t)
		if err := suite.Differ(untouched(t, resource), before); err != nil {
			t.Errorf("the %s of another owner was touched: %v", kindOf[resource], err)
		}
		remove(t, resource, "web")
		converged(t, "web")
		if c := get(t, "web").Condition("Degraded"); c.Status == metav1.ConditionTrue {
			t.Errorf("served, and still Degraded: %s", c.Message)
		}
		wantMade(t, 0, 1, kinds...)
		var warnings []string
		for _, e := range t.Events("web") {
			if e.Type == corev1.EventTypeWarning {
				warnings = append(warnings, e.Reason+": "+e.Note)
			}
		}
		if len(warnings) > 1 {
			t.Errorf("%d Warnings, one is enough: %s", len(warnings), strings.Join(warnings, "; "))
		}
	}
}

var unmanaged = metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "unmanaged"}}

func conflict(t *suite.T, resource string) {
	var err error
	labels := map[string]string{"app": "unmanaged"}
	switch resource {
	case "configmaps":
		_, err = t.Fixture.Kube.CoreV1().ConfigMaps(t.Namespace).Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: unmanaged, Data: map[string]string{"index.html": "unmanaged"}}, metav1.CreateOptions{})
	case "services":
		_, err = t.Fixture.Kube.CoreV1().Services(t.Namespace).Create(t.Context(), &corev1.Service{ObjectMeta: unmanaged,
			Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 8080}}}}, metav1.CreateOptions{})
	case "deployments.apps":
		_, err = t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Create(t.Context(),
			deployment(unmanaged, labels, 0), metav1.CreateOptions{})
	}
	t.Must(err, "make the conflicting object")
}

func deployment(meta metav1.ObjectMeta, labels map[string]string, replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &replicas,
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "old"}}}}}}
}

// untouched is the part of an object that must not change. Controllers write its status and one annotation.
func untouched(t *suite.T, resource string) any {
	o := read(t, resource, "web")
	unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	return []any{o.GetUID(), o.GetLabels(), len(o.GetAnnotations()), o.GetOwnerReferences(), contentOf(t, resource, "web")}
}

// olderChild creates a Deployment as an older version of the operator might have: controlled by the MyWeb, with an
// immutable selector that differs.
func olderChild(t *suite.T) {
	held := hold(t, "deployments.apps")
	web := t.Create("web", suite.Sample())
	t.AwaitFault(held, 1, patience)
	meta := metav1.ObjectMeta{Name: "web",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: web.APIVersion, Kind: "MyWeb",
			Name: "web", UID: web.UID, Controller: new(true)}}}
	old, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Create(t.Context(),
		deployment(meta, map[string]string{"app": "older"}, 1), metav1.CreateOptions{})
	t.Must(err, "make the older Deployment")
	held.Release()
	web = t.Await("web", "is Degraded, or completed with a new Deployment", patience, func(w *suite.Web) bool {
		return w.Is() || w.Condition("Degraded").Status == metav1.ConditionTrue
	})
	if web.Is() {
		if _, c := converged(t, "web"); c.Deployment.UID == old.UID {
			t.Errorf("completed, but the Deployment still selects %v", c.Deployment.Spec.Selector.MatchLabels)
		}
		return
	}
	wantBackoff(t)
	if web = get(t, "web"); web.Status.Completed {
		t.Errorf("completed is true, but the Deployment cannot be what it should")
	}
	if now := read(t, "deployments.apps", "web"); now.GetUID() != old.UID {
		t.Errorf("reported as a conflict, and replaced all the same")
	}
	remove(t, "deployments.apps", "web")
	converged(t, "web")
}

// recreated holds the first write of a child, and meanwhile deletes and recreates the MyWeb.
func recreated(resource string) func(*suite.T) {
	return func(t *suite.T) {
		held := hold(t, resource)
		old := t.Create("web", suite.Sample())
		t.AwaitFault(held, 1, patience)
		t.Delete("web")
		t.Eventually("the MyWeb is gone", 0, func() error {
			if _, err := t.Get("web"); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		spec := suite.Sample()
		spec.PageContentHTML = new("<h1>Another</h1>")
		web := t.Create("web", spec)
		held.Release()
		t.Eventually("the children are those of the new MyWeb", patience, func() error { return controlled(t, web) })
		converged(t, "web")
		if web.UID == old.UID {
			t.Errorf("the lab made the same MyWeb again")
		}
		t.StaysQuiet(time.Second)
	}
}
