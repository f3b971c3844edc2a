package operator

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

// Of several replicas one leads, and when the leader ends, in whatever way, another replica takes over. Here each
// replica is a separate user, so the audit log distinguishes them. There is always work to do.
func TestOneLeadsAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.keepChanging()

	a := f.replica("replica-a")
	a.EventuallyPrints("Starting workers", "10s")
	b := f.replica("replica-b")
	f.releasesTheLease(a, b)
	c := f.replica("replica-c")
	f.diesWithTheLease(b, c)
	f.losesTheLeaseToAThief(c)

	f.wroteOneAtATime(a, b, c)
}

// replica starts the program and waits until its caches have synced.
func (f *fixture) replica(user string) *process {
	f.t.Helper()
	p := launch(f.t, user, f.operatorUser(user), "--leader-elect", "--leader-election-namespace=default")
	f.Eventually(func() int { return p.probe("/readyz") }).Should(gomega.Equal(200))
	return p
}

// keepChanging repeatedly changes a MyWeb until the test ends.
func (f *fixture) keepChanging() {
	f.create("default", "restless", nil)
	ctx, stop := context.WithCancel(f.t.Context())
	stopped := make(chan struct{})
	f.t.Cleanup(func() { stop(); <-stopped })
	go func() {
		defer close(stopped)
		for i := 0; ctx.Err() == nil; i++ {
			_, err := f.web.OperatorV1().MyWebs("default").Patch(ctx, "restless", types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"pageContentHtml":"%d"}}`, i), metav1.PatchOptions{})
			if err != nil && ctx.Err() == nil {
				f.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
}

// releasesTheLease: a leader that is asked to stop releases the lease, so the next leader need not wait.
func (f *fixture) releasesTheLease(old, next *process) {
	begin := time.Now()
	stopped := old.Stop()
	next.EventuallyPrints("Starting workers", "20s")
	f.t.Logf("SIGTERM: the leader ended after %.1f s, the next one worked after %.1f s", stopped.Seconds(),
		time.Since(begin).Seconds())
	if stopped < releaseTimeout { // otherwise the API server was too slow for the release
		f.Expect(time.Since(begin)).To(gomega.BeNumerically("<", 10*time.Second),
			"a lease that is not released expires after 15 s")
	}
}

// diesWithTheLease: a leader that is killed cannot release the lease, and the others wait until it has expired.
func (f *fixture) diesWithTheLease(old, next *process) {
	begin := time.Now()
	old.Kill()
	next.EventuallyPrints("Starting workers", "20s")
	f.t.Logf("SIGKILL: the next one worked after %.1f s", time.Since(begin).Seconds())
}

// exitsWithoutTheLease: the kubelet would start the program again, without any state.
func (f *fixture) exitsWithoutTheLease(p *process) {
	f.t.Helper()
	f.Expect(p.ExitCode("15s")).NotTo(gomega.BeZero())
	f.Expect(p.Output()).To(gomega.ContainSubstring("\nmyweb-controller: lost the lease myweb-operator: "))
}

// losesTheLeaseToAThief: another client writes a different holder into the lease.
func (f *fixture) losesTheLeaseToAThief(p *process) {
	f.holdLease("default", "thief")
	begin := time.Now()
	f.exitsWithoutTheLease(p)
	f.t.Logf("stolen: the old leader ended after %.1f s", time.Since(begin).Seconds())
	for _, r := range programtest.Writes(f.audit.Of(f.t, p.Name)) {
		if r.RequestReceivedTimestamp.After(begin.Add(leaseRenew + leaseRetry + 5*time.Second)) {
			f.t.Errorf("%s had lost the lease %s before, and sent: %s", p.Name, r.RequestReceivedTimestamp.Sub(begin), r)
		}
	}
}

// holdLease gives the lease to another holder, for an hour.
func (f *fixture) holdLease(namespace, holder string) {
	f.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: new(int32(3600)),
		AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro())}}
	leases := f.kube.CoordinationV1().Leases(namespace)
	f.Eventually(func() error { // the holder renews it meanwhile
		if _, err := leases.Create(f.t.Context(), lease, metav1.CreateOptions{}); err == nil {
			return nil
		}
		old, err := leases.Get(f.t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.ResourceVersion = old.ResourceVersion
		_, err = leases.Update(f.t.Context(), lease, metav1.UpdateOptions{})
		return err
	}).Should(gomega.Succeed())
}

// wroteOneAtATime: the writes of each replica end before the next replica begins to write.
func (f *fixture) wroteOneAtATime(replicas ...*process) {
	var end time.Time
	for _, p := range replicas {
		sent := programtest.Writes(f.audit.Of(f.t, p.Name))
		f.Expect(sent).NotTo(gomega.BeEmpty(), p.Name)
		first, last := sent[0], sent[len(sent)-1]
		f.t.Logf("%s sent %d writes, from %s to %s", p.Name, len(sent), first.RequestReceivedTimestamp.Format("04:05.000"),
			last.StageTimestamp.Format("04:05.000"))
		f.Expect(first.RequestReceivedTimestamp).To(gomega.BeTemporally(">", end),
			"%s began before the one before had ended", p.Name)
		end = last.StageTimestamp
	}
}
