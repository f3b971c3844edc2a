package operator

import (
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/operator-workshop/04-controller-runtime/internal/lease"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// The lab checks that never two replicas write, however a leader loses its lease (behaviour/14, fault/16). This test
// checks what the lab does not see: the cache of a replica that waits, and how a leader ends.
func TestOneOfTwoReplicasWorksAndTheOtherTakesOver(t *testing.T) {
	w := newCluster(t)
	ns := w.namespace()
	kubeconfig := w.operator("replica", ns)
	w.allow("replica", ns, leaseRules(t))
	flags := []string{"--namespaces=" + ns, "--leader-elect", "--leader-election-namespace=" + ns}
	first := started(t, kubeconfig, flags...)
	second := launch(t, kubeconfig, flags...)
	reader := w.token("watches", manifest[rbacv1.ClusterRole](t, "rbac/metrics_reader_role.yaml").Rules)
	w.Eventually(func() bool {
		_, body := programtest.Get(apiserver.Host+"metrics", reader) // of the API server
		return slices.ContainsFunc(series(body, "apiserver_longrunning_requests"), func(line string) bool {
			return strings.Contains(line, `resource="deployments"`) && strings.Contains(line, `scope="namespace"`) &&
				strings.HasSuffix(line, " 2")
		})
	}).Should(gomega.BeTrue(), "both watch the Deployments")

	held, released := &coordinationv1.Lease{}, &coordinationv1.Lease{}
	w.get(ns, lease.Name, held)
	first.Stop()
	w.get(ns, lease.Name, released)
	w.Expect(released.Spec.HolderIdentity).NotTo(gomega.Equal(held.Spec.HolderIdentity), "the lease of the first")
	second.EventuallyPrints("Starting workers", "1m")
	w.Eventually(func() error {
		w.get(ns, lease.Name, held)
		held.Spec.HolderIdentity, held.Spec.LeaseDurationSeconds = new("thief"), new(int32(3600))
		return w.Update(t.Context(), held) // the holder renews it meanwhile
	}).Should(gomega.Succeed())
	w.Eventually(second, "1m").Should(gexec.Exit())
	if second.ExitCode() == 0 {
		t.Error("a leader that lost its lease ended with code 0: its restart would not count as a failure")
	}
}
