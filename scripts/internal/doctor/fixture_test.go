package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// fixture is a healthy machine made of real files and programs, which a test then breaks.
type fixture struct {
	Machine
	t   *testing.T
	bin string // the only folder in PATH
	// cache is the folder of Go's module cache.
	cache string
}

// Variables that a check, or the real go command, reads from the environment of the test.
var variables = append([]string{"GOFLAGS", "GOWORK", "GOBIN", "GOOS", "GOARCH", "GOTOOLCHAIN", "no_proxy", "NO_PROXY"}, proxyVariables...)

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, bin: t.TempDir(), cache: t.TempDir()}
	for _, name := range variables {
		t.Setenv(name, "")
	}
	t.Setenv("PATH", w.bin)
	w.Machine = Local(t.TempDir())
	w.OS, w.Root, w.HealthPort = "linux", t.TempDir(), 0
	w.Disk = func(string) (uint64, error) { return 100 * gib, nil }
	testkit.Must(t, os.Mkdir(filepath.Join(w.Repository, "scripts"), 0o700))
	w.write("proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n")
	w.write("proc/sys/fs/inotify/max_user_instances", "512\n")
	w.write("proc/sys/fs/inotify/max_user_watches", "524288\n")
	w.script("git", `[ "$1" = --version ] && echo "git version 2.47.0" || echo "i/lf w/lf attr/ Makefile"`)
	w.script("docker", `[ "$1" = info ] && echo 29.1.0 cgroup v2`)
	w.goVersion("go version go1.26.8 linux/amd64")
	return w
}

// write makes a file below Root.
func (w *fixture) write(path, content string) {
	w.t.Helper()
	path = w.file(path)
	testkit.Write(w.t, path, content)
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// script puts a program into PATH.
func (w *fixture) script(name, body string) {
	w.t.Helper()
	testkit.Must(w.t, os.WriteFile(filepath.Join(w.bin, name), []byte("#!/bin/sh\n"+body+"\n"), 0o755))
}

// remove takes a program out of PATH.
func (w *fixture) remove(name string) {
	w.t.Helper()
	testkit.Must(w.t, os.Remove(filepath.Join(w.bin, name)))
}

// goVersion makes the go program print a version; its build cache is a folder that does not exist yet.
func (w *fixture) goVersion(answer string) {
	w.script("go", fmt.Sprintf(`[ "$1" = version ] && echo %s || printf '%%s\n%%s\n' %s %s`, quote(answer),
		quote(filepath.Join(w.cache, "not", "yet", "there")), quote(w.cache)))
}

// fifo makes a named pipe without a writer: a program that reads it hangs.
func (w *fixture) fifo() string {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "fifo")
	testkit.Must(w.t, syscall.Mkfifo(path, 0o600))
	return path
}

// finding runs one check as Run does.
func (w *fixture) finding(name string) Finding {
	w.t.Helper()
	for _, check := range checks {
		if check.name == name {
			return runCheck(w.t.Context(), w.Machine, check)
		}
	}
	w.t.Fatalf("there is no check %q", name)
	return Finding{}
}
