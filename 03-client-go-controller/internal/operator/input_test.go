package operator

import (
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/03-client-go-controller/internal/testenv"
)

func TestAFailedStartIsReportedInOneLine(t *testing.T) {
	t.Parallel()
	cluster := "--kubeconfig=" + testenv.WriteKubeconfig(t, newFixture(t).cfg, "") // without the CRD
	unreachable := testenv.WriteKubeconfig(t, &rest.Config{Host: "https://127.0.0.1:1"}, "")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no API server":      {[]string{"--kubeconfig=" + unreachable}, "connection refused"},
		"no such kubeconfig": {[]string{"--kubeconfig=/nowhere"}, "set KUBECONFIG or --kubeconfig"},
		"no CRD": {[]string{cluster},
			"does not serve MyWebs: install the CRD first (kubectl apply -f config/crd)"},
		"an unknown flag": {[]string{"--colour"}, "flag provided but not defined: -colour"},
		"no worker": {[]string{cluster, "--max-concurrent-reconciles=0"},
			"--max-concurrent-reconciles is 0: it must be at least 1"},
		"metrics for everybody": {[]string{cluster, "--metrics-bind-address=:8080"},
			`--metrics-bind-address is ":8080": it must be 0 or 127.0.0.1:port`},
		"metrics on every address": {[]string{cluster, "--metrics-bind-address=0.0.0.0:8080"},
			"it must be 0 or 127.0.0.1:port"},
		"probes at no address": {[]string{cluster, "--health-probe-bind-address=nowhere"},
			"--health-probe-bind-address: listen tcp: address nowhere: missing port"},
		"a port in use": {[]string{cluster, "--health-probe-bind-address=" + taken.Addr().String()},
			"bind: address already in use: choose another one, or 0 for none"},
		"no such format": {[]string{cluster, "--log-format=xml"}, `--log-format is "xml": it must be json or text`},
		"no such level":  {[]string{cluster, "--log-level=loud"}, "-log-level"},
		"a lease nowhere": {[]string{cluster, "--leader-elect"},
			"--leader-elect outside a cluster needs --leader-election-namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			out, err := exec.CommandContext(t.Context(), program,
				append([]string{"--health-probe-bind-address=0"}, test.args...)...).CombinedOutput()
			lines := strings.SplitAfter(strings.TrimSpace(string(out)), "\n")
			if err == nil || !strings.Contains(lines[0], test.want) {
				t.Errorf("%v, printed:\n%s\nwant %q", err, out, test.want)
			}
			if flags := strings.Contains(string(out), "Usage of"); len(lines) > 1 && !flags {
				t.Errorf("printed %d lines:\n%s", len(lines), out)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %s to report it", took)
			}
		})
	}
}

// When the CRD is removed, its MyWebs are deleted. The operator logs it, continues, and serves MyWebs again
// when the CRD is back.
func TestTheCRDIsRemovedAndRestored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, crd)
	p := started(t, f.operator())
	f.create("default", "before", nil)
	f.reported("default", "before")

	options := envtest.CRDInstallOptions{Paths: []string{crd}}
	f.Expect(envtest.UninstallCRDs(f.cfg, options)).To(gomega.Succeed())
	p.EventuallyPrints("the server could not find the requested resource (get mywebs.operator.k8s-summit.org)", "30s")
	f.Expect(p.probe("/healthz")).To(gomega.Equal(200))
	_, err := envtest.InstallCRDs(f.cfg, options)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	f.create("default", "after", nil)
	f.reported("default", "after")
	p.Terminate()
}
