package observe

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
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

// last are the metrics that come last: after a webhook was called, a reconcile ended, a MyWeb's status was written, and
// an object was read after it.
var last = []any{"controller_runtime_webhook_latency_seconds", "myweb_conditions", "workqueue_work_duration_seconds",
	"controller_runtime_reconcile_time_seconds", "controller_runtime_client_consistency_wait_duration_seconds"}

var (
	once  sync.Once
	found scraped
)

// metrics returns the metrics that the operator exports. The test is skipped where the operator's source is missing.
func metrics(t *testing.T) scraped {
	t.Helper()
	if _, err := os.Stat("../../../04-controller-runtime/go.mod"); err != nil {
		t.Skip("the operators' source is not beside this folder")
	}
	once.Do(func() { scrape(t) })
	if found == nil {
		t.Fatal("there are no metrics: the first test has the reason")
	}
	return found
}

// scrape runs the operator of chapter 04 once for all tests of the package, gives it work of each sort, and keeps its
// metrics.
func scrape(t *testing.T) {
	g := gomega.NewWithT(t)
	cfg := testenv.NewAPIServer(t, "../../config/crd")
	program, err := gexec.Build("./cmd/myweb-operator", "-C", "../../../04-controller-runtime")
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(gexec.CleanupBuildArtifacts)
	address := fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	programtest.Start(t, program, "--kubeconfig="+testenv.WriteKubeconfig(t, cfg, ""), "--health-probe-bind-address=0",
		"--leader-elect", "--leader-election-namespace=default", "--metrics-secure=false", "--metrics-bind-address="+address,
		"--webhooks=true", fmt.Sprint("--webhook-port=", testenv.FreePort(t)))
	c, err := client.New(cfg, client.Options{})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	var got scraped
	g.Eventually(func() (names []string, err error) {
		if err := work(c); err != nil {
			return nil, err
		}
		got, err = get("http://" + address + "/metrics")
		return slices.Collect(maps.Keys(got)), err
	}, 60*time.Second, 500*time.Millisecond).Should(gomega.ContainElements(last))
	found = got
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
	code, body := programtest.Get(url, "")
	if code != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %s", url, code, body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(strings.NewReader(body))
}
