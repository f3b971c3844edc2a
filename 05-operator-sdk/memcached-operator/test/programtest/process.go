// Package programtest runs a program as a process of its own, as its users do, and observes it from outside.
//
// The same files are in every chapter that runs programs, so that each chapter stands alone.
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
)

// A Process is a program while it runs.
type Process struct {
	// Name is that of the program.
	Name string

	t      *testing.T
	cmd    *exec.Cmd
	output *gbytes.Buffer
	ended  chan struct{}
}

// Start starts a program. What does not begin with -- is no flag, but an environment variable. The process is
// killed when the test ends.
func Start(t *testing.T, program string, args ...string) *Process {
	t.Helper()
	p := &Process{Name: filepath.Base(program), t: t, cmd: exec.Command(program),
		output: gbytes.NewBuffer(), ended: make(chan struct{})}
	p.cmd.Env = os.Environ()
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") {
			p.cmd.Args = append(p.cmd.Args, arg)
		} else {
			p.cmd.Env = append(p.cmd.Env, arg)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			lines := p.Lines()
			t.Logf("the last lines of %s:\n%s", p.Name, lines[max(0, len(lines)-20):])
		}
	})
	return p
}

// Output is what the process has printed so far.
func (p *Process) Output() string {
	return string(p.output.Contents())
}

// EventuallyPrints waits until the process has printed a text.
func (p *Process) EventuallyPrints(text, within string) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.Output, within, "10ms").Should(gomega.ContainSubstring(text), p.Name)
}

// Signal sends a signal to the process.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.Name, err)
	}
}

// Kill ends the process as a crash does.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

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
	for _, line := range p.Lines() {
		// controller-runtime logs this one now and then after it released the lease.
		if strings.EqualFold(line.Level, "error") && line.Error != "leader election lost" {
			p.t.Errorf("%s logged: %s", p.Name, line)
		}
	}
	return took
}

// ExitCode waits for the end of the process.
func (p *Process) ExitCode(within string) int {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.ended, within, "10ms").Should(gomega.BeClosed(), "%s has not ended", p.Name)
	return p.cmd.ProcessState.ExitCode()
}

// A Line is one of what a process printed, with the fields of a line that is JSON.
type Line struct {
	Level, Msg, Err, Error string
	// Text is the line itself.
	Text string `json:"-"`
}

func (l Line) String() string { return "\n" + l.Text }

// Lines are those that the process has printed so far. The head of a panic's trace counts as an error.
func (p *Process) Lines() (all []Line) {
	for text := range strings.Lines(p.Output()) {
		l := Line{Text: strings.TrimSpace(text)}
		if json.Unmarshal([]byte(text), &l) != nil && strings.HasPrefix(text, "panic") {
			l.Level = "error"
		}
		all = append(all, l)
	}
	return all
}

// Logged returns the lines that hold a text, in the message, in the error or in one of their fields.
func (p *Process) Logged(text string) (found []string) {
	for _, l := range p.Lines() {
		if strings.Contains(l.Msg, text) || strings.Contains(l.Err, text) || strings.Contains(l.Text, text) {
			found = append(found, l.Text)
		}
	}
	return found
}

// Get asks a URL with a token, or without when that is empty, and returns the status code, 0 when nobody answers.
func Get(url, token string) (code int, body string) {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	// The certificate was made at the program's start, and no authority vouches for it.
	client := &http.Client{Transport: &http.Transport{
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
