package doctor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/cluster"
)

// environment sets variables, by name and value.
func environment(pairs ...string) func(*fixture) {
	return func(w *fixture) {
		for pair := range slices.Chunk(pairs, 2) {
			w.t.Setenv(pair[0], pair[1])
		}
	}
}

// scene is one state of the machine and what a check must say about it: its status and a part of
// each sentence.
type scene struct {
	set            func(*fixture)
	status         Status
	what, why, fix string
}

// scenes are keyed by the name of a check, then by a sentence. TestEveryCheckHasAFault sees that no
// check is missing.
var scenes = map[string]map[string]scene{
	"Go": {
		"no go at all": {func(w *fixture) { w.remove("go") },
			Failure, "no go in PATH", "go.mod asks for Go 1.26", "https://go.dev/dl/"},
		"an old go that fetches nothing": {func(w *fixture) {
			w.answers("version", "go version go1.25.1 linux/amd64")
		}, Failure, "go1.25.1", "built from source", "export GOTOOLCHAIN=auto"},
		"an old go that fetches the new one": {func(w *fixture) {
			w.answers("version", "go version go1.25.1 linux/amd64")
			w.answers("env GOTOOLCHAIN", "go1.25.1+auto")
		}, OK, "fetches Go 1.26 by itself", "", ""},
		"a go from before toolchains": {func(w *fixture) {
			w.answers("version", "go version go1.20.14 linux/amd64")
			w.answers("env GOTOOLCHAIN", "auto")
		}, Failure, "go1.20.14", "built from source", "Install Go 1.26"},
		"a candidate of the release": {func(w *fixture) {
			w.answers("version", "go version go1.26rc1 linux/amd64")
		}, Failure, "go1.26rc1", "go.mod", "Install Go 1.26"},
		"a development version": {func(w *fixture) {
			w.answers("version", "go version devel go1.28-1234abcd Mon Jan 1 00:00:00 2029 +0000 linux/amd64")
		}, OK, "go1.28-1234abcd", "", ""},
		"a go that cannot run": {func(w *fixture) { w.script("go", "echo no GOROOT >&2; exit 1") },
			Failure, "no GOROOT", "go.mod", "Install Go"},
		"a go that talks nonsense": {func(w *fixture) { w.answers("version", "hello") },
			Warning, `"hello"`, "go.mod", "Install Go"},
		"the real go": {func(w *fixture) { w.realGo() }, OK, "go1.", "", ""},
	},
	"GOFLAGS": {
		"a vendor folder asked for by the environment": {func(w *fixture) {
			w.realGo()
			w.t.Setenv("GOFLAGS", "-buildvcs=false -mod=vendor -race")
		}, Warning, "environment holds -mod=vendor -race", "typed by hand", "unset GOFLAGS"},
		"tags from the go env file": {func(w *fixture) {
			file := filepath.Join(w.t.TempDir(), "env")
			if err := os.WriteFile(file, []byte("GOFLAGS='-tags=x'\n"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.realGo()
			w.t.Setenv("GOENV", file)
		}, Warning, "go env file holds -tags=x", "typed by hand", "go env -u GOFLAGS"},
		"a double dash": {func(w *fixture) { w.answers("env GOFLAGS", "--mod=mod") },
			Warning, "--mod=mod", "go.mod", "go env -u"},
		"flags that change nothing": {func(w *fixture) {
			w.answers("env GOFLAGS", "-mod=readonly -trimpath -race=false -tags=")
		}, OK, "-trimpath", "", ""},
		"no go to ask": {func(w *fixture) { w.remove("go") }, NotApplicable, "go is not in PATH", "", ""},
	},
	"go.work": {
		"a workspace in the folder above": {func(w *fixture) {
			parent := w.t.TempDir()
			if err := os.WriteFile(filepath.Join(parent, "go.work"), []byte("go 1.21\n"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			child := filepath.Join(parent, "workshop")
			if err := os.Mkdir(child, 0o700); err != nil {
				w.t.Fatal(err)
			}
			w.Machine.Run = Local(child, w.State).Run
			w.realGo()
		}, Warning, "go.work covers", "stands alone", "export GOWORK=off"},
		"a workspace switched off": {func(w *fixture) {
			w.realGo()
			w.t.Setenv("GOWORK", "off")
		}, OK, "no workspace", "", ""},
		"no go to ask": {func(w *fixture) { w.remove("go") }, NotApplicable, "go is not in PATH", "", ""},
	},
	"Module proxy": {
		"a closed port": {func(w *fixture) {
			w.answers("env GOPROXY", "http://"+w.closedPort()+",direct")
		}, Failure, ": unreachable: dial tcp", "built from Go modules", "go env -u GOPROXY"},
		"a closed port and a warm cache": {func(w *fixture) {
			w.answers("env GOPROXY", "http://"+w.closedPort())
			w.warm()
		}, Warning, "connection refused", "holds k8s.io/api@v0.37.1 already", "go env -u GOPROXY"},
		"a broken proxy": {func(w *fixture) {
			w.answers("env GOPROXY", w.proxy(500, "")+","+w.proxy(200, `{"Version":"v0.37.1"}`))
		}, Failure, "HTTP 500", "built from", "SSL_CERT_FILE"},
		"a broken proxy and another behind a bar": {func(w *fixture) {
			w.answers("env GOPROXY", w.proxy(500, "")+"|"+w.proxy(200, `{"Version":"v0.37.1"}`))
		}, OK, "gives k8s.io/api@v0.37.1", "", ""},
		"a proxy without the module and another behind a comma": {func(w *fixture) {
			w.answers("env GOPROXY", w.proxy(404, "")+","+w.proxy(200, `{"Version":"v0.37.1"}`))
		}, OK, "gives k8s.io/api@v0.37.1", "", ""},
		"a proxy without the module": {func(w *fixture) { w.answers("env GOPROXY", w.proxy(404, "")) },
			Failure, "does not have it (k8s.io/api@v0.37.1, HTTP 404)", "built from", "go env -u GOPROXY"},
		"a proxy without the module, then direct": {func(w *fixture) {
			w.answers("env GOPROXY", w.proxy(410, "")+",direct")
		}, Warning, "leads to direct", "with git", "go env -u GOPROXY"},
		"a proxy that wants credentials": {func(w *fixture) { w.answers("env GOPROXY", w.proxy(401, "")) },
			Failure, "asks for credentials (HTTP 401)", "built from", "go env -u GOPROXY"},
		"a login page": {func(w *fixture) { w.answers("env GOPROXY", w.proxy(200, "<html>Welcome</html>")) },
			Failure, "a login page, perhaps", "built from", "Check the network"},
		"a gateway that answers everything": {func(w *fixture) {
			w.answers("env GOPROXY", w.proxy(200, `{"Message":"log in"}`))
		}, Failure, "a login page, perhaps", "built from", "Check the network"},
		"nothing but direct": {func(w *fixture) { w.answers("env GOPROXY", "direct") },
			Warning, "leads to direct", "with git", "go env -u GOPROXY"},
		"off and a cold cache": {func(w *fixture) { w.answers("env GOPROXY", "off") },
			Failure, "only when the module cache is warm", "built from", "unset GOPROXY"},
		"off and a warm cache": {func(w *fixture) {
			w.answers("env GOPROXY", "off")
			w.warm()
		}, Warning, "only when the module cache is warm", "may hold the rest", "unset GOPROXY"},
		"a folder that is not there": {func(w *fixture) {
			w.answers("env GOPROXY", "file://"+filepath.Join(w.t.TempDir(), "no"))
		}, Failure, "folder does not exist", "built from", "go env -u GOPROXY"},
		"a folder without the module": {func(w *fixture) {
			w.answers("env GOPROXY", "file://"+w.t.TempDir())
		}, Failure, "does not have it", "built from", "go env -u GOPROXY"},
		"a folder with the module": {func(w *fixture) {
			w.warm()
			w.answers("env GOPROXY", "file://"+filepath.Join(w.answer["env GOMODCACHE"], "cache", "download"))
		}, OK, "gives", "", ""},
		"a scheme of another kind": {func(w *fixture) { w.answers("env GOPROXY", "ftp://example.com") },
			Failure, "the scheme is none of", "built from", "go env -u GOPROXY"},
		"an empty list": {func(w *fixture) { w.answers("env GOPROXY", ",") },
			Failure, "names no proxy", "built from", "go env -u GOPROXY"},
		"no go to ask": {func(w *fixture) { w.remove("go") }, NotApplicable, "go is not in PATH", "", ""},
	},
	"make": {
		"no make": {func(w *fixture) { w.remove("make") },
			Failure, "no make in PATH", "Makefile", "apt-get install make"},
		"a make of BSD": {func(w *fixture) { w.script("make", "echo usage: make >&2; exit 2") },
			Failure, "usage: make", "Makefile", "apt-get install make"},
		"another program of that name": {func(w *fixture) { w.script("make", "echo bmake 2026") },
			Failure, "not GNU make: bmake 2026", "GNU make", "apt-get install make"},
	},
	"git": {
		"no git": {func(w *fixture) { w.remove("git") },
			Failure, "no git in PATH", "Makefile", "apt-get install git"},
		"macOS without its command line tools": {func(w *fixture) {
			w.script("git", "echo xcode-select: note: No developer tools were found >&2; exit 1")
		}, Failure, "No developer tools", "Makefile", "xcode-select --install"},
	},
	"bash": {
		"no bash": {func(w *fixture) { w.remove("bash") },
			Failure, "no bash in PATH", "Makefile", "apk add bash"},
	},
	"Disk": {
		"a little short": {func(w *fixture) { w.Disk = func(string) (uint64, error) { return 8*gib - 1, nil } },
			Warning, "8.0 GiB free for repository", "about 6 GB", "go env -w GOCACHE="},
		"just enough": {func(w *fixture) { w.Disk = func(string) (uint64, error) { return 8 * gib, nil } },
			OK, "GOMODCACHE 8.0 GiB free", "", ""},
		"a full disk for the module cache alone": {func(w *fixture) {
			w.Disk = func(path string) (uint64, error) {
				if path == w.answer["env GOMODCACHE"] {
					return 2*gib - 1, nil
				}
				return 7 * gib, nil
			}
		}, Failure, "free for GOMODCACHE", "bin/", "Free some space"},
		"a full disk for the repository alone": {func(w *fixture) {
			w.Disk = func(path string) (uint64, error) {
				if path == w.Repository {
					return gib, nil
				}
				return 7 * gib, nil
			}
		}, Failure, "1.0 GiB free for repository", "bin/", "Free some space"},
		"an unreadable file system": {func(w *fixture) {
			w.Disk = func(string) (uint64, error) { return 0, errors.New("input/output error") }
		}, Warning, "input/output error", "about 6 GB", "df -h"},
		"no go to ask": {func(w *fixture) { w.remove("go") }, OK, "repository 100.0 GiB free", "", ""},
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
		"a container above its limit, on cgroup v1": {func(w *fixture) {
			w.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n")
			w.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n")
		}, Failure, "Only 0.0 GiB left", "Compiling", "container"},
		"a container without a limit": {func(w *fixture) {
			w.write("sys/fs/cgroup/memory.max", "max\n")
			w.write("sys/fs/cgroup/memory.current", "3221225472\n")
		}, OK, "8.0 GiB of memory available", "", ""},
		"a small Mac": {func(w *fixture) {
			w.OS = "darwin"
			w.script("sysctl", `[ "$*" = "-n hw.memsize" ] && echo 1073741824`)
		}, Failure, "Only 1.0 GiB of memory in all", "Compiling", "Close"},
		"no meminfo": {func(w *fixture) { w.Root = w.t.TempDir() },
			Warning, "unknown", "Compiling", "4 GiB"},
		"a meminfo of another form": {func(w *fixture) { w.write("proc/meminfo", "MemFree: 1 kB\n") },
			Warning, "no MemAvailable", "Compiling", "4 GiB"},
	},
	"Ports": {
		"the health port is taken": {func(w *fixture) { w.takePort() },
			Warning, "is taken", "health probes", "--health-probe-bind-address=127.0.0.1:0"},
		"the health port is taken by a process that can be named": {func(w *fixture) {
			onLinux(w.t)
			w.takePort()
			w.Root = "/"
		}, Warning, "is taken by doctor.test (process ", "health probes", "Stop that program"},
		"no file may be opened any more": {func(w *fixture) {
			w.Listen = func(string, string) (net.Listener, error) {
				return nil, &net.OpError{Op: "listen", Err: os.NewSyscallError("socket", syscall.EMFILE)}
			}
		}, Failure, "too many open files", "etcd", "ulimit -n"},
		"the health port is forbidden": {func(w *fixture) {
			w.HealthPort = 80
			w.Listen = func(network, address string) (net.Listener, error) {
				if address == "127.0.0.1:80" {
					return nil, os.NewSyscallError("bind", syscall.EACCES)
				}
				return net.Listen(network, address)
			}
		}, Warning, "permission denied", "health probes", "another port"},
	},
	"Loopback": {
		"the interface is down": {func(w *fixture) {
			w.Dial = func(string, string, time.Duration) (net.Conn, error) {
				return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
			}
		}, Failure, "127.0.0.1 cannot be reached", "reach each other", "ip link set lo up"},
		"there is no such interface": {func(w *fixture) {
			w.Listen = func(string, string) (net.Listener, error) {
				return nil, &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EADDRNOTAVAIL)}
			}
		}, Failure, "No port of 127.0.0.1", "reach each other", "ip link set lo up"},
		"there is no other network": {func(w *fixture) {
			w.Dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
				if network == "udp" {
					return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ENETUNREACH)}
				}
				return net.DialTimeout(network, address, timeout)
			}
		}, OK, "this machine is offline", "", ""},
	},
	"Host name": {
		"64 bytes": {func(w *fixture) {
			w.Hostname = func() (string, error) { return strings.Repeat("h", 64), nil }
		}, Warning, "has 64 bytes", "identity Lease", "hostnamectl"},
		"63 bytes": {func(w *fixture) {
			w.Hostname = func() (string, error) { return strings.Repeat("h", 63), nil }
		}, OK, "hhh", "", ""},
		"characters that no label takes": {func(w *fixture) {
			w.Hostname = func() (string, error) { return "jane's", nil }
		}, Warning, "not a valid label value", "identity Lease", "--hostname workshop"},
		"no name at all": {func(w *fixture) {
			w.Hostname = func() (string, error) { return "", errors.New("uname: no") }
		}, Failure, "uname: no", "kube-controller-manager", "hostnamectl"},
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
	"Local cluster": {
		"one component of five runs": {func(w *fixture) { w.cluster("etcd") },
			Warning, "etcd runs, kube-apiserver, kube-controller-manager, kube-scheduler, kwok does not",
			"kubectl", "`make up` repairs it, `make down` removes it"},
		"nothing runs": {func(w *fixture) { w.cluster() },
			Warning, "nothing runs", "kubectl", "`make down` removes it"},
		"an empty folder": {func(w *fixture) {
			if err := os.Mkdir(filepath.Join(w.State, "cluster"), 0o700); err != nil {
				w.t.Fatal(err)
			}
		}, Warning, "nothing runs", "kubectl", "`make down` removes it"},
		"all run": {func(w *fixture) { w.cluster(cluster.Names()...) }, OK, "running", "", ""},
		"all run in a container that shares the folder": {func(w *fixture) {
			w.cluster(cluster.Names()...)
			record := `{"pid": 7, "host": "devcontainer-1", "boot": "another", "start": "1", "executable": "/bin/etcd"}`
			if err := os.WriteFile(filepath.Join(w.State, "cluster", "etcd.pid"), []byte(record), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, Warning, "was started in another container or machine, devcontainer-1", "kubectl", "end it there"},
		"a file where the folder should be": {func(w *fixture) {
			w.State = filepath.Join(w.Repository, "state")
			if err := os.WriteFile(w.State, nil, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, Warning, "cannot be read", "kubectl", "remove it"},
		"a file below a file": {func(w *fixture) {
			if err := os.WriteFile(filepath.Join(w.State, "cluster"), nil, 0o600); err != nil {
				w.t.Fatal(err)
			}
		}, Warning, "cannot be read", "kubectl", "remove the folder"},
	},
	"Docker": {
		"no docker": {func(w *fixture) { w.remove("docker") },
			NotApplicable, "everything else works without", "", ""},
		"a dead daemon": {func(w *fixture) {
			w.script("docker", "echo Cannot connect to the Docker daemon. >&2; exit 1")
		}, Warning, "Cannot connect to the Docker daemon", "kind environment", "sudo systemctl start docker"},
		"a client that hides the dead daemon": {func(w *fixture) { w.script("docker", "exit 0") },
			Warning, "no server version", "kind environment", "docker info"},
		"a daemon that hangs": {func(w *fixture) {
			w.script("docker", "read line < "+quote(w.fifo()))
			w.Limit = 50 * time.Millisecond
		}, Warning, "No answer within 50ms", "kind environment", "Restart Docker"},
	},
	"inotify": {
		"few instances": {func(w *fixture) { w.write("proc/sys/fs/inotify/max_user_instances", "128\n") },
			Warning, "max_user_instances is 128", "too many open files",
			"sudo sysctl fs.inotify.max_user_instances=512"},
		"few watches": {func(w *fixture) { w.write("proc/sys/fs/inotify/max_user_watches", "524287\n") },
			Warning, "max_user_watches is 524287", "too many open files",
			"sudo sysctl fs.inotify.max_user_watches=524288"},
		"no such limits": {func(w *fixture) { w.Root = w.t.TempDir() },
			NotApplicable, "cannot be read", "", ""},
		"a Mac":     {func(w *fixture) { w.OS = "darwin" }, NotApplicable, "its own Linux", "", ""},
		"no docker": {func(w *fixture) { w.remove("docker") }, NotApplicable, "there is no Docker", "", ""},
	},
	"cgroup": {
		"version 1 or hybrid": {func(w *fixture) {
			w.Root = w.t.TempDir()
			w.write("sys/fs/cgroup/unified/cgroup.controllers", "")
			w.write("sys/fs/cgroup/memory/tasks", "")
		}, Warning, "does not use cgroup version 2", "failCgroupV1", "systemd.unified_cgroup_hierarchy=1"},
		"a Mac":     {func(w *fixture) { w.OS = "darwin" }, NotApplicable, "its own Linux", "", ""},
		"no docker": {func(w *fixture) { w.remove("docker") }, NotApplicable, "there is no Docker", "", ""},
	},
}

// takePort listens on a port and makes it the health port.
func (w *fixture) takePort() {
	w.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
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

// complete sees that a finding says all that its status asks for.
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

// The credentials are in the URL as the go command takes them, and in the shapes that are wrong.
func TestCredentialsOfAModuleProxyAreNotShown(t *testing.T) {
	for sentence, entry := range map[string]func(*fixture) string{
		"refused": func(w *fixture) string {
			return strings.Replace(w.proxy(403, ""), "//", "//jane:secret@", 1)
		},
		"accepted": func(w *fixture) string {
			return strings.Replace(w.proxy(200, `{"Version":"v0.37.1"}`), "//", "//secret@", 1)
		},
		"closed":       func(w *fixture) string { return "http://secret:jane@" + w.closedPort() },
		"not a URL":    func(*fixture) string { return "https://jane:sec%ret@proxy.example.com:port" },
		"a bad escape": func(*fixture) string { return "https://jane:%zzsecret@proxy.example.com" },
		"no scheme":    func(w *fixture) string { return "jane:secret@" + w.closedPort() },
		"a slash":      func(*fixture) string { return "https://jane:pass/secret@proxy.example.com" },
	} {
		t.Run(sentence, func(t *testing.T) {
			w := newFixture(t)
			w.answers("env GOPROXY", entry(w))
			got := w.finding("Module proxy")
			shown := got.What + got.Why + got.Fix
			if strings.Contains(shown, "secret") || strings.Contains(shown, "jane") {
				t.Errorf("shown: %+v", got)
			}
		})
	}
}
