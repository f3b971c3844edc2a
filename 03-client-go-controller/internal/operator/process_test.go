package operator

import (
	"fmt"
	"testing"

	"k8s.io/client-go/rest"

	"example.com/operator-workshop/03-client-go-controller/internal/testenv"
	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

// A process is the program while it runs.
type process struct {
	*programtest.Process
	probes, metrics string // URLs
}

// launch starts the program as the user of a configuration.
func launch(t *testing.T, cfg *rest.Config, flags ...string) *process {
	t.Helper()
	probes, metrics := fmt.Sprint("127.0.0.1:", testenv.FreePort(t)), fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	p := programtest.Start(t, program, append([]string{"--kubeconfig=" + testenv.WriteKubeconfig(t, cfg, ""),
		"--health-probe-bind-address=" + probes, "--metrics-bind-address=" + metrics}, flags...)...)
	return &process{Process: p, probes: "http://" + probes, metrics: "http://" + metrics + "/metrics"}
}

// started launches the program and waits until it works.
func started(t *testing.T, cfg *rest.Config, flags ...string) *process {
	t.Helper()
	p := launch(t, cfg, flags...)
	p.EventuallyPrints("Starting workers", "20s")
	return p
}

// probe requests a path and returns the status code, 0 when the process does not answer.
func (p *process) probe(path string) int {
	code, _ := programtest.Get(p.probes+path, "")
	return code
}
