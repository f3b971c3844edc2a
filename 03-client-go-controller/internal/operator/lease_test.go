package operator

import (
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The lab has two replicas, and a leader that stops, dies or loses its lease (behaviour/14, fault/16). Kubernetes
// restarts a leader that ends: the restart must count as a failure.
func TestALeaderThatLostItsLeaseFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, crd)
	p := started(t, f.operator(), "--leader-elect", "--leader-election-namespace=default")
	leases := f.kube.CoordinationV1().Leases("default")
	f.Eventually(func() error { // the holder renews it meanwhile
		lease, err := leases.Get(t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("thief"), new(int32(3600))
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		return err
	}).Should(gomega.Succeed())
	f.Eventually(p, "15s").Should(gexec.Exit())
	f.Expect(p.ExitCode()).NotTo(gomega.BeZero())
	f.Expect(p.Output()).To(gomega.ContainSubstring("\nmyweb-controller: lost the lease myweb-operator: "))
}
