package observe

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/testenv"
)

// A scraped is what an operator exports, by the name of the metric.
type scraped map[string]*dto.MetricFamily

// operators are run once for all tests of the package, and scraped after they did all that they do.
var operators = sync.OnceValues(func() (map[string]scraped, error) {
	cfg, stop, err := testenv.StartAPIServer("../../config/crd")
	if err != nil {
		return nil, err
	}
	defer stop()
	folder, err := os.MkdirTemp("", "observe-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := writeKubeconfig(kubeconfig, cfg); err != nil {
		return nil, err
	}
	all := map[string]scraped{}
	for _, o := range []struct{ impl, chapter, pkg, rest, lease string }{
		{"03", "03-client-go-controller", "./cmd/myweb-controller", "", "kube-public"},
		{"04", "04-controller-runtime", "./cmd/myweb-operator", "--metrics-secure=false", "default"},
	} {
		program := filepath.Join(folder, o.impl)
		build := exec.Command("go", "build", "-o", program, o.pkg)
		build.Dir = filepath.Join("..", "..", "..", o.chapter)
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", o.chapter, err, out)
		}
		args := []string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--leader-elect", "--leader-election-namespace=" + o.lease}
		if o.rest != "" {
			args = append(args, o.rest, "--webhooks=true", "--webhook-port="+freePort())
		}
		if all[o.impl], err = scrape(program, args, cfg); err != nil {
			return nil, fmt.Errorf("operator %s: %w", o.impl, err)
		}
	}
	return all, nil
})

// metricsOf returns what an operator exports; the test is skipped where its source is not.
func metricsOf(t *testing.T, impl string) scraped {
	t.Helper()
	if _, err := os.Stat("../../../04-controller-runtime/go.mod"); err != nil {
		t.Skip("the operators' source is not beside this folder")
	}
	all, err := operators()
	if err != nil {
		t.Fatal(err)
	}
	return all[impl]
}

// scrape runs an operator, gives it work of each sort, and returns its metrics.
func scrape(program string, args []string, cfg *rest.Config) (scraped, error) {
	address := "127.0.0.1:" + freePort()
	var said bytes.Buffer
	cmd := exec.Command(program, append(args, "--metrics-bind-address="+address)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return nil, err
	}
	var found scraped
	var failed error
	g := gomega.NewGomega(func(message string, _ ...int) { failed = fmt.Errorf("%s\n%s", message, &said) })
	g.Eventually(func() error { return work(c) }, 60*time.Second, 200*time.Millisecond).Should(gomega.Succeed())
	g.Eventually(func() (n float64, err error) {
		if found, err = get("http://" + address + "/metrics"); err != nil {
			return 0, err
		}
		return found.sum("controller_runtime_reconcile_total") + found.sum("myweb_sync_total"), nil
	}, 60*time.Second, 200*time.Millisecond).Should(gomega.BeNumerically(">", 2))
	return found, failed
}

// work makes a MyWeb and changes it.
func work(c client.Client) error {
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
		"metadata": map[string]any{"namespace": "default", "generateName": "site-"},
		"spec":     map[string]any{"image": "nginx"}}}
	return c.Create(ctx, web)
}

func (s scraped) sum(name string) (sum float64) {
	for _, m := range s[name].GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}

func get(url string) (scraped, error) {
	answer, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %w", url, answer.Status, err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(data))
}

func writeKubeconfig(path string, cfg *rest.Config) error {
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	return clientcmd.WriteToFile(*file, path)
}

func freePort() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
