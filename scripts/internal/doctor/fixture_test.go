package doctor

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"example.com/operator-workshop/scripts/internal/cluster"
)

// fixture is a healthy machine made of real files and programs, to be broken by a test.
type fixture struct {
	Machine
	t      *testing.T
	bin    string            // the only folder in PATH
	answer map[string]string // arguments of the go program and what it prints
}

// Variables that a check, or the real go command, reads from the environment of the test.
var variables = []string{
	"GOFLAGS", "GOWORK", "GOPROXY", "GOTOOLCHAIN",
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, bin: t.TempDir()}
	for _, name := range variables {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", w.bin)
	w.Machine = Local(t.TempDir(), t.TempDir())
	w.OS, w.Root, w.HealthPort = "linux", t.TempDir(), 0
	w.Hostname = func() (string, error) { return "workshop.example.com", nil }
	w.Disk = func(string) (uint64, error) { return 100 * gib, nil }
	w.write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
	w.write("proc/sys/fs/inotify/max_user_instances", "512\n")
	w.write("proc/sys/fs/inotify/max_user_watches", "524288\n")
	w.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
	w.script("make", `echo "GNU Make 4.4.1"; echo "more"`)
	w.script("git", `echo "git version 2.47.0"`)
	w.script("bash", `echo "GNU bash, version 5.2.37(1)-release"`)
	w.script("docker", `[ "$1" = info ] && echo 29.1.0`)
	w.answer = map[string]string{
		"version":        "go version go1.26.8 linux/amd64",
		"env GOFLAGS":    "-buildvcs=false",
		"env GOWORK":     "",
		"env GOCACHE":    filepath.Join(t.TempDir(), "not", "yet", "there"),
		"env GOMODCACHE": t.TempDir(),
		"env GOPROXY":    w.proxy(http.StatusOK, `{"Version":"v0.37.1"}`) + ",direct",
	}
	w.answers("env GOTOOLCHAIN", "local")
	return w
}

// write makes a file below Root.
func (w *fixture) write(path, content string) {
	w.t.Helper()
	path = w.file(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// script puts a program into PATH.
func (w *fixture) script(name, body string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// remove takes a program out of PATH.
func (w *fixture) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.bin, name)); err != nil {
		w.t.Fatal(err)
	}
}

// answers makes the go program print answer when it is called with these arguments.
func (w *fixture) answers(arguments, answer string) {
	w.answer[arguments] = answer
	var body strings.Builder
	body.WriteString(`case "$*" in` + "\n")
	for arguments, answer := range w.answer {
		fmt.Fprintf(&body, "%s) echo %s;;\n", quote(arguments), quote(answer))
	}
	body.WriteString(`*) echo "unexpected: $*" >&2; exit 2;;` + "\nesac")
	w.script("go", body.String())
}

// realGo puts the go command that runs this test into PATH.
func (w *fixture) realGo() {
	w.t.Helper()
	if goroot == "" {
		w.t.Fatal("no go command was found before PATH was replaced")
	}
	w.script("go", fmt.Sprintf(`exec %s "$@"`, quote(filepath.Join(goroot, "bin", "go"))))
}

// goroot is asked before any test replaces PATH.
var goroot = func() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}()

// proxy starts a module proxy that answers every question so.
func (w *fixture) proxy(code int, body string) string {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if in.URL.Path != "/k8s.io/api/@v/v0.37.1.info" {
			out.WriteHeader(http.StatusTeapot)
			return
		}
		out.WriteHeader(code)
		fmt.Fprint(out, body)
	}))
	w.t.Cleanup(server.Close)
	return server.URL
}

// closedPort is an address on which nobody listens.
func (w *fixture) closedPort() string {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// warm puts the probe into the module cache.
func (w *fixture) warm() {
	w.t.Helper()
	folder := filepath.Join(w.answer["env GOMODCACHE"], "cache", "download", "k8s.io", "api", "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "v0.37.1.info"), []byte("{}"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// cluster makes the state of a local cluster in which processes hold the locks of the components.
func (w *fixture) cluster(running ...string) {
	w.t.Helper()
	folder := filepath.Join(w.State, "cluster")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		w.t.Fatal(err)
	}
	for _, component := range cluster.Names() {
		if err := os.WriteFile(filepath.Join(folder, component+".pid"), []byte("1\n"), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, component := range running {
		w.hold(filepath.Join(folder, component+".pid"))
	}
}

// hold starts a process that inherits an exclusive lock on the file, and lives as long as the test.
func (w *fixture) hold(path string) {
	w.t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		w.t.Fatal(err)
	}
	holder := exec.Command("/bin/cat")
	holder.ExtraFiles = []*os.File{file}
	stdin, err := holder.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		stdin.Close()
		holder.Wait()
	})
}

// fifo makes a named pipe into which nobody writes: a program that reads it hangs.
func (w *fixture) fifo() string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// finding runs one check as Examine does.
func (w *fixture) finding(name string) Finding {
	w.t.Helper()
	for _, check := range checks {
		if check.name == name {
			return examine(context.Background(), w.Machine, check)
		}
	}
	w.t.Fatalf("there is no check %q", name)
	return Finding{}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("reads the real /proc")
	}
}
