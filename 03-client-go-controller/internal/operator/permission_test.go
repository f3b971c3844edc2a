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
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

// Something that blocks an operator, or one of its MyWebs, and that somebody else has to remove.
type blocked struct {
	name string
	p    *process
	// message is part of what the log has, once, and the condition Degraded with the reason. There is no
	// condition without a reason.
	message, reason string
	// ours selects the requests that it causes. There are at most so many in the window.
	ours func(programtest.Request) bool
	most int
	// remove removes it. Within the given time it is over: the operator noticed.
	remove  func()
	removed time.Time
	over    func(since time.Time) bool
	within  time.Duration
}

const window = 30 * time.Second

// Whatever blocks it, a missing permission, a quota, a port that is taken: the operator reports it in one
// clear line, or in status, retries with backoff, serves what it can meanwhile, and goes on by itself when it is
// over. All are watched over the same half minute.
func TestWhatBlocksIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.namespace("standby")
	f.holdLease("standby", "somebody") // operators that lack a permission to read must not work

	var all []*blocked
	for _, l := range f.permissions() {
		switch {
		case l.resource == "leases":
			all = append(all, f.cannotLead(l))
		case l.reads():
			all = append(all, f.cannotRead(l))
		}
	}
	all = append(all, f.cannotWrite()...)
	begin := time.Now()
	f.served("fine", "web")
	t.Logf("a MyWeb that nothing blocks was served %.1f s after the others were blocked", time.Since(begin).Seconds())
	f.losesALeaseThatItCannotRenew()
	f.Eventually(func() time.Duration { return time.Since(begin) }).Should(gomega.BeNumerically(">", window))

	for _, b := range all {
		f.isReported(b)
	}
	f.areOver(all)
}

// isReported: the operator reported what blocks it, and asked for what it cannot have only so often.
func (f *fixture) isReported(b *blocked) {
	lines := b.p.Logged(b.message)
	requests := f.audit.Of(f.t, b.p.Name)
	n := len(programtest.Filter(requests, func(r programtest.Request) bool {
		return b.ours(r) && r.RequestReceivedTimestamp.Before(requests[0].RequestReceivedTimestamp.Add(window))
	}))
	f.t.Logf("%s: logged in %d lines, %d requests in %s; /readyz answers %d", b.name, len(lines), n,
		window, b.p.probe("/readyz"))
	if len(lines) == 0 || len(lines) > 1 && !b.leads() { // client-go logs each try for a lease
		f.t.Errorf("%s: logged in %d lines: %s", b.name, len(lines), strings.Join(lines, "\n"))
	}
	if n > b.most {
		f.t.Errorf("%s: %d requests", b.name, n)
	}
	if b.reason == "" {
		return
	}
	web := f.get(b.name, "web")
	f.Expect(conditions(web)).To(gomega.HaveKeyWithValue("Degraded", "True "+b.reason), b.name)
	f.Expect(meta.FindStatusCondition(web.Status.Conditions, "Degraded").Message).To(gomega.ContainSubstring(b.message))
	f.Expect(f.events(b.name, "web")).To(gomega.Equal([]string{b.reason}), b.name)
}

func (b *blocked) leads() bool { return strings.HasSuffix(b.name, "-leases") }

// areOver removes everything that blocks and waits until the operators noticed.
func (f *fixture) areOver(all []*blocked) {
	for _, b := range all {
		b.removed = time.Now()
		b.remove()
	}
	f.Eventually(func() int {
		all = slices.DeleteFunc(all, func(b *blocked) bool {
			over, took := b.over(b.removed), time.Since(b.removed)
			if over {
				f.t.Logf("%s: over after %.1f s", b.name, took.Seconds())
			}
			if took > b.within {
				f.t.Errorf("%s: not over after %s", b.name, b.within)
			}
			return over
		})
		return len(all)
	}, "2m", "200ms").Should(gomega.BeZero())
}

// A permission is one verb on one resource.
type permission struct{ verb, resource string }

func (l permission) without() string {
	return "no-" + l.verb + "-" + strings.ReplaceAll(l.resource, "/", "-")
}

// message is the API server's when the permission is missing.
func (l permission) message() string {
	return fmt.Sprintf("cannot %s resource %q", l.verb, l.resource)
}

// permissions are all that config/rbac grants.
func (f *fixture) permissions() (all []permission) {
	for _, rule := range slices.Concat(shippedRules(f.t), leaseRules(f.t)) {
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
				left = append(left,
					rbacv1.PolicyRule{APIGroups: rule.APIGroups, Resources: []string{resource}, Verbs: []string{verb}})
			}
		}
	}
	return left
}

func (l permission) reads() bool             { return l.verb == "list" || l.verb == "watch" }
func (l permission) other(o permission) bool { return o != l }

// cannotRead starts an operator that cannot list, or cannot watch, one of its kinds. It never becomes
// leader. Without list it would not miss anything with this API server, so it is made to list. The
// backoff of an informer is client-go's own: it grows to 30 s, and to twice that by jitter.
func (f *fixture) cannotRead(l permission) *blocked {
	user := l.without()
	f.allow(user, "", keep(shippedRules(f.t), l.other))
	f.allow(user, "standby", leaseRules(f.t))
	flags := []string{"--leader-elect", "--leader-election-namespace=standby"}
	ready := http.StatusOK // synced by a list, and by another one after each retry
	if l.verb == "list" {
		flags = append(flags, "KUBE_FEATURE_WatchListClient=false")
		ready = http.StatusServiceUnavailable
	}
	p := launch(f.t, user, f.user(user), flags...)
	return &blocked{name: user, p: p, message: l.message(), most: 24, within: 85 * time.Second,
		ours: func(r programtest.Request) bool { return r.ObjectRef.Resource == l.resource },
		remove: func() {
			f.Expect(p.probe("/readyz")).To(gomega.Equal(ready), user)
			f.allow(user, "", shippedRules(f.t))
		},
		over: func(since time.Time) bool {
			follows := slices.ContainsFunc(f.audit.Of(f.t, user), func(r programtest.Request) bool {
				return r.ObjectRef.Resource == l.resource && r.Verb == "watch" && r.ResponseStatus.Code == http.StatusOK &&
					r.StageTimestamp.After(since)
			})
			return follows && p.probe("/readyz") == http.StatusOK
		}}
}

// cannotLead starts an operator that cannot take its lease.
func (f *fixture) cannotLead(l permission) *blocked {
	user := l.without()
	namespace := f.namespace(user)
	if l.verb == "update" {
		f.holdLease(namespace, "")
	}
	f.allow(user, "", keep(shippedRules(f.t), permission.reads))
	f.allow(user, namespace, keep(leaseRules(f.t), l.other))
	p := launch(f.t, user, f.user(user), "--leader-elect", "--leader-election-namespace="+namespace)
	return &blocked{name: user, p: p, message: l.message(), most: 60, within: 30 * time.Second,
		ours:   programtest.Request.OfLease,
		remove: func() { f.allow(user, namespace, leaseRules(f.t)) },
		over:   func(time.Time) bool { return len(p.Logged("Starting workers")) > 0 }}
}

// losesALeaseThatItCannotRenew: an operator that can take its lease, but not renew it, ends.
func (f *fixture) losesALeaseThatItCannotRenew() {
	const user = "cannot-renew"
	l := permission{"update", "leases"}
	namespace := f.namespace(user)
	f.allow(user, "", keep(shippedRules(f.t), permission.reads))
	f.allow(user, namespace, keep(leaseRules(f.t), l.other))
	p := started(f.t, user, f.user(user), "--leader-elect", "--leader-election-namespace="+namespace)
	f.Expect(p.ExitCode("20s")).NotTo(gomega.BeZero())
	f.Expect(p.Output()).To(gomega.ContainSubstring("myweb-controller: lost the lease"))
	f.Expect(p.Logged(l.message())).NotTo(gomega.BeEmpty())
}

// cannotWrite starts an operator that lacks another permission in each of some namespaces, and
// is blocked by something else in others. In one nothing blocks it.
func (f *fixture) cannotWrite() (all []*blocked) {
	f.allow(user, "", keep(shippedRules(f.t), permission.reads))
	for _, l := range f.permissions() {
		if l.reads() || l.resource == "leases" || l.verb == "delete" { // delete: only with an admission plugin
			continue
		}
		b := &blocked{name: f.namespace(l.without()), message: l.message(), reason: webv1.ReasonChildRejected}
		f.mayWrite(b.name, l.other)
		b.remove = func() { f.mayWrite(b.name, nil) }
		switch l.resource {
		case "mywebs/status":
			b.reason = ""
		case "events":
			b.reason = ""
			b.remove = func() { f.mayWrite(b.name, nil); f.change(b.name, "web", `{"replicas":1}`) }
		}
		all = append(all, b)
	}
	all = append(all, f.quota(), f.takenPort())
	for _, name := range []string{"quota", "taken-port", f.namespace("fine")} {
		f.mayWrite(name, nil)
		f.create(name, "web", func(spec *webv1.MyWebSpec) {
			if name == "taken-port" {
				spec.NodePortNumber = new(int32(30200))
			}
		})
	}
	kubeconfig := f.user(user)
	p := started(f.t, user, kubeconfig)
	for _, b := range all {
		if !slices.Contains([]string{"quota", "taken-port"}, b.name) {
			f.create(b.name, "web", nil)
		}
		b.p, b.most, b.within = p, 24, time.Minute
		b.ours = func(r programtest.Request) bool { return r.ObjectRef.Namespace == b.name }
		b.over = func(time.Time) bool {
			web := f.get(b.name, "web")
			return completed(web) && conditions(web)["Degraded"] == "False AsExpected" && len(f.events(b.name, "web")) > 0
		}
	}
	return all
}

// mayWrite grants the operator what it needs to write in a namespace; nil grants all of it.
func (f *fixture) mayWrite(namespace string, granted func(permission) bool) {
	f.allow(user, namespace, keep(shippedRules(f.t), func(l permission) bool {
		return !l.reads() && (granted == nil || granted(l))
	}))
}

// quota is a namespace where no ConfigMap can be made any more.
func (f *fixture) quota() *blocked {
	namespace := f.namespace("quota")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"count/configmaps": resource.MustParse("0")}}}
	quotas := f.kube.CoreV1().ResourceQuotas(namespace)
	_, err := quotas.Create(f.t.Context(), quota, metav1.CreateOptions{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.Eventually(func() corev1.ResourceList {
		quota, err = quotas.Get(f.t.Context(), "small", metav1.GetOptions{})
		f.Expect(err).NotTo(gomega.HaveOccurred())
		return quota.Status.Hard
	}).Should(gomega.HaveLen(1))
	f.Eventually(func() error { // the admission of quotas has a cache of its own
		_, err := f.kube.CoreV1().ConfigMaps(namespace).Create(f.t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "probe"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).Should(gomega.MatchError(gomega.ContainSubstring("exceeded quota")))
	return &blocked{name: namespace, reason: webv1.ReasonChildRejected,
		message: "exceeded quota: small, requested: count/configmaps=1", remove: func() {
			f.Expect(quotas.Delete(f.t.Context(), "small", metav1.DeleteOptions{})).To(gomega.Succeed())
		}}
}

// takenPort is a node port that a Service of somebody else holds.
func (f *fixture) takenPort() *blocked {
	namespace := f.namespace("taken-port")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "other"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30200}}}}
	_, err := f.kube.CoreV1().Services("default").Create(f.t.Context(), service, metav1.CreateOptions{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	return &blocked{name: namespace, reason: webv1.ReasonNodePortUnavailable,
		message: "node port 30200 is taken by Service default/other", remove: func() {
			f.Expect(f.kube.CoreV1().Services("default").Delete(f.t.Context(), "other", metav1.DeleteOptions{})).
				To(gomega.Succeed())
		}}
}
