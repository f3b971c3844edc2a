package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// token makes a ServiceAccount, with these permissions, and returns a token of it.
func (w *cluster) token(name string, rules []rbacv1.PolicyRule) string {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace(), Name: name}}
	w.create(account)
	if len(rules) > 0 {
		w.allow("system:serviceaccount:"+account.Namespace+":"+name, "", rules)
	}
	asked := &authenticationv1.TokenRequest{}
	w.Expect(w.SubResource("token").Create(w.t.Context(), account, asked)).To(gomega.Succeed())
	return asked.Status.Token
}

// series are the lines of a metric.
func series(body, name string) (all []string) {
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, name+"{") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	w := newCluster(t)
	ns, address := w.namespace(), fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	kubeconfig := w.operator("metrics", ns)
	w.allow("metrics", ns, leaseRules(t))
	w.allow("metrics", "", manifest[rbacv1.ClusterRole](t, "rbac/metrics_auth_role.yaml").Rules)
	reader := w.token("reader", manifest[rbacv1.ClusterRole](t, "rbac/metrics_reader_role.yaml").Rules)
	stranger := w.token("stranger", nil)
	flags := []string{"--namespaces=" + ns, "--leader-elect", "--leader-election-namespace=" + ns}
	p := started(t, kubeconfig, append(flags, "--metrics-bind-address="+address)...)

	w.Eventually(statusOf("https://"+address, "")).Should(gomega.Equal(401)) // it listens
	isFor(t, address, reader, stranger)

	counted := func() []string {
		_, body := programtest.Get("https://"+address+"/metrics", reader)
		return series(body, "myweb_conditions")
	}
	w.Expect(counted()).To(gomega.BeEmpty())
	w.ask(ns, "site")
	w.ask(ns, "page", func(spec *webv1.MyWebSpec) { spec.Replicas = new(int32(0)) })
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "taken"}})
	w.ask(ns, "taken")
	w.served(ns, "site")
	w.served(ns, "page")
	w.Eventually(w.degraded(ns, "taken")).Should(gomega.Equal("True ResourceConflict"))
	w.Eventually(counted).Should(gomega.ConsistOf(
		`myweb_conditions{status="False",type="Available"} 2`, `myweb_conditions{status="True",type="Available"} 1`,
		`myweb_conditions{status="False",type="Progressing"} 3`,
		`myweb_conditions{status="False",type="Degraded"} 2`, `myweb_conditions{status="True",type="Degraded"} 1`))
	_, body := programtest.Get("https://"+address+"/metrics", reader)
	for _, name := range []string{"controller_runtime_reconcile_total", "workqueue_depth", "rest_client_requests_total",
		"controller_runtime_client_consistency_wait_duration_seconds_count"} {
		w.Expect(series(body, name)).NotTo(gomega.BeEmpty(), name)
	}

	standby := fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	q := launch(t, kubeconfig, append(flags, "--metrics-bind-address="+standby)...)
	w.Eventually(statusOf("https://"+standby, reader)).Should(gomega.Equal(200), "a replica that waits can be scraped")
	_, body = programtest.Get("https://"+standby+"/metrics", reader)
	w.Expect(series(body, "myweb_conditions")).To(gomega.BeEmpty(), "a replica that waits would count them once more")
	q.Stop()

	w.Expect(w.DeleteAllOf(t.Context(), &webv1.MyWeb{}, client.InNamespace(ns))).To(gomega.Succeed())
	w.Eventually(counted).Should(gomega.BeEmpty(), "series of MyWebs that are gone")
	p.Stop()
}

// statusOf returns a function that requests the metrics and returns the status code.
func statusOf(address, token string) func() int {
	return func() int {
		code, _ := programtest.Get(address+"/metrics", token)
		return code
	}
}

// isFor checks that the metrics go over TLS to a user who may read them, and to no other user.
func isFor(t *testing.T, address, reader, stranger string) {
	t.Helper()
	for name, test := range map[string]struct {
		token string
		code  int
	}{"no token": {"", 401}, "a token without a permission": {stranger, 403}, "a token with it": {reader, 200}} {
		if code, body := programtest.Get("https://"+address+"/metrics", test.token); code != test.code {
			t.Errorf("%s: got %d, want %d: %s", name, code, test.code, body)
		}
	}
	if code, body := programtest.Get("http://"+address+"/metrics", reader); code == 200 {
		t.Errorf("metrics were sent in the clear: %s", body[:100])
	}
}
