package doctor

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// fixture is a healthy machine made of real files and programs, which a test then breaks.
type fixture struct {
	Machine
	t   *testing.T
	bin string // the only folder in PATH
	// cache is the folder of Go's caches.
	cache string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{t: t, bin: t.TempDir(), cache: t.TempDir()}
	for _, setting := range settings {
		t.Setenv(setting.name, "")
	}
	for _, name := range append([]string{"no_proxy", "NO_PROXY"}, proxyVariables...) {
		t.Setenv(name, "")
	}
	t.Setenv("GOMODCACHE", w.cache)
	t.Setenv("GOCACHE", filepath.Join(w.cache, "not", "yet", "there"))
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
	w.script("go", `[ "$1" = version ] && echo go version go1.26.8 linux/amd64 && exit
shift; for name; do eval "echo \"\$$name\""; done`)
	return w
}

func (w *fixture) path(name string) string { return filepath.Join(w.Root, name) }

// write makes a file below Root.
func (w *fixture) write(name, content string) {
	w.t.Helper()
	testkit.Write(w.t, w.path(name), content)
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

// environment sets variables, given as pairs of name and value.
func environment(pairs ...string) func(*fixture) {
	return func(w *fixture) {
		for pair := range slices.Chunk(pairs, 2) {
			w.t.Setenv(pair[0], pair[1])
		}
	}
}

// file writes files below Root, given as pairs of path and content.
func file(pairs ...string) func(*fixture) {
	return func(w *fixture) {
		for pair := range slices.Chunk(pairs, 2) {
			w.write(pair[0], pair[1])
		}
	}
}

func remove(name string) func(*fixture) { return func(w *fixture) { w.remove(name) } }

func script(name, body string) func(*fixture) { return func(w *fixture) { w.script(name, body) } }

func goVersion(version string) func(*fixture) { return script("go", "echo go version "+version) }

// setByGo asks the real go command about the settings of a file.
func setByGo(settings string) func(*fixture) {
	program, err := exec.LookPath("go")
	return func(w *fixture) {
		if err != nil {
			w.t.Skip(err)
		}
		w.write("env", settings)
		w.t.Setenv("GOENV", w.path("env"))
		w.script("go", "exec "+quote(program)+` "$@"`)
	}
}

// disk sets the free bytes at Go's caches and at the repository.
func disk(caches, repository uint64) func(*fixture) {
	return func(w *fixture) {
		free := map[string]uint64{w.cache: caches, w.Repository: repository}
		w.Disk = func(path string) (uint64, error) { return free[path], nil }
	}
}

func unreadable(w *fixture) {
	w.Disk = func(string) (uint64, error) { return 0, errors.New("input/output error") }
}

func mac(w *fixture) {
	w.OS = "darwin"
	w.script("sysctl", `[ "$*" = "-n hw.memsize" ] && echo 1073741824`)
}

func noFiles(w *fixture) { w.Root = w.t.TempDir() }

// takePort listens on a port and makes it the health port.
func takePort(w *fixture) {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(w.t, err)
	w.t.Cleanup(func() { listener.Close() })
	w.HealthPort = listener.Addr().(*net.TCPAddr).Port
}

// named returns one row of the table.
func named(t *testing.T, name string) check {
	t.Helper()
	at := slices.IndexFunc(checks, func(c check) bool { return c.name == name })
	if at < 0 {
		t.Fatalf("there is no check %q", name)
	}
	return checks[at]
}
