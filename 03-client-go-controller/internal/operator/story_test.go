package operator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

const (
	user = "myweb-operator"
	ns   = "default"
)

// A story is what happens to MyWebs while the operator runs.
type story struct{ *fixture }

func TestTheStoryOfAMyWeb(t *testing.T) {
	t.Parallel()
	s := story{newFixture(t)}
	kubeconfig := s.operatorUser(user)
	p := started(t, user, kubeconfig, "--leader-elect", "--leader-election-namespace=default")

	s.keepsToTheBudget("one", 1)
	s.keepsToTheBudget("three", 3)
	s.rollsThePodsForAChangedPage("one")
	s.changesChildrenInPlace("one")
	s.keepsTheNodePort("one")
	s.bringsDeletedChildrenBack("one")
	s.recreatesTheSameNameAtOnce("three")
	s.leavesNothing("one")

	s.readsNothingAfterTheCachesSynced()
	t.Logf("stopped within %s of SIGTERM", p.Stop())
	started(t, user, kubeconfig, "KUBE_FEATURE_WatchListClient=false").Stop() // as with an older API server
	s.usesEveryPermission()
}

// keepsToTheBudget: one MyWeb costs three child writes and at most two of its status.
func (s story) keepsToTheBudget(name string, replicas int32) {
	begin := time.Now()
	s.create(ns, name, func(spec *webv1.MyWebSpec) { spec.Replicas = &replicas })
	web := s.served(ns, name)
	stops := int(time.Since(begin) / (4 * time.Second)) // a rollout that stands still is reported in between
	s.Expect(web.Status.ReadyReplicas).To(gomega.Equal(replicas))
	s.Expect(web.Finalizers).To(gomega.BeEmpty())
	cost := map[string]int{}
	for _, r := range programtest.Writes(s.settled(user)) {
		if r.ObjectRef.Name == name {
			cost[r.ObjectRef.Resource+" "+r.Verb]++
		}
	}
	status := cost["mywebs update"]
	delete(cost, "mywebs update")
	s.t.Logf("a MyWeb with %d replicas cost, from creation to completed: %v, and %d status writes", replicas, cost, status)
	s.Expect(cost).To(gomega.Equal(map[string]int{"configmaps patch": 1, "deployments patch": 1, "services patch": 1}))
	s.Expect(status).To(gomega.BeNumerically("<=", 2+stops))
}

func (s story) readsNothingAfterTheCachesSynced() {
	for _, r := range s.settled(user) {
		if r.ObjectRef.Resource != "" && (r.Verb == "get" || r.Verb == "list") {
			s.t.Errorf("%s was sent: reads come from the caches", r)
		}
	}
}

func (s story) rollsThePodsForAChangedPage(name string) {
	before := s.pods(name)
	s.change(ns, name, `{"pageContentHtml":"<p>changed</p>"}`)
	s.served(ns, name)
	s.Expect(s.child("ConfigMap", name).(*corev1.ConfigMap).Data).
		To(gomega.Equal(map[string]string{"index.html": "<p>changed</p>"}))
	s.Eventually(func() []string { return s.pods(name) }).Should(gomega.HaveLen(1))
	s.Expect(s.pods(name)).NotTo(gomega.Equal(before), "a pod with the old page")
}

// pods are the names of a MyWeb's pods.
func (s story) pods(name string) (names []string) {
	list, err := s.kube.CoreV1().Pods(ns).List(s.t.Context(),
		metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + name})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	for _, p := range list.Items {
		names = append(names, p.Name)
	}
	return names
}

var childKinds = []string{"ConfigMap", "Deployment", "Service"}

// childIn reads a child; it is nil when there is none.
func (f *fixture) childIn(namespace, kind, name string) (obj metav1.Object) {
	f.t.Helper()
	var err error
	switch ctx, o := f.t.Context(), (metav1.GetOptions{}); kind {
	case "ConfigMap":
		obj, err = f.kube.CoreV1().ConfigMaps(namespace).Get(ctx, name, o)
	case "Deployment":
		obj, err = f.kube.AppsV1().Deployments(namespace).Get(ctx, name, o)
	case "Service":
		obj, err = f.kube.CoreV1().Services(namespace).Get(ctx, name, o)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	f.Expect(err).NotTo(gomega.HaveOccurred())
	return obj
}

func (s story) child(kind, name string) metav1.Object { return s.childIn(ns, kind, name) }

// uids are those of the children that there are.
func (f *fixture) uids(namespace, name string) map[string]types.UID {
	f.t.Helper()
	found := map[string]types.UID{}
	for _, kind := range childKinds {
		if obj := f.childIn(namespace, kind, name); obj != nil {
			found[kind] = obj.GetUID()
		}
	}
	return found
}

func (s story) changesChildrenInPlace(name string) {
	before, service := s.uids(ns, name), s.child("Service", name).(*corev1.Service)
	s.change(ns, name, `{"image":"registry.example:5000/nginx:1.29","nodePortNumber":30100,"replicas":2}`)
	web := s.served(ns, name)
	s.Expect(web.Status.NodePort).To(gomega.Equal(int32(30100)))
	s.Expect(web.Status.ReadyReplicas).To(gomega.Equal(int32(2)))
	s.Expect(s.uids(ns, name)).To(gomega.Equal(before))
	s.Expect(s.child("Service", name).(*corev1.Service).Spec.ClusterIP).To(gomega.Equal(service.Spec.ClusterIP))
	pods := s.child("Deployment", name).(*appsv1.Deployment).Spec
	s.Expect(*pods.Replicas).To(gomega.Equal(int32(2)))
	s.Expect(pods.Template.Spec.Containers[0].Image).To(gomega.Equal("registry.example:5000/nginx:1.29"))
}

func (s story) keepsTheNodePort(name string) {
	s.change(ns, name, `{"nodePortNumber":null}`)
	web := s.served(ns, name)
	s.Expect(web.Status.NodePort).To(gomega.Equal(int32(30100)))
	s.Expect(s.child("Service", name).(*corev1.Service).Spec.Ports[0].NodePort).To(gomega.Equal(int32(30100)))
}

func (s story) bringsDeletedChildrenBack(name string) {
	before := s.uids(ns, name)
	made := func() int { return len(s.made(ns, name)) }
	s.Expect(made()).To(gomega.Equal(3))
	s.Expect(s.kube.CoreV1().ConfigMaps(ns).Delete(s.t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
	s.Expect(s.kube.AppsV1().Deployments(ns).Delete(s.t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
	s.Expect(s.kube.CoreV1().Services(ns).Delete(s.t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
	s.Eventually(func(g gomega.Gomega) {
		now := s.uids(ns, name)
		g.Expect(now).To(gomega.HaveLen(3))
		for kind, uid := range now {
			g.Expect(uid).NotTo(gomega.Equal(before[kind]), kind)
		}
	}).Should(gomega.Succeed())
	s.served(ns, name)
	s.settled(user)
	s.Expect(made()).To(gomega.Equal(6), "each one is made again once")
}

// made are the requests that made a child of a MyWeb.
func (f *fixture) made(namespace, name string) []programtest.Request {
	f.t.Helper()
	return programtest.Filter(programtest.Writes(f.settled(user)), func(r programtest.Request) bool {
		return r.ObjectRef.Namespace == namespace && r.ObjectRef.Name == name && r.ResponseStatus.Code == http.StatusCreated
	})
}

// recreatesTheSameNameAtOnce: while the children of the one before are still there.
func (s story) recreatesTheSameNameAtOnce(name string) {
	before := s.uids(ns, name)
	s.Expect(s.web.OperatorV1().MyWebs(ns).Delete(s.t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
	web := s.create(ns, name, func(spec *webv1.MyWebSpec) { spec.Replicas = new(int32(1)) })
	states, err := s.web.OperatorV1().MyWebs(ns).Watch(s.t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, ResourceVersion: web.ResourceVersion})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	defer states.Stop()
	for web = range watched(states) {
		if c := meta.FindStatusCondition(web.Status.Conditions, webv1.ConditionDegraded); c != nil {
			s.Expect(c.Status).To(gomega.Equal(metav1.ConditionFalse), "Degraded: %s", c.Message)
		}
		if completed(web) {
			break
		}
	}
	s.Expect(completed(web)).To(gomega.BeTrue())
	s.Eventually(func() []string { return s.pods(name) }).Should(gomega.HaveLen(1))
	for kind, uid := range s.uids(ns, name) {
		s.Expect(uid).NotTo(gomega.Equal(before[kind]), kind)
		s.Expect(metav1.GetControllerOf(s.child(kind, name)).UID).To(gomega.Equal(web.UID), kind)
	}
	s.settled(user)
	events, err := s.kube.EventsV1().Events(ns).List(s.t.Context(), metav1.ListOptions{FieldSelector: "type=Warning"})
	s.Expect(err).NotTo(gomega.HaveOccurred())
	for _, e := range events.Items {
		if e.Regarding.Kind == "MyWeb" {
			s.t.Errorf("event %s: %s", e.Reason, e.Note)
		}
	}
}

func (s story) leavesNothing(name string) {
	s.Expect(s.web.OperatorV1().MyWebs(ns).Delete(s.t.Context(), name, metav1.DeleteOptions{})).To(gomega.Succeed())
	s.Eventually(func() map[string]types.UID { return s.uids(ns, name) }).Should(gomega.BeEmpty())
	s.Eventually(func() []string { return s.pods(name) }).Should(gomega.BeEmpty())
}

// usesEveryPermission: what config/rbac grants is used, and nothing that was asked for was denied.
func (s story) usesEveryPermission() {
	granted, used := map[string]bool{}, map[string]bool{}
	for _, rule := range slices.Concat(shippedRules(s.t), leaseRules(s.t)) {
		for verb, resource := range each(rule) {
			granted[verb+" "+resource] = true
		}
	}
	s.settled(user)
	for _, r := range s.audit.Of(s.t, user) {
		if r.ObjectRef.Resource == "" {
			continue // which kinds there are, everybody may ask
		}
		if r.ResponseStatus.Code == http.StatusForbidden {
			s.t.Errorf("denied: %s", r)
		}
		resource := strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
		used[r.Verb+" "+resource] = true
		if r.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated {
			used["create "+resource] = true // an apply that makes an object needs both
		}
		if r.Verb == "patch" && used["create "+resource] {
			used["delete "+resource] = true // of a child: fault/19-owner-references needs it, see config/rbac
		}
	}
	s.t.Logf("permissions used: %s", strings.Join(slices.Sorted(maps.Keys(used)), ", "))
	if diff := cmp.Diff(granted, used); diff != "" {
		s.t.Errorf("granted (-) and used (+) differ:\n%s", diff)
	}
}

// each yields the verbs of a rule with each of its resources.
func each(rule rbacv1.PolicyRule) func(yield func(verb, resource string) bool) {
	return func(yield func(verb, resource string) bool) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !yield(verb, resource) {
					return
				}
			}
		}
	}
}
