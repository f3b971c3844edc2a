package operator

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

func TestItSaysInOneLineWhyItCannotStart(t *testing.T) {
	w := newCluster(t)
	kubeconfig := w.user("nobody")
	unreachable := testenv.WriteKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}, "")
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no API server":      {[]string{"--kubeconfig", unreachable}, "connection refused"},
		"no such kubeconfig": {[]string{"--kubeconfig", unreachable + "-none"}, "set KUBECONFIG or --kubeconfig"},
		"an unknown flag":    {[]string{"--colour"}, "flag provided but not defined: -colour"},
		"no worker":          {[]string{"--kubeconfig", kubeconfig, "--max-concurrent-reconciles=0"}, "must be at least 1"},
		"an address that is none": {[]string{"--kubeconfig", kubeconfig, "--health-probe-bind-address=nowhere"},
			"nowhere"},
		"a lease nowhere": {[]string{"--kubeconfig", kubeconfig, "--leader-elect"}, "needs --leader-election-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--health-probe-bind-address=0"}, test.args...)
			out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("%v, printed:\n%s\nwant %q", err, out, test.want)
			}
			if n := strings.Count(string(out), "\n"); n != 1 && name != "an unknown flag" { // which shows all flags
				t.Errorf("printed %d lines:\n%s", n, out)
			}
		})
	}
}

func TestWithoutAPermissionItIsNotReadySaysWhyAndStops(t *testing.T) {
	w := newCluster(t)
	ns, address := w.namespace(), fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	rules := shippedRules(t)
	w.allow("hindered", ns, []rbacv1.PolicyRule{rules[1], rules[2], rules[3], rules[4]}) // without configmaps and services
	kubeconfig := w.user("hindered")
	p := launch(t, kubeconfig, "--namespaces="+ns, "--health-probe-bind-address="+address)
	probe := func(path string) func() int {
		return func() int {
			code, _ := programtest.Get("http://"+address+path, "")
			return code
		}
	}
	w.Eventually(probe("/healthz")).Should(gomega.Equal(200))
	p.EventuallyPrints("services is forbidden", "1m")
	w.Expect(probe("/readyz")()).To(gomega.Equal(500))
	w.Consistently(func() int { return strings.Count(p.Output(), "services is forbidden") }, "3s").
		Should(gomega.Equal(1), "it is said once")
	w.allow("hindered", ns, rules)
	w.Eventually(probe("/readyz")).Should(gomega.Equal(200), "the permission was given")
	w.ask(ns, "site")
	w.served(ns, "site")
	p.Terminate()

	p = launch(t, w.user("powerless"), "--namespaces="+ns)
	p.EventuallyPrints("is forbidden", "1m")
	if took := p.Terminate(); took.Seconds() > 6 { // the grace for work in progress is 8 s
		t.Errorf("it did nothing yet, and stopped within %s", took)
	}
}

func TestItSaysThatTheCRDIsMissing(t *testing.T) {
	_, err := NewManager(testenv.NewAPIServer(t),
		Options{Manager: ctrl.Options{HealthProbeBindAddress: "0", Metrics: server.Options{BindAddress: "0"}}})
	if err == nil || !strings.Contains(err.Error(), "has no MyWebs: install the CRD (kubectl apply -f config/crd)") {
		t.Errorf("got %v", err)
	}
}
