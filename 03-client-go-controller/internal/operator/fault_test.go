package operator

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

// What befalls an operator: rollouts that get stuck, crashes, an API server that hangs.
func TestFaults(t *testing.T) {
	t.Parallel()
	s := story{newFixture(t)}
	kubeconfig := s.operatorUser(user)

	p := started(t, user, kubeconfig)
	s.showsItsMetricsAndProbes(p)
	s.reportsAStuckRollout()
	p.Stop()

	s.survivesACrashAfterEachWrite(kubeconfig)
	s.survivesCrashesAtAnyTime(kubeconfig)
	s.stopsWhileTheAPIServerHangs(kubeconfig)
}

func (s story) showsItsMetricsAndProbes(p *process) {
	s.create(ns, "measured", nil)
	s.served(ns, "measured")
	s.Expect(p.probe("/healthz")).To(gomega.Equal(http.StatusOK))
	s.Expect(p.probe("/readyz")).To(gomega.Equal(http.StatusOK))
	metrics := p.scrape()
	for _, name := range []string{
		`workqueue_depth{name="myweb"}`, `workqueue_adds_total{name="myweb"}`, `workqueue_retries_total{name="myweb"}`,
		`workqueue_queue_duration_seconds_count{name="myweb"}`, `workqueue_work_duration_seconds_count{name="myweb"}`,
		`rest_client_requests_total{code="201",host="`, `rest_client_request_duration_seconds_count{host="`,
		`myweb_sync_total{result="success"}`, `myweb_sync_duration_seconds_count`, `process_cpu_seconds_total`,
		`go_goroutines`,
	} {
		if !strings.Contains(metrics, "\n"+name) {
			s.t.Errorf("there is no metric %s", name)
		}
	}
}

// reportsAStuckRollout: somebody lets the pods run nowhere, with fields that the operator does not own, so
// it does not undo that. It reports it, and that the old pod still serves.
func (s story) reportsAStuckRollout() {
	s.create(ns, "stuck", func(spec *webv1.MyWebSpec) { spec.Replicas = new(int32(1)) })
	s.served(ns, "stuck")
	s.patchDeployment("stuck", `{"spec":{"template":{"spec":{"nodeSelector":{"planet":"mars"}}}}}`)
	s.change(ns, "stuck", `{"image":"nginx:1.29"}`)
	s.Eventually(func() string {
		return s.child("Deployment", "stuck").(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image
	}).Should(gomega.Equal("nginx:1.29"))
	s.patchDeployment("stuck", `{"spec":{"progressDeadlineSeconds":1}}`)
	s.Eventually(func(g gomega.Gomega) {
		web := s.get(ns, "stuck")
		g.Expect(conditions(web)).To(gomega.Equal(map[string]string{"Available": "True Serving",
			"Degraded": "True ProgressDeadlineExceeded", "Progressing": "False ProgressDeadlineExceeded"}))
		g.Expect(web.Status.Completed).To(gomega.BeFalse())
		g.Expect(web.Status.ReadyReplicas).To(gomega.Equal(int32(1)))
	}).Should(gomega.Succeed())
	s.patchDeployment("stuck", `{"spec":{"progressDeadlineSeconds":600,"template":{"spec":{"nodeSelector":null}}}}`)
	web := s.served(ns, "stuck")
	s.Expect(conditions(web)).To(gomega.Equal(fine))
	s.Eventually(func() []string { return s.events(ns, "stuck") }).Should(gomega.Equal(
		[]string{"Complete", "ProgressDeadlineExceeded", "Recovered", "Complete"}))
}

// fine are the conditions of a MyWeb that is fully served by pods.
var fine = map[string]string{"Available": "True Serving", "Degraded": "False AsExpected",
	"Progressing": "False Complete"}

// conditions are status and reason of each, all of the current generation.
func conditions(web *webv1.MyWeb) map[string]string {
	found := map[string]string{}
	for _, c := range web.Status.Conditions {
		if c.ObservedGeneration == web.Generation {
			found[c.Type] = string(c.Status) + " " + c.Reason
		}
	}
	return found
}

func (s story) patchDeployment(name, patch string) {
	s.t.Helper()
	_, err := s.kube.AppsV1().Deployments(ns).Patch(s.t.Context(), name, types.StrategicMergePatchType,
		[]byte(patch), metav1.PatchOptions{})
	s.Expect(err).NotTo(gomega.HaveOccurred())
}

// survivesACrashAfterEachWrite: whichever write was the last one before the process died, the next one
// brings the MyWeb to the same state, and makes no child twice.
func (s story) survivesACrashAfterEachWrite(kubeconfig string) {
	var died []int
	for n := 1; n <= 5; n++ {
		name := fmt.Sprint("crash-", n)
		written := func() int { return len(s.writesFor(name)) }
		s.create(ns, name, func(spec *webv1.MyWebSpec) { spec.Replicas = new(int32(1)) })
		p := launch(s.t, user, kubeconfig)
		s.Eventually(written, "20s", "1ms").Should(gomega.BeNumerically(">=", n))
		p.Kill()
		s.settled(user)
		died = append(died, written())
		p = started(s.t, user, kubeconfig)
		s.isAsAnyOther(name)
		p.Stop()
		s.Expect(written()).To(gomega.BeNumerically("<=", 5+1), "at most one more than without the crash")
	}
	s.t.Logf("killed after so many of five writes: %v", died)
}

// writesFor are what changed a MyWeb or its children.
func (f *fixture) writesFor(name string) []programtest.Request {
	return programtest.Filter(programtest.Writes(f.audit.Of(f.t, user)), func(r programtest.Request) bool {
		return r.ObjectRef.Name == name
	})
}

// isAsAnyOther: served by one pod, and each child was made once, whatever happened.
func (s story) isAsAnyOther(name string) {
	s.t.Helper()
	web := s.served(ns, name)
	s.Expect(conditions(web)).To(gomega.Equal(fine))
	s.Expect(s.uids(ns, name)).To(gomega.HaveLen(3))
	made := map[string]int{}
	for _, r := range s.made(ns, name) {
		made[r.ObjectRef.Resource]++
	}
	for resource, times := range made { // the answer to a process that died may be missing
		if times > 1 {
			s.t.Errorf("the one of %s for MyWeb %s was made %d times", resource, name, times)
		}
	}
}

// survivesCrashesAtAnyTime: ten of them, while MyWebs come into being.
func (s story) survivesCrashesAtAnyTime(kubeconfig string) {
	const crashes, webs = 10, 20
	for crash := range crashes {
		p := launch(s.t, user, kubeconfig)
		for i := range webs / crashes {
			s.create(ns, fmt.Sprintf("any-time-%d", crash*webs/crashes+i), func(spec *webv1.MyWebSpec) {
				spec.Replicas = new(int32(1))
			})
		}
		<-time.After(rand.N(300 * time.Millisecond)) // no condition to await: any time
		p.Kill()
	}
	before := len(programtest.Writes(s.settled(user)))
	p := started(s.t, user, kubeconfig)
	for i := range webs {
		s.isAsAnyOther(fmt.Sprint("any-time-", i))
	}
	s.t.Logf("%d MyWebs survived %d crashes; %d writes were left to the last start", webs, crashes,
		len(programtest.Writes(s.settled(user)))-before)
	p.Stop()
}

// stopsWhileTheAPIServerHangs: a process that is asked to stop is gone within 10 s, whether the API server
// answers or not: while it starts, while it waits for the lease, and in the middle of its work.
func (s story) stopsWhileTheAPIServerHangs(kubeconfig string) {
	flags := []string{"--leader-elect", "--leader-election-namespace=default"}
	working := started(s.t, user, kubeconfig, flags...)
	waiting := s.replica("replica-waiting")
	working.idle()
	before := len(s.audit.Of(s.t, user))
	for i := range 20 {
		s.create(ns, fmt.Sprint("hanging-", i), nil)
	}
	s.Eventually(func() int { return len(s.audit.Of(s.t, user)) }, "10s", "1ms").
		Should(gomega.BeNumerically(">", before+3))
	apiserver := s.apiserver()
	s.Expect(apiserver.Signal(syscall.SIGSTOP)).To(gomega.Succeed())
	defer func() { s.Expect(apiserver.Signal(syscall.SIGCONT)).To(gomega.Succeed()) }()
	starting := launch(s.t, "starting", kubeconfig)
	s.Eventually(func() error { // it listens before it asks
		c, err := net.Dial("tcp", starting.probes)
		if err == nil {
			_ = c.Close()
		}
		return err
	}).Should(gomega.Succeed())

	var all sync.WaitGroup
	for _, p := range []*process{starting, waiting, working} {
		all.Go(func() {
			took := p.Terminate()
			s.t.Logf("while the API server hangs, %s ends %.1f s after SIGTERM", p.Name, took.Seconds())
			if p != working && took > 6*time.Second { // who has begun something waits for it, for 8 s
				s.t.Errorf("%s had nothing to bring to an end", p.Name)
			}
		})
	}
	all.Wait()
}

// apiserver is the process of the cluster's API server.
func (f *fixture) apiserver() *os.Process {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(filepath.Dir(f.local.AuditLog), "kube-apiserver.pid"))
	f.Expect(err).NotTo(gomega.HaveOccurred())
	var record struct{ PID int }
	f.Expect(json.Unmarshal(data, &record)).To(gomega.Succeed())
	p, err := os.FindProcess(record.PID)
	f.Expect(err).NotTo(gomega.HaveOccurred())
	return p
}

// events are the reasons of the events of a MyWeb, oldest first.
func (f *fixture) events(namespace, name string) (reasons []string) {
	f.t.Helper()
	list, err := f.kube.EventsV1().Events(namespace).List(f.t.Context(), metav1.ListOptions{})
	f.Expect(err).NotTo(gomega.HaveOccurred())
	for _, e := range list.Items { // by name, which ends with the time
		if e.Regarding.Kind == "MyWeb" && e.Regarding.Name == name {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}
