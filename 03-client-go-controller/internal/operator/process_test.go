package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"
)

// A process is the program while it runs.
type process struct {
	t               *testing.T
	name            string
	cmd             *exec.Cmd
	said            log
	probes, metrics string // addresses
	ended           chan struct{}
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

// launch starts the program as the user of a kubeconfig. What does not begin with -- is no flag, but an
// environment variable. The process is killed when the test ends.
func launch(t *testing.T, name, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, name: name, probes: freeAddress(t), metrics: freeAddress(t), ended: make(chan struct{})}
	p.cmd = exec.Command(program, "--kubeconfig="+kubeconfig, "--health-probe-bind-address="+p.probes, "--metrics-bind-address="+p.metrics)
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
			lines := p.lines()
			t.Logf("the last that %s said:\n%s", p.name, fmt.Sprintln(lines[max(0, len(lines)-8):]))
		}
	})
	return p
}

// started launches the program and waits until it works.
func started(t *testing.T, name, kubeconfig string, flags ...string) *process {
	t.Helper()
	p := launch(t, name, kubeconfig, flags...)
	p.eventuallySays("Starting workers", "20s")
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
// no error.
func (p *process) stop() (took time.Duration) {
	p.t.Helper()
	took = p.terminate()
	for _, line := range p.lines() {
		if line.Level == "ERROR" {
			p.t.Errorf("%s logged: %s", p.name, line)
		}
	}
	return took
}

// terminate sends SIGTERM. The process has to be gone after 10 s, with code 0.
func (p *process) terminate() time.Duration {
	p.t.Helper()
	begin := time.Now()
	p.signal(syscall.SIGTERM)
	code := p.exitCode("10s")
	if code != 0 {
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

// A line of the log.
type line struct {
	Level, Msg, Err string
	text            string
}

func (l line) String() string { return "\n" + l.text }

// lines are what was logged, and a panic's trace.
func (p *process) lines() (all []line) {
	for text := range strings.Lines(p.said.String()) {
		l := line{text: strings.TrimSpace(text)}
		if json.Unmarshal([]byte(text), &l) != nil && strings.HasPrefix(text, "panic") {
			l.Level = "ERROR"
		}
		all = append(all, l)
	}
	return all
}

// saying returns the lines that hold a text, in the message, in the error or in one of their fields.
func (p *process) saying(text string) (found []string) {
	for _, l := range p.lines() {
		if strings.Contains(l.Msg, text) || strings.Contains(l.Err, text) || strings.Contains(l.text, text) {
			found = append(found, l.text)
		}
	}
	return found
}

// probe asks for a path and returns the status code, 0 when nobody answers.
func (p *process) probe(path string) int {
	code, _ := get(p.probes, path)
	return code
}

func get(address, path string) (code int, body string) {
	answer, err := http.Get("http://" + address + path)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(data)
}

// metric is the value of one of the process's metrics, with its labels as they are printed; -1 when it
// has none of this name.
func (p *process) metric(name string) float64 {
	_, body := get(p.metrics, "/metrics")
	for l := range strings.Lines(body) {
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
	steady(p.t, "the queue of "+p.name, time.Second, func() int {
		waiting := p.metric(`workqueue_depth{name="myweb"}`) + p.metric(`workqueue_unfinished_work_seconds{name="myweb"}`)
		if waiting != 0 {
			return -int(time.Now().UnixNano()) // never the same
		}
		return int(p.metric(`workqueue_adds_total{name="myweb"}`))
	})
}
