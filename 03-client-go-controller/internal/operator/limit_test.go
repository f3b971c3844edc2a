package operator

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The client has no rate limit: with client-go's default of 5 requests a second, ConfigMaps and Services of
// 200 MyWebs alone would take 80 s. The API server runs alone: controllers and nodes would need the processor.
func TestThereIsNoHiddenLimit(t *testing.T) {
	t.Parallel()
	const many = 200
	f := newFixture(t, crd)
	for i := range many {
		f.create(ns, fmt.Sprint("web-", i), nil)
	}
	begin := time.Now()
	started(t, f.cfg)
	f.Eventually(func() (reported int) {
		list, err := f.web.OperatorV1().MyWebs(ns).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		f.Expect(err).NotTo(gomega.HaveOccurred())
		for _, web := range list.Items {
			if web.Status.ObservedGeneration == web.Generation {
				reported++
			}
		}
		return reported
	}, "75s").Should(gomega.Equal(many), "MyWebs that have their children and a first status")
	t.Logf("children and a first status of %d MyWebs: %.1f s", many, time.Since(begin).Seconds())
}
