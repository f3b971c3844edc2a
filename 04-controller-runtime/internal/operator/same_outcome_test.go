package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// A sentence is what may be asked of an operator. Whoever asks the operator of chapter 03 and the one of
// this chapter gets the same.
type sentence struct {
	spec webv1.MyWebSpec
	// before happens before the MyWeb is there, then after it was served, or has the reason why not.
	before, then func(w *cluster, namespace, name string)
}

func specWith(change ...func(*webv1.MyWebSpec)) webv1.MyWebSpec {
	s := webv1.MyWebSpec{Image: "nginx"}
	for _, f := range change {
		f(&s)
	}
	return s
}

func withPage(text string) webv1.MyWebSpec {
	return specWith(func(s *webv1.MyWebSpec) { s.PageContentHTML = &text })
}

func withImage(name string) webv1.MyWebSpec {
	return specWith(func(s *webv1.MyWebSpec) { s.Image = name })
}

func withReplicas(n int32) webv1.MyWebSpec {
	return specWith(func(s *webv1.MyWebSpec) { s.Replicas = &n })
}

func withPort(n int32) webv1.MyWebSpec {
	return specWith(func(s *webv1.MyWebSpec) { s.NodePortNumber = &n })
}

func changed(change func(*webv1.MyWebSpec)) func(*cluster, string, string) {
	return func(w *cluster, namespace, name string) { w.change(namespace, name, change) }
}

// sentences by the name of their MyWeb.
var sentences = map[string]sentence{
	"bare": {spec: specWith()},
	// Ports below 30086 are given to nobody who does not ask for them.
	"port":       {spec: withPort(30011)},
	"no-pod":     {spec: withReplicas(0)},
	"one-pod":    {spec: withReplicas(1)},
	"three-pods": {spec: withReplicas(3)},
	"ten-pods":   {spec: withReplicas(10)},
	"empty-page": {spec: withPage("")},
	"unicode":    {spec: withPage("<p>Grüße, 世界 🌍\u200d\n</p>\r\n")},
	"quotes":     {spec: withPage("\"'`\\ {{ .Values }} ${HOME} <!-- -->\t")},
	"large-page": {spec: withPage(strings.Repeat("0123456789abcdef", 40000/16))},
	"digest":     {spec: withImage("nginx@sha256:" + strings.Repeat("0a", 32))},
	"registry": {spec: withImage("registry.example:5000/team/web:1.29@sha256:" +
		strings.Repeat("0a", 32))},
	"a" + strings.Repeat("-long", 12): {spec: specWith()},
	"removed-port": {spec: withPort(30012), then: changed(func(s *webv1.MyWebSpec) {
		s.NodePortNumber = nil
	})},
	"changed-port": {spec: withPort(30013), then: changed(func(s *webv1.MyWebSpec) {
		s.NodePortNumber = new(int32(30014))
	})},
	"changed-page": {spec: withPage("old"), then: changed(func(s *webv1.MyWebSpec) {
		s.PageContentHTML = new("new")
	})},
	"changed-image": {spec: withImage("nginx"), then: changed(func(s *webv1.MyWebSpec) {
		s.Image = "nginx:1.29-alpine"
	})},
	"scaled-to-zero": {spec: withReplicas(2), then: changed(func(s *webv1.MyWebSpec) {
		s.Replicas = new(int32(0))
	})},
	"unmanaged-configmap":       {spec: specWith(), before: putUnmanaged("ConfigMap")},
	"unmanaged-deployment":      {spec: specWith(), before: putUnmanaged("Deployment")},
	"unmanaged-service":         {spec: specWith(), before: putUnmanaged("Service")},
	"unmanaged-that-goes":       {spec: specWith(), before: putUnmanaged("ConfigMap"), then: deleteChild("ConfigMap")},
	"taken-port":                {spec: withPort(30015), before: holdPort(30015)},
	"taken-port-that-gets-free": {spec: withPort(30016), before: holdPort(30016), then: freePort},
	"deleted-page":              {spec: withPage("x"), then: deleteChild("ConfigMap")},
	"deleted-service":           {spec: specWith(), then: deleteChild("Service")},
	"deleted-pods":              {spec: specWith(), then: deleteChild("Deployment")},
	"defaced-page":              {spec: withPage("x"), then: editChild("ConfigMap", `{"data":{"index.html":"defaced"}}`)},
	"stripped-page": {
		spec: withPage("x"), then: editChild("ConfigMap", `{"metadata":{"ownerReferences":null,"labels":null}}`)},
	"labelled-service": {spec: specWith(), then: editChild("Service", `{"metadata":{"labels":{"team":"blue"}}}`)},
	"a-port-more": {spec: withPort(30017),
		then: editChild("Service", `{"spec":{"ports":[{"name":"http","port":81,"targetPort":"http","nodePort":30017}]}}`)},
	"z" + strings.Repeat("0123456", 8): {spec: specWith(), then: changed(func(s *webv1.MyWebSpec) {
		s.Replicas = new(int32(2))
	})},
}

func putUnmanaged(kind string) func(*cluster, string, string) {
	return func(w *cluster, namespace, name string) {
		m := metav1.ObjectMeta{Namespace: namespace, Name: name}
		switch kind {
		case "ConfigMap":
			w.create(&corev1.ConfigMap{ObjectMeta: m, Data: map[string]string{"mine": "yes"}})
		case "Deployment":
			labels := map[string]string{"app": "other"}
			w.create(&appsv1.Deployment{ObjectMeta: m,
				Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
						Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}}})
		case "Service":
			w.create(&corev1.Service{ObjectMeta: m, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		}
	}
}

func deleteChild(kind string) func(*cluster, string, string) {
	return func(w *cluster, namespace, name string) {
		old := w.children(namespace, name)[kind]
		w.Expect(w.Delete(w.t.Context(), old)).To(gomega.Succeed())
		w.Eventually(func() bool {
			now := w.children(namespace, name)[kind]
			return now != nil && now.GetUID() != old.GetUID()
		}).Should(gomega.BeTrue(), "%s %s comes back", kind, name)
	}
}

func editChild(kind, patch string) func(*cluster, string, string) {
	return func(w *cluster, namespace, name string) {
		child := w.children(namespace, name)[kind]
		w.Expect(w.Patch(w.t.Context(), child, client.RawPatch("application/merge-patch+json", []byte(patch)),
			client.FieldOwner("somebody"))).To(gomega.Succeed())
	}
}

func holdPort(port int32) func(*cluster, string, string) {
	return func(w *cluster, namespace, name string) {
		w.create(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "holder-of-" + name},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: port}}}})
	}
}

func freePort(w *cluster, namespace, name string) {
	w.Expect(w.Delete(w.t.Context(),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "holder-of-" + name}})).To(gomega.Succeed())
}

func TestTheSameOutcomeAsByHand(t *testing.T) {
	w := newCluster(t)
	root, err := testenv.Root()
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	w.Expect(err).NotTo(gomega.HaveOccurred())
	byHand := build(t, filepath.Join(root, "03-client-go-controller"), "myweb-controller")
	want, sent := w.outcomes(byHand, "by-hand")
	got, sentHere := w.outcomes(program, "on-a-manager")
	t.Logf("%d sentences; writes by hand %d, on a manager %d", len(want), sent, sentHere)
	for name := range sentences {
		if want[name] == nil || got[name] == nil {
			t.Fatalf("there is no outcome of %s", name)
		}
		if diff := cmp.Diff(want[name], got[name]); diff != "" {
			t.Errorf("%s: by hand (-) and on a manager (+) differ:\n%s", name, diff)
		}
	}
}

// outcomes runs a program on all sentences, in a namespace of its own, and returns what came of each, and
// how many writes that took.
func (w *cluster) outcomes(program, user string) (map[string]any, int) {
	w.t.Helper()
	ns, all := w.namespace(), sentences
	p := started(w.t, program, w.operator(user))
	for name, s := range all {
		if s.before != nil {
			s.before(w, ns, name)
		}
		w.create(&webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: s.spec})
	}
	w.answered(ns)
	w.settled(user)
	for name, s := range all {
		if s.then != nil {
			s.then(w, ns, name)
		}
	}
	w.settled(user)
	w.answered(ns)
	sent := len(programtest.Writes(w.settled(user)))
	found := map[string]any{}
	for name := range all {
		found[name] = w.outcome(ns, name)
	}
	w.Expect(w.DeleteAllOf(w.t.Context(), &webv1.MyWeb{}, client.InNamespace(ns))).To(gomega.Succeed())
	w.Expect(w.Delete(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})).To(gomega.Succeed())
	// its node ports are free
	w.Eventually(func() bool { return w.get("", ns, &corev1.Namespace{}) }, "120s").Should(gomega.BeFalse())
	p.Terminate()
	return found, sent
}

// answered waits until every MyWeb of a namespace is served, or has the reason why not, and its old pods are gone.
func (w *cluster) answered(namespace string) {
	w.t.Helper()
	w.Eventually(func() (waiting []string) {
		var webs webv1.MyWebList
		w.Expect(w.List(w.t.Context(), &webs, client.InNamespace(namespace))).To(gomega.Succeed())
		for _, web := range webs.Items {
			why := w.degraded(namespace, web.Name)()
			if web.Status.ObservedGeneration != web.Generation || !web.Status.Completed && !strings.HasPrefix(why, "True ") {
				waiting = append(waiting, web.Name+" "+why)
			}
		}
		var pods appsv1.DeploymentList
		w.Expect(w.List(w.t.Context(), &pods, client.InNamespace(namespace))).To(gomega.Succeed())
		for _, d := range pods.Items {
			if d.Status.Replicas != *d.Spec.Replicas || d.Status.TerminatingReplicas != nil &&
				*d.Status.TerminatingReplicas > 0 {
				waiting = append(waiting, d.Name+" pods")
			}
		}
		return waiting
	}, "120s", "200ms").Should(gomega.BeEmpty())
}

// outcome is a MyWeb, the objects with its name and what was reported about it, as a tree of fields in which
// everything that no two clusters have in common is masked.
func (w *cluster) outcome(namespace, name string) map[string]any {
	w.t.Helper()
	web := w.web(namespace, name)
	objects := w.children(namespace, name)
	objects["MyWeb"] = web
	var events []string
	for _, e := range w.eventObjects(namespace, name) {
		if e.Reason == webv1.ReasonRecovered {
			e.Note, _, _ = strings.Cut(e.Note, ":") // it repeats what was reported last, and that depends on who was faster
		}
		events = append(events, fmt.Sprintf("%s %s %s by %s, of %s %s, more than once: %v: %s", e.Type, e.Reason, e.Action,
			e.ReportingController, e.Regarding.Kind, e.Regarding.APIVersion, e.Series != nil, e.Note))
	}
	mask := func(text string) string {
		text = strings.ReplaceAll(text, namespace, "NAMESPACE")
		text = strings.ReplaceAll(text, string(web.UID), "UID")
		if port := web.Status.NodePort; port != 0 && web.Spec.NodePortNumber == nil && name != "removed-port" {
			text = strings.ReplaceAll(text, fmt.Sprint(port), "30000")
		}
		return timestamp.ReplaceAllString(replicaSet.ReplaceAllString(text, "ReplicaSet $1"), "TIME")
	}
	tree := map[string]any{"events": mask(strings.Join(events, "\n"))}
	for kind, obj := range objects {
		data, err := json.Marshal(obj)
		w.Expect(err).NotTo(gomega.HaveOccurred())
		fields := map[string]any{}
		w.Expect(json.Unmarshal([]byte(mask(string(data))), &fields)).To(gomega.Succeed())
		tree[kind] = masked(fields)
	}
	return tree
}

var (
	replicaSet = regexp.MustCompile(`ReplicaSet \\"([a-z0-9-]+)-[a-z0-9]+\\"`)
	timestamp  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	applied    = regexp.MustCompile(`^UID/[0-9a-f]{16}$`)
)

// masked takes out of an object what the API server chose.
func masked(obj map[string]any) map[string]any {
	for _, path := range [][]string{
		{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"},
		// with what is left of a deleted Deployment
		{"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"status", "collisionCount"}} {
		unstructured.RemoveNestedField(obj, path...)
	}
	// How often its controller saw a Deployment change depends on how busy it is.
	unstructured.RemoveNestedField(obj, "metadata", "annotations", "deployment.kubernetes.io/revision")
	annotation := []string{"metadata", "annotations", "operator.k8s-summit.org/applied"}
	// its hash is of the owner's UID too
	if signature, _, _ := unstructured.NestedString(obj, annotation...); applied.MatchString(signature) {
		_ = unstructured.SetNestedField(obj, "UID/HASH", annotation...)
	}
	if fields, found, _ := unstructured.NestedSlice(obj, "metadata", "managedFields"); found {
		for _, entry := range fields {
			unstructured.RemoveNestedField(entry.(map[string]any), "fieldsV1", "f:status", "f:collisionCount")
		}
		slices.SortFunc(fields, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		_ = unstructured.SetNestedSlice(obj, fields, "metadata", "managedFields")
	}
	return obj
}
