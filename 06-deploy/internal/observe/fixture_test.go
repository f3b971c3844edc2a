package observe

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/onsi/gomega"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/testenv"
	"example.com/operator-workshop/06-deploy/test/programtest"
)

// folder has the alerts, dashboardFile the dashboard.
const (
	folder        = "../../observe"
	dashboardFile = folder + "/dashboard.json"
)

// scraped holds the metrics of the operator, by name.
type scraped map[string]*dto.MetricFamily

// exports are the metrics that the operator exports, when a test has asked for them.
var exports scraped

// last are the metrics that come last: after a webhook was called, a reconcile ended, a MyWeb's status was written, and
// an object was read after it.
var last = []any{"controller_runtime_webhook_latency_seconds", "myweb_conditions", "workqueue_work_duration_seconds",
	"controller_runtime_reconcile_time_seconds", "controller_runtime_client_consistency_wait_duration_seconds"}

// metrics runs the operator of chapter 04 once for all tests of the package, and returns its metrics after it has done
// work of each sort. The test is skipped where the operator's source is missing.
func metrics(t *testing.T) scraped {
	t.Helper()
	if _, err := os.Stat("../../../04-controller-runtime/go.mod"); err != nil {
		t.Skip("the operators' source is not beside this folder")
	}
	if exports != nil {
		return exports
	}
	cfg := testenv.NewAPIServer(t, "../../config/crd")
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	program, address := filepath.Join(t.TempDir(), "operator"), testenv.FreeAddress(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/myweb-operator")
	build.Dir = "../../../04-controller-runtime"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the operator: %v\n%s", err, out)
	}
	p := programtest.Start(t, program, "--kubeconfig="+testenv.WriteKubeconfig(t, cfg, ""),
		"--health-probe-bind-address=0", "--leader-elect", "--leader-election-namespace=default", "--webhooks=true",
		fmt.Sprint("--webhook-port=", testenv.FreePort(t)), "--metrics-secure=false", "--metrics-bind-address="+address)
	defer p.Terminate()
	gomega.NewWithT(t).Eventually(func() (names []string, err error) {
		// A new MyWeb calls the webhooks and starts a reconcile.
		web := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
			"metadata": map[string]any{"namespace": "default", "generateName": "site-"},
			"spec":     map[string]any{"image": "nginx"}}}
		if err := c.Create(t.Context(), web); err != nil {
			return nil, err
		}
		exports, err = get("http://" + address + "/metrics")
		return slices.Collect(maps.Keys(exports)), err
	}, 60*time.Second, 500*time.Millisecond).Should(gomega.ContainElements(last...))
	return exports
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
