package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Resources of the children, as the ledger names them.
const (
	configMaps  = "configmaps"
	deployments = "deployments.apps"
	services    = "services"
)

// A kind is one of the three kinds of children.
type kind struct {
	name     string
	ledger   string
	resource schema.GroupVersionResource
}

var kinds = []kind{
	{"ConfigMap", configMaps, corev1.SchemeGroupVersion.WithResource("configmaps")},
	{"Deployment", deployments, appsv1.SchemeGroupVersion.WithResource("deployments")},
	{"Service", services, corev1.SchemeGroupVersion.WithResource("services")},
}

func kindNamed(name string) kind {
	return kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })]
}

// of is the lab's client, past the proxy, for the objects of a kind in the check's namespace.
func (k kind) of(t *suite.T) dynamic.ResourceInterface {
	return t.Fixture.Dynamic.Resource(k.resource).Namespace(t.Namespace)
}

// webs is the same client for MyWebs.
func webs(t *suite.T) dynamic.ResourceInterface {
	return t.Fixture.Dynamic.Resource(myweb.MyWebs).Namespace(t.Namespace)
}

// merge changes an object by a JSON merge patch.
func merge(t *suite.T, where dynamic.ResourceInterface, name, patch string) *unstructured.Unstructured {
	return change(t, where, name, mergePatch, patch)
}

// set changes one field of an object, by its JSON pointer.
func set(t *suite.T, where dynamic.ResourceInterface, name, pointer string, value any) *unstructured.Unstructured {
	return change(t, where, name, types.JSONPatchType,
		suite.JSON([]any{map[string]any{"op": "add", "path": pointer, "value": value}}))
}

func change(t *suite.T, where dynamic.ResourceInterface, name string, how types.PatchType,
	patch string) *unstructured.Unstructured {
	u, err := where.Patch(t.Context(), name, how, []byte(patch), byLab)
	t.Must(err, "change "+name)
	return u
}

// create makes an object of a built-in type in the check's namespace.
func (k kind) create(t *suite.T, o metav1.Object) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	t.Must(err, "encode "+o.GetName())
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	u, err = k.of(t).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "user"})
	t.Must(err, "create "+k.name+" "+o.GetName())
	return u
}

func (k kind) delete(t *suite.T, name string) {
	t.Must(k.of(t).Delete(t.Context(), name, metav1.DeleteOptions{}), "delete "+k.name+" "+name)
}

// Options of the lab's own requests, and the patch that most of them use.
var (
	byLab   = metav1.PatchOptions{FieldManager: "user"}
	readNow = metav1.GetOptions{}
)

// status is the need of checks about a status.
var status = []suite.Need{suite.Status}

const mergePatch = types.MergePatchType

// quiet is how long the operator must not write to be in steady state.
const quiet = 300 * time.Millisecond

// about returns the entries about one of the resources, without subresources.
func about(entries []ledger.Entry, resources ...string) []ledger.Entry {
	m := ledger.Match{Resources: resources}
	return slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !m.Matches(e) })
}

// accepted returns the entries that the API server answered with success.
func accepted(entries []ledger.Entry) []ledger.Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !e.Accepted() })
}

// onlyWrites fails the check unless the operator wrote after the mark only one child of the given resource, once.
// Writes of it that were refused as a conflict do not count.
func onlyWrites(t *suite.T, mark int, resource string) {
	writes := t.Writes(mark)
	if mine := accepted(about(writes, resource)); len(mine) != 1 {
		t.Errorf("expected 1 write of %s; but the operator sent %d:%s", resource, len(mine), suite.Lines(mine))
	}
	for _, k := range kinds {
		if others := about(writes, k.ledger); k.ledger != resource && len(others) > 0 {
			t.Unexpected(others, "expected no write of %s; but the operator sent %d", k.ledger, len(others))
		}
	}
}

// pageFolder is where the page is mounted, by contract.
const pageFolder = "/usr/share/nginx/html"

// server finds the container that has the page, and the index of its mount.
func server(t *suite.T, d *appsv1.Deployment) (container, mount int) {
	for i, c := range d.Spec.Template.Spec.Containers {
		for j, m := range c.VolumeMounts {
			if m.MountPath == pageFolder {
				return i, j
			}
		}
	}
	t.Fatalf("expected the page at %s; but no container of the Deployment mounts anything there", pageFolder)
	return 0, 0
}

// image is the image of the container with the page.
func image(t *suite.T, d *appsv1.Deployment) string {
	i, _ := server(t, d)
	return d.Spec.Template.Spec.Containers[i].Image
}

// pods are the pods that a selector finds, except those that are being deleted.
func pods(t *suite.T, selector string) []corev1.Pod {
	list, err := t.Fixture.Kube.CoreV1().Pods(t.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	t.Must(err, "list pods")
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// podsOf are the pods of a MyWeb: by the selector of its status or, when the status has none, of its Deployment.
func podsOf(t *suite.T, web *suite.Web) []corev1.Pod {
	if t.Reports() {
		return pods(t, web.Status.Selector)
	}
	return pods(t, metav1.FormatLabelSelector(t.Children(web).Deployment.Spec.Selector))
}

func uids(pods []corev1.Pod) (all []types.UID) {
	for _, p := range pods {
		all = append(all, p.UID)
	}
	slices.Sort(all)
	return all
}

// An identity has the values that must survive every change of a MyWeb.
type identity struct {
	configMap, deployment, service types.UID
	clusterIP                      string
}

func identityOf(c *suite.Children) identity {
	return identity{c.ConfigMap.UID, c.Deployment.UID, c.Service.UID, c.Service.Spec.ClusterIP}
}

// samePlaces fails the check when children were replaced.
func samePlaces(t *suite.T, before, after *suite.Children) {
	if was, is := identityOf(before), identityOf(after); was != is {
		t.Errorf("expected the same children; but one was replaced: it was %+v and is %+v", was, is)
	}
}

// A history has every version of a MyWeb from a moment on.
type history struct {
	mu   sync.Mutex
	webs []*suite.Web
	err  error
}

// follow records the history of the MyWebs of the check's namespace.
func follow(t *suite.T) *history {
	h := &history{}
	list, err := webs(t).List(t.Context(), metav1.ListOptions{})
	t.Must(err, "list MyWebs")
	w, err := webs(t).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	t.Must(err, "watch MyWebs")
	t.Cleanup(func(context.Context) { w.Stop() })
	go func() {
		for e := range w.ResultChan() {
			web := &suite.Web{}
			u, ok := e.Object.(*unstructured.Unstructured)
			var err error
			if ok {
				err = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, web)
			} else {
				err = fmt.Errorf("the watch of MyWebs says %v", e.Object)
			}
			h.mu.Lock()
			h.webs, h.err = append(h.webs, web), err
			h.mu.Unlock()
		}
	}()
	return h
}

// upTo waits for the given version, and returns the versions up to it.
func (h *history) upTo(t *suite.T, last *suite.Web) (all []*suite.Web) {
	t.Eventually("the watch brings MyWeb "+last.Name, 0, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		all = slices.Clone(h.webs)
		if h.err != nil {
			return h.err
		}
		if !slices.ContainsFunc(all, func(w *suite.Web) bool {
			return w.UID == last.UID && w.ResourceVersion == last.ResourceVersion
		}) {
			return fmt.Errorf("there are %d versions, and not %s", len(all), last.ResourceVersion)
		}
		return nil
	})
	return slices.DeleteFunc(all, func(w *suite.Web) bool { return w.UID != last.UID })
}

// completedOnce fails the check when the newest generation was reported as completed, and later not: the first report
// was too early.
func (h *history) completedOnce(t *suite.T, last *suite.Web) {
	early := ""
	for _, w := range h.upTo(t, last) {
		switch {
		case w.Generation != last.Generation:
		case w.Is():
			early = suite.JSON(w.Status)
		case early != "":
			t.Errorf("completed was reported too early: %s became %s", early, suite.JSON(w.Status))
			return
		}
	}
}

// neverDegraded fails the check when the MyWeb was Degraded in any version, or there was a warning about it.
func (h *history) neverDegraded(t *suite.T, last *suite.Web) {
	for _, w := range h.upTo(t, last) {
		if c := w.Condition("Degraded"); c.Status == metav1.ConditionTrue {
			t.Errorf("MyWeb %s was Degraded for a time: %s: %s", w.Name, c.Reason, c.Message)
			break
		}
	}
	if all := warnings(t, last.Name); len(all) > 0 {
		t.Errorf("warned of a MyWeb that only had to wait: %s", strings.Join(all, "; "))
	}
}

// warnings are the events of that type about a MyWeb, one for each time that they were recorded.
func warnings(t *suite.T, name string) []string { return recorded(t, name, corev1.EventTypeWarning) }

// recorded are the events about a MyWeb of the given types, or of all types, one for each time that they were
// recorded: a counter in an event counts, too.
func recorded(t *suite.T, name string, kinds ...string) (all []string) {
	for _, e := range t.Events(name) {
		times := max(1, e.DeprecatedCount)
		if e.Series != nil {
			times = max(times, e.Series.Count)
		}
		for range times {
			if len(kinds) == 0 || slices.Contains(kinds, e.Type) {
				all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
			}
		}
	}
	return all
}

// recordings are the operator's requests about events of the check's namespace after a mark, including those that the
// API server did not accept, such as an increment of an existing event's counter.
func recordings(t *suite.T, mark int) []ledger.Entry {
	return t.Fixture.Ledger.Entries(ledger.Match{
		Verbs: []string{"create", "update", "patch", "apply"}, Namespace: t.Namespace,
		Resources: []string{"events", "events.events.k8s.io"}, After: max(mark, 1),
		Where: func(e ledger.Entry) bool { return strings.HasPrefix(e.User, t.Operator.User.Name) }})
}

// awaitNoMoreEvents returns when the operator recorded no event for a time.
func awaitNoMoreEvents(t *suite.T, window time.Duration) {
	last, since := -1, time.Now()
	t.Eventually("the operator records no more events", 0, func() error {
		if n := len(recordings(t, 0)); n != last {
			last, since = n, time.Now()
		}
		if past := time.Since(since); past < window {
			return fmt.Errorf("%d by now, the last one %v ago", last, past)
		}
		return nil
	})
}
