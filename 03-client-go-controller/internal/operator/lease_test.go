package operator

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// With several replicas one leads, and when it ends, however that happens, another one takes over. Each
// replica is a user of its own here, so the audit log tells them apart. There is always work to do.
func TestOneLeadsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	waiting := w.waitsForTheLeaseOfAnother()
	w.keepChanging()

	a := w.replica("replica-a")
	a.eventuallySays("Starting workers", "10s")
	b := w.replica("replica-b")
	w.releasesTheLease(a, b)
	c := w.replica("replica-c")
	w.diesWithTheLease(b, c)
	d := w.replica("replica-d")
	w.oversleepsTheLease(c, d)
	w.losesTheLeaseToAThief(d)

	w.wroteOneAtATime(a, b, c, d)
	waiting()
}

// replica starts the program and waits until its caches are filled.
func (w *world) replica(user string) *process {
	w.t.Helper()
	p := launch(w.t, user, w.operatorUser(user), "--leader-elect", "--leader-election-namespace=default")
	w.Eventually(func() int { return p.probe("/readyz") }).Should(gomega.Equal(200))
	return p
}

// keepChanging changes a MyWeb, again and again, until the test ends; not while w.rest is locked.
func (w *world) keepChanging() {
	w.create("default", "restless", nil)
	ctx, stop := context.WithCancel(w.t.Context())
	stopped := make(chan struct{})
	w.t.Cleanup(func() { stop(); <-stopped })
	go func() {
		defer close(stopped)
		for i := 0; ctx.Err() == nil; i++ {
			w.rest.Lock()
			_, err := w.web.OperatorV1().MyWebs("default").Patch(ctx, "restless", types.MergePatchType,
				fmt.Appendf(nil, `{"spec":{"pageContentHtml":"%d"}}`, i), metav1.PatchOptions{})
			w.rest.Unlock()
			if err != nil && ctx.Err() == nil {
				w.t.Error(err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
}

// releasesTheLease: who is asked to stop gives the lease back, so that the next one need not wait.
func (w *world) releasesTheLease(old, next *process) {
	begin := time.Now()
	stopped := old.stop()
	next.eventuallySays("Starting workers", "3s")
	w.t.Logf("SIGTERM: the leader ended after %.1f s, the next one worked after %.1f s", stopped.Seconds(), time.Since(begin).Seconds())
	w.Expect(time.Since(begin)).To(gomega.BeNumerically("<", 3*time.Second))
}

// diesWithTheLease: who is killed cannot give it back; the others wait until it has run out.
func (w *world) diesWithTheLease(old, next *process) {
	begin := time.Now()
	old.kill()
	next.eventuallySays("Starting workers", "20s")
	w.t.Logf("SIGKILL: the next one worked after %.1f s", time.Since(begin).Seconds())
}

// oversleepsTheLease: who was suspended for longer than its lease wakes up in the middle of its work, and
// must not go on with it. To leave it some work, the next leader is suspended too, for a moment. It falls
// asleep at rest: a request that is on its way already cannot be called back.
func (w *world) oversleepsTheLease(old, next *process) {
	w.rest.Lock()
	w.served("default", "restless")
	begin := time.Now()
	old.signal(syscall.SIGSTOP)
	w.rest.Unlock()
	next.eventuallySays("Starting workers", "20s")
	w.t.Logf("SIGSTOP: the next one worked after %.1f s", time.Since(begin).Seconds())
	w.Eventually(func() int { return len(writes(w.audit.of(w.t, next.name))) }).Should(gomega.BeNumerically(">", 0))
	next.signal(syscall.SIGSTOP)
	w.create("default", "undone", nil)
	begin = time.Now()
	old.signal(syscall.SIGCONT)
	old.eventuallySays("the lease is not held any more", "5s") // it tried to write, and was not let
	next.signal(syscall.SIGCONT)
	w.exitsWithoutTheLease(old)
	w.t.Logf("SIGCONT: the old leader ended after %.1f s", time.Since(begin).Seconds())
	for _, r := range w.audit.of(w.t, old.name) {
		if r.changes() && r.RequestReceivedTimestamp.After(begin) {
			w.t.Errorf("%s woke up and sent: %s", old.name, r)
		}
	}
	w.served("default", "undone")
}

// exitsWithoutTheLease: whoever started the program starts it again, from nothing.
func (w *world) exitsWithoutTheLease(p *process) {
	w.t.Helper()
	w.Expect(p.exitCode("15s")).NotTo(gomega.BeZero())
	lines := p.lines()
	w.Expect(lines[len(lines)-1].text).To(gomega.HavePrefix("myweb-controller: lost the lease myweb-operator: "))
	w.Expect(len(p.saying(`"level":"ERROR"`))).To(gomega.BeNumerically("<=", concurrent), "what each worker could not write, once")
}

// losesTheLeaseToAThief: somebody writes another holder into the lease.
func (w *world) losesTheLeaseToAThief(p *process) {
	begin := time.Now()
	w.holdLease("default", "thief")
	w.exitsWithoutTheLease(p)
	w.t.Logf("stolen: the old leader ended after %.1f s", time.Since(begin).Seconds())
	for _, r := range writes(w.audit.of(w.t, p.name)) {
		if r.RequestReceivedTimestamp.After(begin.Add(2 * leaseRetry)) {
			w.t.Errorf("%s had lost the lease %s before, and sent: %s", p.name, r.RequestReceivedTimestamp.Sub(begin), r)
		}
	}
}

// holdLease lets another one hold the lease, for an hour.
func (w *world) holdLease(namespace, holder string) {
	w.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: leaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: new(int32(3600)),
		AcquireTime: new(metav1.NowMicro()), RenewTime: new(metav1.NowMicro())}}
	leases := w.kube.CoordinationV1().Leases(namespace)
	w.Eventually(func() error { // the holder renews it meanwhile
		if _, err := leases.Create(w.t.Context(), lease, metav1.CreateOptions{}); err == nil {
			return nil
		}
		old, err := leases.Get(w.t.Context(), leaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		lease.ResourceVersion = old.ResourceVersion
		_, err = leases.Update(w.t.Context(), lease, metav1.UpdateOptions{})
		return err
	}).Should(gomega.Succeed())
}

// wroteOneAtATime: the writes of each replica end before those of the next one begin.
func (w *world) wroteOneAtATime(replicas ...*process) {
	var end time.Time
	for _, p := range replicas {
		sent := writes(w.audit.of(w.t, p.name))
		w.Expect(sent).NotTo(gomega.BeEmpty(), p.name)
		first, last := sent[0], sent[len(sent)-1]
		w.t.Logf("%s sent %d writes, from %s to %s", p.name, len(sent), first.RequestReceivedTimestamp.Format("04:05.000"), last.StageTimestamp.Format("04:05.000"))
		w.Expect(first.RequestReceivedTimestamp).To(gomega.BeTemporally(">", end), "%s began before the one before had ended", p.name)
		end = last.StageTimestamp
	}
}

// waitsForTheLeaseOfAnother starts a replica whose lease somebody else holds. What it did in the first 30 s
// is judged by the function that is returned.
func (w *world) waitsForTheLeaseOfAnother() (judge func()) {
	const user, within = "replica-waiting", 30 * time.Second
	namespace := w.namespace("elsewhere")
	w.holdLease(namespace, "somebody")
	w.allow(user, "", shippedRules(w.t))
	w.allow(user, namespace, leaseRules(w.t))
	begin := time.Now()
	p := launch(w.t, user, w.user(user), "--leader-elect", "--leader-election-namespace="+namespace)
	return func() {
		w.Eventually(func() bool { return time.Since(begin) > within }).Should(gomega.BeTrue())
		w.Expect(p.probe("/readyz")).To(gomega.Equal(200))
		w.Expect(p.probe("/healthz")).To(gomega.Equal(200))
		w.Expect(p.saying("The lease is held")).To(gomega.HaveLen(1))
		w.Expect(p.saying("The lease is held")[0]).To(gomega.ContainSubstring("somebody"))
		asked := filter(w.audit.of(w.t, user), func(r request) bool {
			return r.ofLease() && r.RequestReceivedTimestamp.Before(begin.Add(within))
		})
		w.t.Logf("a replica that waits asked for the lease %d times in %s, and wrote nothing", len(asked), within)
		w.Expect(len(asked)).To(gomega.BeNumerically("<", 40))
		w.Expect(filter(w.audit.of(w.t, user), request.changes)).To(gomega.BeEmpty())
		p.stop()
	}
}
