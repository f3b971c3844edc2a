package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// conditionCounts is a metric of our own; those of the queue, the loop and the client come with
// controller-runtime. It counts, at each scrape, the MyWebs in the cache: so it cannot be out of step with
// them, and has nine series at most, however many MyWebs there are. Which one it is, `kubectl get` tells.
type conditionCounts struct{ webs client.Reader }

var conditionCountsDesc = prometheus.NewDesc("myweb_conditions",
	"MyWebs by type and status of a condition; Unknown when the operator has not told it yet.",
	[]string{"type", "status"}, nil)

// conditionTypes are the ones that are counted.
var conditionTypes = []string{webv1.ConditionAvailable, webv1.ConditionProgressing, webv1.ConditionDegraded}

// ServeConditionCounts is a manager.Runnable: it keeps the metric registered until ctx ends. The manager
// runs it while it leads. The replicas that wait would count the same MyWebs once more.
func ServeConditionCounts(webs client.Reader) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		counts := conditionCounts{webs}
		if err := metrics.Registry.Register(counts); err != nil {
			return fmt.Errorf("register myweb_conditions: %w", err)
		}
		<-ctx.Done()
		metrics.Registry.Unregister(counts)
		return nil
	}
}

// Describe implements prometheus.Collector.
func (c conditionCounts) Describe(to chan<- *prometheus.Desc) { to <- conditionCountsDesc }

// Collect implements prometheus.Collector.
func (c conditionCounts) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var webs webv1.MyWebList
	if err := c.webs.List(ctx, &webs, client.UnsafeDisableDeepCopy); err != nil { // nothing is changed
		to <- prometheus.NewInvalidMetric(conditionCountsDesc, err)
		return
	}
	for series, n := range countConditions(webs.Items) {
		to <- prometheus.MustNewConstMetric(conditionCountsDesc, prometheus.GaugeValue, float64(n), series[0], series[1])
	}
}

// countConditions returns how many MyWebs have each condition in each status.
func countConditions(webs []webv1.MyWeb) map[[2]string]int {
	counts := map[[2]string]int{}
	for i := range webs {
		for _, kind := range conditionTypes {
			status := metav1.ConditionUnknown
			if c := meta.FindStatusCondition(webs[i].Status.Conditions, kind); c != nil {
				status = c.Status
			}
			counts[[2]string{kind, string(status)}]++
		}
	}
	return counts
}
