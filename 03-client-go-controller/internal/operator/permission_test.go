package operator

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// An obstacle in the way of an operator, or of one of its MyWebs, that somebody else has to remove.
type blocked struct {
	name string
	p    *process
	// sentence is part of what the log says, once, and the condition Degraded with the reason. There is
	// no condition without a reason.
	sentence, reason string
	// ours selects the requests that the obstacle costs. There are at most so many in the window.
	ours func(request) bool
	most int
	// remove removes the obstacle. Then, within a time, it is over: the operator noticed.
	remove func()
	over   func(since time.Time) bool
	within time.Duration
}

const window = 30 * time.Second

// Whatever is in the way, a missing permission, a quota, a port that is taken: the operator says so in one
// clear line, or in status, asks again with pauses, serves what it can meanwhile, and goes on by itself
// when the obstacle is gone. All obstacles are watched over the same half minute.
func TestObstaclesAreToldAndWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.namespace("standby")
	w.holdLease("standby", "somebody") // those who lack a permission to read shall not work

	var all []*blocked
	for _, l := range w.permissions() {
		switch {
		case l.resource == "leases":
			all = append(all, w.cannotLead(l))
		case l.reads():
			all = append(all, w.cannotRead(l))
		}
	}
	all = append(all, w.cannotWrite()...)
	begin := time.Now()
	w.served("fine", "web")
	t.Logf("a MyWeb without an obstacle was served %.1f s after the others met theirs", time.Since(begin).Seconds())
	w.losesALeaseThatItCannotRenew()
	w.Eventually(func() time.Duration { return time.Since(begin) }).Should(gomega.BeNumerically(">", window))

	for _, b := range all {
		w.isToldOf(b)
	}
	w.areOver(all)
}

// isToldOf: the operator told of an obstacle, and asked for what it cannot have only so often.
func (w *world) isToldOf(b *blocked) {
	said := b.p.saying(b.sentence)
	n := len(filter(w.audit.of(w.t, b.p.name), b.ours))
	w.t.Logf("%s: said in %d lines, %d requests in %s; /readyz answers %d", b.name, len(said), n, window, b.p.probe("/readyz"))
	if len(said) == 0 || len(said) > 1 && !b.leads() { // client-go tells of each try for a lease
		w.t.Errorf("%s: said in %d lines: %s", b.name, len(said), strings.Join(said, "\n"))
	}
	if n > b.most {
		w.t.Errorf("%s: %d requests", b.name, n)
	}
	if b.reason == "" {
		return
	}
	web := w.get(b.name, "web")
	w.Expect(conditions(web)).To(gomega.HaveKeyWithValue("Degraded", "True "+b.reason), b.name)
	w.Expect(meta.FindStatusCondition(web.Status.Conditions, "Degraded").Message).To(gomega.ContainSubstring(b.sentence))
	w.Expect(w.events(b.name, "web")).To(gomega.Equal([]string{b.reason}), b.name)
}

func (b *blocked) leads() bool { return strings.HasSuffix(b.name, "-leases") }

// areOver removes all obstacles and waits until the operators noticed.
func (w *world) areOver(all []*blocked) {
	since := time.Now()
	for _, b := range all {
		b.remove()
	}
	w.Eventually(func() int {
		all = slices.DeleteFunc(all, func(b *blocked) bool {
			over, took := b.over(since), time.Since(since)
			if over {
				w.t.Logf("%s: over after %.1f s", b.name, took.Seconds())
			}
			if took > b.within {
				w.t.Errorf("%s: not over after %s", b.name, b.within)
			}
			return over
		})
		return len(all)
	}, "90s", "200ms").Should(gomega.BeZero())
}

// A permission is one verb on one resource.
type permission struct{ verb, resource string }

func (l permission) without() string {
	return "no-" + l.verb + "-" + strings.ReplaceAll(l.resource, "/", "-")
}

// sentence is how the API server says that a permission is missing.
func (l permission) sentence() string {
	return fmt.Sprintf("cannot %s resource %q", l.verb, l.resource)
}

// permissions are all that config/rbac grants.
func (w *world) permissions() (all []permission) {
	for _, rule := range slices.Concat(shippedRules(w.t), leaseRules(w.t)) {
		for verb, resource := range each(rule) {
			all = append(all, permission{verb, resource})
		}
	}
	return all
}

// keep returns what is left of rules when only some permissions are granted.
func keep(rules []rbacv1.PolicyRule, granted func(permission) bool) (left []rbacv1.PolicyRule) {
	for _, rule := range rules {
		for verb, resource := range each(rule) {
			if granted(permission{verb, resource}) {
				left = append(left, rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}})
			}
		}
	}
	return left
}

func (l permission) reads() bool             { return l.verb == "list" || l.verb == "watch" }
func (l permission) changes() bool           { return !l.reads() }
func (l permission) other(o permission) bool { return o != l }

// cannotRead starts an operator that cannot fill one of its caches, or not follow it. It never gets to
// work. Without list it would not miss anything with this API server, so it is made to list. The pauses
// between the tries of an informer are client-go's own: they grow to 30 s, and to twice that by chance.
func (w *world) cannotRead(l permission) *blocked {
	user := l.without()
	w.allow(user, "", keep(shippedRules(w.t), l.other))
	w.allow(user, "standby", leaseRules(w.t))
	flags := []string{"--leader-elect", "--leader-election-namespace=standby"}
	ready := http.StatusOK // filled by a list, and by another one after each pause
	if l.verb == "list" {
		flags = append(flags, "KUBE_FEATURE_WatchListClient=false")
		ready = http.StatusServiceUnavailable
	}
	p := launch(w.t, user, w.user(user), flags...)
	return &blocked{name: user, p: p, sentence: l.sentence(), most: 24, within: 65 * time.Second,
		ours: func(r request) bool { return r.ObjectRef.Resource == l.resource },
		remove: func() {
			w.Expect(p.probe("/readyz")).To(gomega.Equal(ready), user)
			w.allow(user, "", shippedRules(w.t))
		},
		over: func(since time.Time) bool {
			follows := slices.ContainsFunc(w.audit.of(w.t, user), func(r request) bool {
				return r.ObjectRef.Resource == l.resource && r.Verb == "watch" && r.ResponseStatus.Code == http.StatusOK && r.StageTimestamp.After(since)
			})
			return follows && p.probe("/readyz") == http.StatusOK
		}}
}

// cannotLead starts an operator that cannot take its lease.
func (w *world) cannotLead(l permission) *blocked {
	user := l.without()
	namespace := w.namespace(user)
	if l.verb == "update" {
		w.holdLease(namespace, "")
	}
	w.allow(user, "", keep(shippedRules(w.t), permission.reads))
	w.allow(user, namespace, keep(leaseRules(w.t), l.other))
	p := launch(w.t, user, w.user(user), "--leader-elect", "--leader-election-namespace="+namespace)
	return &blocked{name: user, p: p, sentence: l.sentence(), most: 60, within: 30 * time.Second,
		ours:   request.ofLease,
		remove: func() { w.allow(user, namespace, leaseRules(w.t)) },
		over:   func(time.Time) bool { return len(p.saying("Starting workers")) > 0 }}
}

// losesALeaseThatItCannotRenew: an operator that can take its lease, but not renew it, ends.
func (w *world) losesALeaseThatItCannotRenew() {
	const user = "cannot-renew"
	l := permission{"update", "leases"}
	namespace := w.namespace(user)
	w.allow(user, "", keep(shippedRules(w.t), permission.reads))
	w.allow(user, namespace, keep(leaseRules(w.t), l.other))
	p := started(w.t, user, w.user(user), "--leader-elect", "--leader-election-namespace="+namespace)
	w.Expect(p.exitCode("20s")).NotTo(gomega.BeZero())
	w.Expect(p.said.String()).To(gomega.ContainSubstring("myweb-controller: lost the lease"))
	w.Expect(p.saying(l.sentence())).NotTo(gomega.BeEmpty())
}

// cannotWrite starts an operator that lacks another permission in each of some namespaces, and meets
// another obstacle in others. In one it meets none.
func (w *world) cannotWrite() (all []*blocked) {
	w.allow(user, "", keep(shippedRules(w.t), permission.reads))
	for _, l := range w.permissions() {
		if l.reads() || l.resource == "leases" {
			continue
		}
		b := &blocked{name: w.namespace(l.without()), sentence: l.sentence(), reason: webv1.ReasonChildRejected}
		w.mayWrite(b.name, l.other)
		b.remove = func() { w.mayWrite(b.name, nil) }
		switch l.resource {
		case "mywebs/status":
			b.reason = ""
		case "events":
			b.reason = ""
			b.remove = func() { w.mayWrite(b.name, nil); w.change(b.name, "web", `{"replicas":1}`) }
		}
		all = append(all, b)
	}
	all = append(all, w.quota(), w.takenPort())
	for _, name := range []string{"quota", "taken-port", w.namespace("fine")} {
		w.mayWrite(name, nil)
		w.create(name, "web", func(spec *webv1.MyWebSpec) {
			if name == "taken-port" {
				spec.NodePortNumber = new(int32(30200))
			}
		})
	}
	kubeconfig := w.user(user)
	p := started(w.t, user, kubeconfig)
	for _, b := range all {
		if !slices.Contains([]string{"quota", "taken-port"}, b.name) {
			w.create(b.name, "web", nil)
		}
		b.p, b.most, b.within = p, 24, 35*time.Second
		b.ours = func(r request) bool { return r.ObjectRef.Namespace == b.name }
		b.over = func(time.Time) bool {
			web := w.get(b.name, "web")
			return completed(web) && conditions(web)["Degraded"] == "False AsExpected" && len(w.events(b.name, "web")) > 0
		}
	}
	return all
}

// mayWrite grants the operator what it needs to write in a namespace; nil grants all of it.
func (w *world) mayWrite(namespace string, granted func(permission) bool) {
	w.allow(user, namespace, keep(shippedRules(w.t), func(l permission) bool { return !l.reads() && (granted == nil || granted(l)) }))
}

// quota is a namespace where no ConfigMap can be made any more.
func (w *world) quota() *blocked {
	namespace := w.namespace("quota")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")}}}
	quotas := w.kube.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(w.t.Context(), quota, metav1.CreateOptions{})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Eventually(func() corev1.ResourceList {
		quota, err = quotas.Get(w.t.Context(), "small", metav1.GetOptions{})
		w.Expect(err).NotTo(gomega.HaveOccurred())
		return quota.Status.Hard
	}).Should(gomega.HaveLen(1))
	return &blocked{name: namespace, reason: webv1.ReasonChildRejected, sentence: "exceeded quota: small, requested: count/configmaps=1", remove: func() {
		w.Expect(quotas.Delete(w.t.Context(), "small", metav1.DeleteOptions{})).To(gomega.Succeed())
	}}
}

// takenPort is a node port that a Service of somebody else holds.
func (w *world) takenPort() *blocked {
	namespace := w.namespace("taken-port")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30200}}}}
	_, err := w.kube.CoreV1().Services("default").Create(w.t.Context(), service, metav1.CreateOptions{})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	return &blocked{name: namespace, reason: webv1.ReasonNodePortUnavailable, sentence: "node port 30200 is taken by Service default/other", remove: func() {
		w.Expect(w.kube.CoreV1().Services("default").Delete(w.t.Context(), "other", metav1.DeleteOptions{})).To(gomega.Succeed())
	}}
}
