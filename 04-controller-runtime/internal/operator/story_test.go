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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// A story is what happens to MyWebs while the operator runs.
type story struct {
	*cluster
	user, ns string
}

func TestTheStoryOfAMyWeb(t *testing.T) {
	w := newCluster(t)
	s := story{cluster: w, user: "story", ns: "default"}
	kubeconfig := s.operator(s.user)
	s.allow(s.user, "default", leaseRules(t))
	lead := []string{"--leader-elect", "--leader-election-namespace=default"}
	p := started(t, program, kubeconfig, lead...)

	s.servesTheSample()
	s.keepsToTheBudget("one", 1)
	s.keepsToTheBudget("three", 3)
	s.rollsThePodsForAChangedPage("one")
	s.changesChildrenInPlace("one")
	s.keepsTheNodePort("one")
	s.bringsDeletedChildrenBack("one")
	s.recreatesTheSameNameAtOnce("three")
	s.readsNothingAfterTheCachesFilled()

	quiet := len(programtest.Writes(s.settled(s.user)))
	t.Logf("stopped within %s of SIGTERM", p.Stop())
	p = started(t, program, kubeconfig, lead...)
	s.Consistently(func() int { return len(programtest.Writes(s.audit.Of(t, s.user))) }, "3s").
		Should(gomega.Equal(quiet), "writes in steady state and after a restart")
	for _, name := range []string{"myweb", "one", "three"} {
		s.remove(s.ns, name)
		s.Eventually(func() map[string]bool { return s.pods(s.ns, name) }).Should(gomega.BeEmpty())
	}
	s.stopsRetryingInANamespaceThatIsGoing()
	p.Stop()
	started(t, program, kubeconfig, "KUBE_FEATURE_WatchListClient=false").Stop() // as with an older API server
	s.usesEveryPermission()
}

func (s story) servesTheSample() {
	sample := manifest[webv1.MyWeb](s.t, "samples/myweb.yaml")
	s.create(&sample)
	s.Expect(s.served(s.ns, "myweb").Status.NodePort).To(gomega.Equal(int32(30100)))
	s.Eventually(func() []string { return s.events(s.ns, "myweb") }).Should(gomega.Equal([]string{"Normal Complete"}))
}

// keepsToTheBudget: one MyWeb costs three child writes and at most two of its status.
func (s story) keepsToTheBudget(name string, replicas int32) {
	begin := time.Now()
	s.ask(s.ns, name, func(spec *webv1.MyWebSpec) { spec.Replicas = &replicas })
	web := s.served(s.ns, name)
	stops := int(time.Since(begin) / (4 * time.Second)) // a rollout that stands still is reported in between
	s.Expect(web.Status.ReadyReplicas).To(gomega.Equal(replicas))
	s.Expect(web.Finalizers).To(gomega.BeEmpty())
	cost := map[string]int{}
	for _, r := range programtest.Writes(s.settled(s.user)) {
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

func (s story) readsNothingAfterTheCachesFilled() {
	for _, r := range s.settled(s.user) {
		if r.ObjectRef.Resource != "" && (r.Verb == "get" || r.Verb == "list") {
			s.t.Errorf("%s was sent: reads come from the cache", r)
		}
	}
}

func (s story) rollsThePodsForAChangedPage(name string) {
	before := s.pods(s.ns, name)
	s.change(s.ns, name, func(spec *webv1.MyWebSpec) { spec.PageContentHTML = new("<p>changed</p>") })
	s.served(s.ns, name)
	s.Eventually(func() map[string]bool { return s.pods(s.ns, name) }).Should(gomega.HaveLen(1))
	for pod := range s.pods(s.ns, name) {
		s.Expect(before).NotTo(gomega.HaveKey(pod), "a pod with the old page")
	}
}

// uids are those of the children that there are.
func (s story) uids(name string) map[string]types.UID {
	s.t.Helper()
	found := map[string]types.UID{}
	for kind, obj := range s.children(s.ns, name) {
		found[kind] = obj.GetUID()
	}
	return found
}

func (s story) changesChildrenInPlace(name string) {
	before, service := s.uids(name), s.children(s.ns, name)["Service"].(*corev1.Service)
	s.change(s.ns, name, func(spec *webv1.MyWebSpec) {
		spec.Image, spec.NodePortNumber, spec.Replicas = "registry.example:5000/nginx:1.29", new(int32(30021)), new(int32(2))
	})
	web := s.served(s.ns, name)
	s.Expect(web.Status.NodePort).To(gomega.Equal(int32(30021)))
	s.Expect(web.Status.ReadyReplicas).To(gomega.Equal(int32(2)))
	s.Expect(s.uids(name)).To(gomega.Equal(before))
	s.Expect(s.children(s.ns, name)["Service"].(*corev1.Service).Spec.ClusterIP).To(gomega.Equal(service.Spec.ClusterIP))
}

func (s story) keepsTheNodePort(name string) {
	s.change(s.ns, name, func(spec *webv1.MyWebSpec) { spec.NodePortNumber = nil })
	s.Expect(s.served(s.ns, name).Status.NodePort).To(gomega.Equal(int32(30021)))
}

func (s story) bringsDeletedChildrenBack(name string) {
	before := s.uids(name)
	made := func() int {
		return len(programtest.Filter(programtest.Writes(s.settled(s.user)), func(r programtest.Request) bool {
			return r.ObjectRef.Name == name && r.ResponseStatus.Code == http.StatusCreated
		}))
	}
	s.Expect(made()).To(gomega.Equal(3))
	for _, obj := range s.children(s.ns, name) {
		s.Expect(s.Delete(s.t.Context(), obj)).To(gomega.Succeed())
	}
	s.Eventually(func(g gomega.Gomega) {
		now := s.uids(name)
		g.Expect(now).To(gomega.HaveLen(3))
		for kind, uid := range now {
			g.Expect(uid).NotTo(gomega.Equal(before[kind]), kind)
		}
	}).Should(gomega.Succeed())
	s.Expect(s.served(s.ns, name).Status.NodePort).To(gomega.Equal(int32(30021)), "on the port that it had")
	s.Expect(made()).To(gomega.Equal(6), "each one is made again once")
	s.Expect(s.events(s.ns, name)).NotTo(gomega.ContainElement(gomega.HavePrefix("Warning")))
}

// recreatesTheSameNameAtOnce: while the children of the one before are still there.
func (s story) recreatesTheSameNameAtOnce(name string) {
	before := s.uids(name)
	port := s.web(s.ns, name).Status.NodePort
	s.Expect(s.Delete(s.t.Context(), s.web(s.ns, name))).To(gomega.Succeed())
	web := s.ask(s.ns, name, func(spec *webv1.MyWebSpec) { spec.NodePortNumber = &port }) // which the old one still has
	states, err := s.Watch(s.t.Context(), &webv1.MyWebList{}, client.InNamespace(s.ns),
		client.MatchingFields{"metadata.name": name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: web.ResourceVersion}})
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
	for kind, obj := range s.children(s.ns, name) {
		s.Expect(obj.GetUID()).NotTo(gomega.Equal(before[kind]), kind)
		s.Expect(metav1.GetControllerOf(obj).UID).To(gomega.Equal(web.UID), kind)
	}
	s.settled(s.user)
	for _, e := range s.events(s.ns, name) {
		s.Expect(e).NotTo(gomega.HavePrefix("Warning"))
	}
}

// stopsRetryingInANamespaceThatIsGoing: while a finalizer keeps the namespace, nothing more is sent.
func (s story) stopsRetryingInANamespaceThatIsGoing() {
	s.ns = s.namespace()
	s.ask(s.ns, "site")
	s.served(s.ns, "site")
	s.Eventually(func() []string { return s.events(s.ns, "site") }).ShouldNot(gomega.BeEmpty(), "it is recorded beside")
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.ns, Name: "kept", Finalizers: []string{"example.com/keep"}}}
	s.create(kept)
	s.Expect(s.Delete(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.ns}})).To(gomega.Succeed())
	s.Eventually(func() bool { return s.get(s.ns, "site", &appsv1.Deployment{}) }).Should(gomega.BeFalse())
	s.Eventually(func() bool { return s.get(s.ns, "site", &webv1.MyWeb{}) }).Should(gomega.BeFalse())
	quiet := len(s.settled(s.user))
	s.Consistently(func() int { return len(slices.DeleteFunc(s.audit.Of(s.t, s.user), programtest.Request.OfLease)) },
		"2s").Should(gomega.Equal(quiet))
	s.Expect(s.Get(s.t.Context(), client.ObjectKeyFromObject(kept), kept)).To(gomega.Succeed())
	kept.Finalizers = nil
	s.Expect(s.Update(s.t.Context(), kept)).To(gomega.Succeed())
	s.Eventually(func() bool { return s.get("", s.ns, &corev1.Namespace{}) }).Should(gomega.BeFalse())
}

// usesEveryPermission: what config/rbac grants is used, and nothing that was asked for was denied.
func (s story) usesEveryPermission() {
	granted, used := map[string]bool{}, map[string]bool{}
	for _, rule := range slices.Concat(shippedRules(s.t), leaseRules(s.t)) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource] = true
			}
		}
	}
	s.settled(s.user)
	for _, r := range s.audit.Of(s.t, s.user) {
		if r.ObjectRef.Resource == "" {
			continue // which kinds there are, everybody may ask
		}
		// whose end refuses new objects
		if r.ResponseStatus.Code == http.StatusForbidden && !strings.HasPrefix(r.ObjectRef.Namespace, "web-") {
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
	unused := maps.Clone(granted)
	maps.DeleteFunc(unused, func(permission string, _ bool) bool { return used[permission] })
	s.t.Logf("permissions used: %s", strings.Join(slices.Sorted(maps.Keys(used)), ", "))
	s.t.Logf("permissions unused: %d", len(unused))
	if diff := cmp.Diff(granted, used); diff != "" {
		s.t.Errorf("granted (-) and used (+) differ:\n%s", diff)
	}
}
