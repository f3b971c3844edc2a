package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/memcached-operator/internal/testenv"
	"github.com/example/memcached-operator/test/programtest"
)

// A replica that waits for the lease is ready too: it serves webhooks, and a rollout must not wait for its turn.
func TestProbesAnswerInEveryReplica(t *testing.T) {
	f := newFixture(t)
	operator := f.operator()
	for _, turn := range []string{"Successfully acquired lease", "Attempting to acquire leader lease"} {
		address := fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
		p := launch(t, "--kubeconfig="+operator, "WATCH_NAMESPACE="+f.namespace, "--health-probe-bind-address="+address,
			"--leader-elect", "--leader-election-namespace="+f.namespace)
		p.EventuallyPrints(turn, "30s")
		for _, page := range []string{"/healthz", "/readyz"} {
			f.Eventually(func() int { return status("http://"+address+page, "") }).Should(gomega.Equal(200), page)
		}
	}
	address := fmt.Sprint("127.0.0.1:", testenv.FreePort(t))
	powerless := launch(t, "--kubeconfig="+kubeconfig(t, "powerless"), "WATCH_NAMESPACE="+f.namespace,
		"--health-probe-bind-address="+address)
	powerless.EventuallyPrints("is forbidden", "30s")
	f.Expect(status("http://"+address+"/healthz", "")).To(gomega.Equal(200))
	f.Expect(status("http://"+address+"/readyz", "")).To(gomega.Equal(500), "it sees nothing")
	if took := powerless.Terminate(); took > 6*time.Second { // running reconciles get 8 s
		t.Errorf("it did nothing yet, and ended after %s", took)
	}
}

// status requests a URL and returns the status code, 0 without a response.
func status(url, token string) int {
	code, _ := programtest.Get(url, token)
	return code
}
