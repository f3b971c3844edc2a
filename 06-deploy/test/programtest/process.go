// Package programtest runs a program as a separate process, as its users do, and observes it from outside.
//
// The same files are in every chapter that runs programs, so that each chapter is independent.
package programtest

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

// A Process is a program while it runs.
type Process struct {
	// Name is the name of the program.
	Name string

	t       *testing.T
	session *gexec.Session
	output  *gbytes.Buffer
}

// Start starts a program. An argument that does not begin with -- is an environment variable, not a flag. The process
// is killed when the test ends.
func Start(t *testing.T, program string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = os.Environ()
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") {
			cmd.Args = append(cmd.Args, arg)
		} else {
			cmd.Env = append(cmd.Env, arg)
		}
	}
	p := &Process{Name: filepath.Base(program), t: t, output: gbytes.NewBuffer()}
	var err error
	if p.session, err = gexec.Start(cmd, p.output, p.output); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			text := p.Output()
			t.Logf("%s printed at last:\n%s", p.Name, text[max(0, len(text)-10000):])
		}
	})
	return p
}

// Output is what the process has printed so far.
func (p *Process) Output() string { return string(p.output.Contents()) }

// EventuallyPrints waits until the process has printed a text.
func (p *Process) EventuallyPrints(text, within string) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.Output, within, "10ms").Should(gomega.ContainSubstring(text), p.Name)
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) { p.session.Signal(s) }

// Kill ends the process as a crash does.
func (p *Process) Kill() { <-p.session.Kill().Exited }

// Terminate ends the process as Kubernetes does. It must be gone after 10 s, with code 0.
func (p *Process) Terminate() (took time.Duration) {
	p.t.Helper()
	begin := time.Now()
	p.Signal(syscall.SIGTERM)
	if code := p.ExitCode("10s"); code != 0 {
		p.t.Errorf("%s ended with code %d:\n%s", p.Name, code, p.Output())
	}
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
			p.t.Errorf("%s logged: %s", p.Name, text)
		}
	}
	return took
}

// ExitCode waits for the end of the process.
func (p *Process) ExitCode(within string) int {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.session, within, "10ms").Should(gexec.Exit())
	return p.session.ExitCode()
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
