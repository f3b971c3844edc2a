package operator

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/03-client-go-controller/internal/testenv"
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

// A process is the program while it runs.
type process struct {
	*programtest.Process
	t               *testing.T
	probes, metrics string // addresses
}

// launch starts the program as the user of a kubeconfig.
func launch(t *testing.T, name, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, probes: testenv.FreeAddress(t), metrics: testenv.FreeAddress(t)}
	p.Process = programtest.Start(t, program, append([]string{"--kubeconfig=" + kubeconfig,
		"--health-probe-bind-address=" + p.probes, "--metrics-bind-address=" + p.metrics}, flags...)...)
	p.Name = name
	return p
}

// started launches the program and waits until it works.
func started(t *testing.T, name, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := launch(t, name, kubeconfig, flags...)
	p.EventuallyPrints("Starting workers", "20s")
	return p
}

// probe requests a path and returns the status code, 0 when the process does not answer.
func (p *process) probe(path string) int {
	code, _ := programtest.Get("http://"+p.probes+path, "")
	return code
}

// scrape returns the process's metrics.
func (p *process) scrape() string {
	_, body := programtest.Get("http://"+p.metrics+"/metrics", "")
	return body
}

// metric returns the value of a metric of the process, named with its labels as they are printed; -1 when the
// process has no such metric.
func (p *process) metric(name string) float64 {
	for l := range strings.Lines(p.scrape()) {
		if rest, ok := strings.CutPrefix(l, name+" "); ok {
			var value float64
			if _, err := fmt.Sscan(rest, &value); err == nil {
				return value
			}
		}
	}
	return -1
}

// idle waits until the queue is empty and stays so.
func (p *process) idle() {
	p.t.Helper()
	programtest.Steady(p.t, "the queue of "+p.Name, time.Second, func() int {
		waiting := p.metric(`workqueue_depth{name="myweb"}`) + p.metric(`workqueue_unfinished_work_seconds{name="myweb"}`)
		if waiting != 0 {
			return -int(time.Now().UnixNano()) // never equal
		}
		return int(p.metric(`workqueue_adds_total{name="myweb"}`))
	})
}
