// Package programtest runs a program as a separate process, as its users do, and observes it from outside.
//
// The same file is in every chapter that runs programs, so that each chapter is independent.
package programtest

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
)

// A Process is a program while it runs.
type Process struct {
	*gexec.Session
	t *testing.T
}

// Start starts a program. The process is killed when the test ends.
func Start(t *testing.T, program string, flags ...string) *Process {
	t.Helper()
	session, err := gexec.Start(exec.Command(program, flags...), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Session: session, t: t}
	t.Cleanup(func() {
		<-p.Kill().Exited
		if t.Failed() {
			text := p.Output()
			t.Logf("%s printed at last:\n%s", program, text[max(0, len(text)-10000):])
		}
	})
	return p
}

// Output is what the process has printed so far, to stderr as all our programs do.
func (p *Process) Output() string { return string(p.Err.Contents()) }

// EventuallyPrints waits until the process has printed a text.
func (p *Process) EventuallyPrints(text, within string) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.Output, within, "10ms").Should(gomega.ContainSubstring(text))
}

// Terminate ends the process as Kubernetes does. It must be gone after 10 s, with code 0.
func (p *Process) Terminate() (took time.Duration) {
	p.t.Helper()
	begin := time.Now()
	gomega.NewWithT(p.t).Eventually(p.Session.Terminate(), "10s", "10ms").Should(gexec.Exit(0))
	return time.Since(begin)
}

// Stop terminates the process, which may have logged no error.
func (p *Process) Stop() (took time.Duration) {
	p.t.Helper()
	took = p.Terminate()
	for text := range strings.Lines(p.Output()) {
		var line struct{ Level, Error string }
		_ = json.Unmarshal([]byte(text), &line) // a trace is not JSON
		// controller-runtime logs this error now and then after it released the lease.
		isError := strings.EqualFold(line.Level, "error") && line.Error != "leader election lost"
		if isError || strings.HasPrefix(text, "panic") {
			p.t.Errorf("it logged: %s", text)
		}
	}
	return took
}

// Get requests a URL, with a token unless it is empty, and returns the status code, 0 when no server answers.
func Get(url, token string) (code int, body string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The program made the certificate at its start, and no authority has signed it.
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(data)
}
