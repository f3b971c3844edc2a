package operator

import (
	"encoding/json"
	"fmt"
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
)

// TestWhatTheKubeletSees checks metrics, probes, and an end in time, also while the API server hangs.
func TestWhatTheKubeletSees(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubeconfig := f.operatorUser(user)

	p := started(t, user, kubeconfig)
	f.showsItsMetricsAndProbes(p)
	p.Stop()

	f.stopsWhileTheAPIServerHangs(kubeconfig)
}

func (f *fixture) showsItsMetricsAndProbes(p *process) {
	f.create(ns, "measured", nil)
	f.served(ns, "measured")
	f.Expect(p.probe("/healthz")).To(gomega.Equal(http.StatusOK))
	f.Expect(p.probe("/readyz")).To(gomega.Equal(http.StatusOK))
	metrics := p.scrape()
	for _, name := range []string{
		`workqueue_depth{name="myweb"}`, `workqueue_adds_total{name="myweb"}`, `workqueue_retries_total{name="myweb"}`,
		`workqueue_queue_duration_seconds_count{name="myweb"}`, `workqueue_work_duration_seconds_count{name="myweb"}`,
		`rest_client_requests_total{code="201",host="`, `rest_client_request_duration_seconds_count{host="`,
		`process_cpu_seconds_total`, `go_goroutines`,
	} {
		if !strings.Contains(metrics, "\n"+name) {
			f.t.Errorf("there is no metric %s", name)
		}
	}
}

// stopsWhileTheAPIServerHangs: a process that is asked to stop ends within 10 s, whether the API server
// answers or not: while the process starts, while it waits for the lease, and in the middle of its work.
func (f *fixture) stopsWhileTheAPIServerHangs(kubeconfig string) {
	flags := []string{"--leader-elect", "--leader-election-namespace=default"}
	working := started(f.t, user, kubeconfig, flags...)
	waiting := f.replica("replica-waiting")
	working.idle()
	before := len(f.audit.Of(f.t, user))
	for i := range 20 {
		f.create(ns, fmt.Sprint("hanging-", i), nil)
	}
	f.Eventually(func() int { return len(f.audit.Of(f.t, user)) }, "10s", "1ms").
		Should(gomega.BeNumerically(">", before+3))
	apiserver := f.apiserver()
	f.Expect(apiserver.Signal(syscall.SIGSTOP)).To(gomega.Succeed())
	defer func() { f.Expect(apiserver.Signal(syscall.SIGCONT)).To(gomega.Succeed()) }()
	starting := launch(f.t, "starting", kubeconfig)
	f.Eventually(func() error { // it listens before it asks
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
			f.t.Logf("while the API server hangs, %s ends %.1f s after SIGTERM", p.Name, took.Seconds())
			if p != working && took > 6*time.Second { // a process with a sync in flight waits for it, for 8 s
				f.t.Errorf("%s had nothing to bring to an end", p.Name)
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
