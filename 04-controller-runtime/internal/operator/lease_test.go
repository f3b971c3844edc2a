package operator

import (
	"syscall"
	"testing"

	"github.com/onsi/gomega"

	coordinationv1 "k8s.io/api/coordination/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/test/programtest"
)

// holder returns the holder of the lease in a namespace, empty when there is none.
func (w *cluster) holder(namespace string) string {
	lease := &coordinationv1.Lease{}
	if !w.get(namespace, leaseName, lease) || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestOneOfTwoReplicasWorksAndTheOtherTakesOver(t *testing.T) {
	w := newCluster(t)
	ns := w.namespace()
	var replicas [2]*programtest.Process
	for i, user := range []string{"first", "second"} {
		kubeconfig := w.operator(user, ns)
		w.allow(user, ns, leaseRules(t))
		flags := []string{"--namespaces=" + ns, "--leader-elect", "--leader-election-namespace=" + ns}
		if i == 0 {
			replicas[i] = started(t, program, kubeconfig, flags...)
		} else {
			replicas[i] = launch(t, program, kubeconfig, flags...)
		}
	}
	begun := func(user string) int { // watches: the caches of both have synced
		return len(programtest.Filter(w.audit.Of(t, user), func(r programtest.Request) bool { return r.Verb == "watch" }))
	}
	w.Eventually(func() int { return begun("second") }).Should(gomega.BeNumerically(">=", 4))
	w.ask(ns, "site")
	w.served(ns, "site")
	w.Expect(programtest.Writes(w.settled("second"))).To(gomega.BeEmpty(), "only one writes")

	first := w.holder(ns)
	replicas[0].Signal(syscall.SIGSTOP) // it hangs, and its lease runs out
	w.Eventually(func() string { return w.holder(ns) }, "40s").ShouldNot(gomega.Or(gomega.Equal(first), gomega.BeEmpty()))
	w.change(ns, "site", func(spec *webv1.MyWebSpec) { spec.PageContentHTML = new("taken over") })
	w.served(ns, "site")
	before := len(programtest.Writes(w.settled("first")))
	replicas[0].Signal(syscall.SIGCONT)
	if code := replicas[0].ExitCode("20s"); code == 0 {
		t.Error("a leader that lost its lease ended with code 0")
	}
	w.Expect(programtest.Writes(w.settled("first"))).To(gomega.HaveLen(before), "it wrote after its lease had run out")

	replicas[1].Stop()
	w.Expect(w.holder(ns)).To(gomega.BeEmpty(), "the next leader should not have to wait")
	w.Expect(w.Delete(t.Context(), w.web(ns, "site"))).To(gomega.Succeed())
}
