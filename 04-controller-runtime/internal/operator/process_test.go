package operator

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// A process is a program of this workshop while it runs.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	said  log
	ended chan struct{}
}

// log collects what a program prints; it is read meanwhile.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// launch starts a program as the user of a kubeconfig. Flags of the form NAME=value are environment
// variables. It is killed when the test ends.
func launch(t *testing.T, program, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, name: program[strings.LastIndex(program, "/")+1:], ended: make(chan struct{})}
	p.cmd = exec.Command(program, "--kubeconfig="+kubeconfig, "--health-probe-bind-address=0")
	p.cmd.Env = os.Environ()
	for _, f := range flags {
		if strings.HasPrefix(f, "--") {
			p.cmd.Args = append(p.cmd.Args, f)
		} else {
			p.cmd.Env = append(p.cmd.Env, f)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", p.name, p.said.String())
		}
	})
	return p
}

// started launches a program and waits until it works.
func started(t *testing.T, program, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := launch(t, program, kubeconfig, flags...)
	p.eventuallySays("Starting workers", "30s")
	return p
}

func (p *process) eventuallySays(text, within string) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.said.String, within, "10ms").Should(gomega.ContainSubstring(text), p.name)
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// kill ends the process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop ends the process as Kubernetes does. It has to be gone after 10 s, with code 0, and may have logged
// no error, but for what controller-runtime says now and then after it gave its lease back.
func (p *process) stop() (took time.Duration) {
	p.t.Helper()
	took = p.terminate()
	for text := range strings.Lines(p.said.String()) {
		var line struct{ Level string }
		if strings.Contains(text, `"error":"leader election lost"`) {
			continue
		}
		if json.Unmarshal([]byte(text), &line) != nil && strings.HasPrefix(text, "panic") || strings.EqualFold(line.Level, "error") {
			p.t.Errorf("%s logged: %s", p.name, text)
		}
	}
	return took
}

// terminate sends SIGTERM. The process has to be gone after 10 s, with code 0.
func (p *process) terminate() time.Duration {
	p.t.Helper()
	begin := time.Now()
	p.signal(syscall.SIGTERM)
	if code := p.exitCode("10s"); code != 0 {
		p.t.Errorf("%s ended with code %d:\n%s", p.name, code, p.said.String())
	}
	return time.Since(begin)
}

// exitCode waits for the end of the process.
func (p *process) exitCode(within string) int {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.ended, within, "10ms").Should(gomega.BeClosed(), "%s has not ended:\n%s", p.name, &p.said)
	return p.cmd.ProcessState.ExitCode()
}
