package operator

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// Demanded by the alerts and dashboards of chapter 06. The metrics of the queue, the loop and the client come
// with controller-runtime.

// conditionCounts counts, at each scrape, the MyWebs in the cache. So it cannot be out of step with them, and
// has nine series at most, however many MyWebs there are.
type conditionCounts struct{ webs client.Reader }

var conditionCountsDesc = prometheus.NewDesc("myweb_conditions",
	"MyWebs by type and status of a condition; Unknown when the operator has not reported it yet.",
	[]string{"type", "status"}, nil)

// serveConditionCounts is a manager.RunnableFunc: it keeps the metric registered until ctx ends. The manager
// runs it while it leads: replicas that wait would count the same MyWebs once more.
func serveConditionCounts(webs client.Reader) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		defer metrics.Registry.Unregister(conditionCounts{webs})
		if err := metrics.Registry.Register(conditionCounts{webs}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}

// Describe implements prometheus.Collector.
func (c conditionCounts) Describe(to chan<- *prometheus.Desc) { to <- conditionCountsDesc }

// Collect implements prometheus.Collector.
func (c conditionCounts) Collect(to chan<- prometheus.Metric) {
	var webs webv1.MyWebList
	if err := c.webs.List(context.Background(), &webs, client.UnsafeDisableDeepCopy); err != nil { // nothing is changed
		to <- prometheus.NewInvalidMetric(conditionCountsDesc, err)
		return
	}
	for series, n := range countConditions(webs.Items) {
		to <- prometheus.MustNewConstMetric(conditionCountsDesc, prometheus.GaugeValue, float64(n), series[:]...)
	}
}

// countConditions returns how many MyWebs have each condition in each status.
func countConditions(webs []webv1.MyWeb) map[[2]string]int {
	counts := map[[2]string]int{}
	for i := range webs {
		for _, name := range []string{owned.Available, owned.Progressing, owned.Degraded} {
			status := metav1.ConditionUnknown
			if c := meta.FindStatusCondition(webs[i].Status.Conditions, name); c != nil {
				status = c.Status
			}
			counts[[2]string{name, string(status)}]++
		}
	}
	return counts
}
