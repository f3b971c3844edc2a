package observe

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// folder has the alerts, dashboardFile the dashboard.
const (
	folder        = "../../observe"
	dashboardFile = folder + "/dashboard.json"
)

// scraped holds the metrics of the operator, by name.
type scraped map[string]*dto.MetricFamily

// operator runs the operator of chapter 04 once for all tests of the package, and scrapes it after it has done work of
// each sort.
var operator = sync.OnceValues(func() (scraped, error) {
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
	program := filepath.Join(folder, "operator")
	build := exec.Command("go", "build", "-o", program, "./cmd/myweb-operator")
	build.Dir = "../../../04-controller-runtime"
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	return scrape(program, []string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0", "--leader-elect",
		"--leader-election-namespace=default", "--metrics-secure=false", "--webhooks=true", "--webhook-port=" + freePort()},
		cfg)
})

// last are the metrics that come last: after a webhook was called, a reconcile ended, a MyWeb's status was written, and
// an object was read after it.
var last = []any{"controller_runtime_webhook_latency_seconds", "myweb_conditions", "workqueue_work_duration_seconds",
	"controller_runtime_reconcile_time_seconds", "controller_runtime_client_consistency_wait_duration_seconds"}

// metrics returns the metrics that the operator exports. The test is skipped where the operator's source is missing.
func metrics(t *testing.T) scraped {
	t.Helper()
	if _, err := os.Stat("../../../04-controller-runtime/go.mod"); err != nil {
		t.Skip("the operators' source is not beside this folder")
	}
	found, err := operator()
	if err != nil {
		t.Fatal(err)
	}
	return found
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
	g.Eventually(func() (names []string, err error) {
		if err := work(c); err != nil {
			return nil, err
		}
		found, err = get("http://" + address + "/metrics")
		return slices.Collect(maps.Keys(found)), err
	}, 60*time.Second, 500*time.Millisecond).Should(gomega.ContainElements(last))
	return found, failed
}

// work makes a MyWeb, which calls the webhooks and starts a reconcile.
func work(c client.Client) error {
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
		"metadata": map[string]any{"namespace": "default", "generateName": "site-"},
		"spec":     map[string]any{"image": "nginx"}}}
	return c.Create(context.Background(), web)
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
