package doctor

import (
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// environment sets variables, given as pairs of name and value.
func environment(pairs ...string) func(*fixture) {
	return func(w *fixture) {
		for pair := range slices.Chunk(pairs, 2) {
			w.t.Setenv(pair[0], pair[1])
		}
	}
}

// scene is one state of the machine and the expected finding of a check: its status and a part of each sentence.
type scene struct {
	set            func(*fixture)
	status         Status
	what, why, fix string
}

// scenes are keyed by the name of a check, then by a sentence. TestEveryCheckHasAFault verifies that no check is
// missing.
var scenes = map[string]map[string]scene{
	"Go": {
		"no go at all": {func(w *fixture) { w.remove("go") },
			Failure, "not found", "go.mod asks for Go 1.26", "https://go.dev/dl/"},
		"an old go that fetches nothing": {func(w *fixture) { w.goVersion("go version go1.25.1 linux/amd64") },
			Failure, "go1.25.1", "built from source", "export GOTOOLCHAIN=auto"},
		"a candidate of the release": {func(w *fixture) { w.goVersion("go version go1.26rc1 linux/amd64") },
			Failure, "go1.26rc1", "go.mod", "Install Go 1.26"},
		"a development version": {func(w *fixture) {
			w.goVersion("go version devel go1.28-1234abcd Mon Jan 1 00:00:00 2029 +0000 linux/amd64")
		}, OK, "go1.28-1234abcd", "", ""},
		"a go that cannot run": {func(w *fixture) { w.script("go", "echo no GOROOT >&2; exit 1") },
			Failure, "no GOROOT", "go.mod", "Install Go"},
		"a go that cannot fetch the new one": {func(w *fixture) {
			w.script("go", "echo download go1.26 from https://jane:secret@host: no route >&2; exit 1")
		}, Failure, "https://host: no route", "go.mod", "Install Go"},
	},
	"git": {
		"macOS without its command line tools": {func(w *fixture) {
			w.script("git", "echo xcode-select: note: No developer tools were found >&2; exit 1")
		}, Failure, "No developer tools", "applies patches", "xcode-select --install"},
	},
	"Lines": {
		"a checkout of Git for Windows": {func(w *fixture) {
			w.script("git", `printf 'i/lf w/crlf attr/ Makefile\ni/lf w/mixed attr/ README.md\ni/-text w/-text attr/ a.png\n'`)
		}, Failure, "2 files have CRLF", "core.autocrlf", "git config core.autocrlf false"},
		"a file that was removed": {func(w *fixture) { w.script("git", `echo 'i/lf w/ attr/ Makefile'`) }, OK,
			"converted", "", ""},
		"an unpacked archive": {func(w *fixture) { w.script("git", "echo not a git repository >&2; exit 128") },
			NotApplicable, "not a clone", "", ""},
	},
	"Variables": {
		"another machine": {environment("GOOS", "plan9", "GOARCH", "mips"), Warning,
			"GOOS=plan9 (programs are built for another machine: Exec format error); GOARCH=mips", "go build",
			"unset GOOS GOARCH\n"},
		"this machine":       {environment("GOOS", runtime.GOOS, "GOARCH", runtime.GOARCH), OK, "no setting", "", ""},
		"flags":              {environment("GOFLAGS", "-mod=vendor"), Warning, "GOFLAGS=-mod=vendor", "go run", "unset GOFLAGS"},
		"a workspace":        {environment("GOWORK", "/home/jane/go.work"), Warning, "GOWORK=/home", "go build", "unset GOWORK"},
		"a folder":           {environment("GOBIN", "/home/jane/bin"), Warning, "`go install` writes there", "go build", "unset GOBIN"},
		"an old toolchain":   {environment("GOTOOLCHAIN", "go1.25.1"), Warning, "asks for Go 1.26", "go build", "unset GOTOOLCHAIN"},
		"no other toolchain": {environment("GOTOOLCHAIN", "local", "GOWORK", "off", "GOFLAGS", "-mod=readonly -trimpath"), OK, "no", "", ""},
		"a setting of go env -w": {func(w *fixture) {
			w.write("env", "GOPROXY=direct\nGOARCH=mips\n")
			w.script("go", "echo "+quote(w.file("env")))
		}, Warning, "GOARCH=mips", "go build", "go env -u GOARCH\n"},
		"no go to ask": {func(w *fixture) { w.remove("go") }, OK, "no setting", "", ""},
	},
	"Disk": {
		"a little short": {func(w *fixture) { w.Disk = func(string) (uint64, error) { return 8*gib - 1, nil } },
			Warning, "Only 8.0 GiB free for /", "about 6 GB", "go env -w GOCACHE="},
		"just enough": {func(w *fixture) { w.Disk = func(string) (uint64, error) { return 8 * gib, nil } },
			OK, "8.0 GiB free", "", ""},
		"a full disk for the module cache alone": {func(w *fixture) {
			w.Disk = func(path string) (uint64, error) {
				if path == w.cache {
					return 2*gib - 1, nil
				}
				return 7 * gib, nil
			}
		}, Failure, "Only 2.0 GiB free for ", "bin/", "Free some space"},
		"a full disk for the repository alone": {func(w *fixture) {
			w.Disk = func(path string) (uint64, error) {
				if path == w.Repository {
					return gib, nil
				}
				return 7 * gib, nil
			}
		}, Failure, "Only 1.0 GiB free for ", "bin/", "Free some space"},
		"an unreadable file system": {func(w *fixture) {
			w.Disk = func(string) (uint64, error) { return 0, errors.New("input/output error") }
		}, Warning, "input/output error", "about 6 GB", "Free some space"},
		"no go to ask": {func(w *fixture) { w.remove("go") }, OK, "100.0 GiB free", "", ""},
	},
	"Memory": {
		"a small machine": {func(w *fixture) { w.write("proc/meminfo", "MemAvailable: 4194303 kB\n") },
			Warning, "Only 4.0 GiB of memory available", "signal: killed", "GOMAXPROCS=1"},
		"a tiny machine": {func(w *fixture) { w.write("proc/meminfo", "MemAvailable: 2097151 kB\n") },
			Failure, "Only 2.0 GiB of memory", "Compiling", "Close other programs"},
		"just enough": {func(w *fixture) { w.write("proc/meminfo", "MemAvailable: 4194304 kB\n") },
			OK, "4.0 GiB of memory available", "", ""},
		"a container with a limit": {func(w *fixture) {
			w.write("sys/fs/cgroup/memory.max", "4294967296\n")
			w.write("sys/fs/cgroup/memory.current", "3221225472\n")
			w.write("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1073741824\n")
		}, Warning, "Only 2.0 GiB left under this container's memory limit", "Compiling", "container"},
		"a container without a limit": {func(w *fixture) {
			w.write("sys/fs/cgroup/memory.max", "max\n")
			w.write("sys/fs/cgroup/memory.current", "3221225472\n")
		}, OK, "8.0 GiB of memory available", "", ""},
		"a small Mac": {func(w *fixture) {
			w.OS = "darwin"
			w.script("sysctl", `[ "$*" = "-n hw.memsize" ] && echo 1073741824`)
		}, Failure, "Only 1.0 GiB of memory in all", "Compiling", "Close"},
		"no meminfo": {func(w *fixture) { w.Root = w.t.TempDir() },
			Warning, "unknown", "Compiling", "Close"},
		"a meminfo of another form": {func(w *fixture) { w.write("proc/meminfo", "MemFree: 1 kB\n") },
			Warning, "has no MemAvailable", "Compiling", "Close"},
	},
	"Ports": {
		"the health port is taken": {func(w *fixture) { w.takePort() },
			Warning, "is in use", "health probes", "--health-probe-bind-address=127.0.0.1:0"},
		"no program may listen": {func(w *fixture) { w.HealthPort = 1 << 16 },
			Failure, "No program may listen: listen tcp", "etcd", "sandbox"},
	},
	"Proxies": {
		"a proxy for everything": {environment("HTTPS_PROXY", "http://jane:secret@proxy:3128"),
			Warning, "HTTPS_PROXY set", "curl", "export no_proxy="},
		"a proxy in lower case": {environment("http_proxy", "http://proxy:3128"),
			Warning, "http_proxy set", "curl", "export no_proxy="},
		"an exception for the name localhost only": {
			environment("http_proxy", "http://proxy:3128", "NO_PROXY", "localhost,10.0.0.0/8"),
			Warning, "does not contain 127.0.0.1", "curl", "export no_proxy="},
		"a lower-case list that hides a better one": {
			environment("http_proxy", "http://proxy:3128", "no_proxy", "example.com", "NO_PROXY", "127.0.0.1"),
			Warning, "does not contain 127.0.0.1", "curl", "export no_proxy="},
		"an exception for the address": {
			environment("http_proxy", "http://proxy:3128", "NO_PROXY", "example.com, 127.0.0.1"), OK,
			"not for 127.0.0.1", "", ""},
		"an exception for its network": {
			environment("ALL_PROXY", "socks5://proxy:1080", "no_proxy", "127.0.0.0/8"), OK, "ALL_PROXY", "", ""},
		"an exception for everything": {
			environment("HTTP_PROXY", "http://proxy:3128", "no_proxy", "*"), OK, "HTTP_PROXY", "", ""},
	},
	"Docker": {
		"no docker": {func(w *fixture) { w.remove("docker") },
			NotApplicable, "everything else works without", "", ""},
		"a dead daemon": {func(w *fixture) {
			w.script("docker", "echo Cannot connect to the Docker daemon. >&2; exit 1")
		}, Warning, "Cannot connect to the Docker daemon", "kind environment", "sudo systemctl restart docker"},
		"a client that hides the dead daemon": {func(w *fixture) { w.script("docker", "echo ' cgroup v'") },
			Warning, "no server version", "kind environment", "docker info"},
		"cgroup v1 or hybrid": {func(w *fixture) { w.script("docker", "echo 29.1.0 cgroup v1") },
			Warning, "uses cgroup version 1", "kubelet refuses", "systemd.unified_cgroup_hierarchy=1"},
	},
	"inotify": {
		"few instances": {func(w *fixture) { w.write("proc/sys/fs/inotify/max_user_instances", "128\n") },
			Warning, "max_user_instances 128", "too many open files",
			"sudo sysctl fs.inotify.max_user_instances=512"},
		"few watches": {func(w *fixture) { w.write("proc/sys/fs/inotify/max_user_watches", "524287\n") },
			Warning, "max_user_watches 524287", "too many open files",
			"sudo sysctl fs.inotify.max_user_watches=524288"},
		"no such limits": {func(w *fixture) { w.Root = w.t.TempDir() },
			NotApplicable, "cannot be read", "", ""},
		"a Mac":     {func(w *fixture) { w.OS = "darwin" }, NotApplicable, "its own Linux", "", ""},
		"no docker": {func(w *fixture) { w.remove("docker") }, NotApplicable, "there is no Docker", "", ""},
	},
}

// takePort listens on a port and makes it the health port.
func (w *fixture) takePort() {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(w.t, err)
	w.t.Cleanup(func() { listener.Close() })
	w.HealthPort = listener.Addr().(*net.TCPAddr).Port
}

func TestEachCheckSeesItsFault(t *testing.T) {
	for name, cases := range scenes {
		for sentence, scene := range cases {
			t.Run(name+": "+sentence, func(t *testing.T) {
				w := newFixture(t)
				scene.set(w)
				got := w.finding(name)
				if got.Check != name || got.Status != scene.status {
					t.Fatalf("want %s, got %+v", scene.status, got)
				}
				for _, part := range []struct{ label, got, want string }{
					{"what", got.What, scene.what}, {"why", got.Why, scene.why}, {"fix", got.Fix, scene.fix},
				} {
					if !strings.Contains(part.got, part.want) {
						t.Errorf("%s: %q does not contain %q", part.label, part.got, part.want)
					}
				}
				complete(t, got)
				if strings.Contains(got.What+got.Why+got.Fix, "secret") {
					t.Errorf("a credential is shown: %+v", got)
				}
			})
		}
	}
}

// complete verifies that a finding has all the sentences that its status requires.
func complete(t *testing.T, finding Finding) {
	t.Helper()
	if finding.What == "" {
		t.Errorf("no what: %+v", finding)
	}
	if problem := finding.Status == Warning || finding.Status == Failure; problem != (finding.Why != "") ||
		problem != (finding.Fix != "") {
		t.Errorf("a problem has a why and a fix, all else has none: %+v", finding)
	}
}

func TestEveryCheckHasAFault(t *testing.T) {
	known := map[string]bool{}
	for _, check := range checks {
		known[check.name] = true
		faults := 0
		for _, scene := range scenes[check.name] {
			if scene.status != Warning && scene.status != Failure {
				continue
			}
			faults++
			if scene.what == "" || scene.why == "" || scene.fix == "" {
				t.Errorf("%s: a scene looks at nothing: %+v", check.name, scene)
			}
		}
		if faults == 0 {
			t.Errorf("no test makes the fault that %q looks for", check.name)
		}
	}
	for name := range scenes {
		if !known[name] {
			t.Errorf("scenes for %q, which is no check", name)
		}
	}
}
