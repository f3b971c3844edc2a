package doctor

import (
	"runtime"
	"strings"
	"testing"
)

// scene is one state of the machine and the expected finding of a check: its status, and a part of its What and of its
// Fix.
type scene struct {
	set       func(*fixture)
	status    Status
	what, fix string
}

// scenes are keyed by the name of a check and a sentence.
var scenes = map[string]scene{
	"Go: no go at all":                   {remove("go"), Failure, "not found", "https://go.dev/dl/"},
	"Go: an old go that fetches nothing": {goVersion("go1.25.1 linux/amd64"), Failure, "go1.25.1", "GOTOOLCHAIN=auto"},
	"Go: a candidate of the release":     {goVersion("go1.26rc1 linux/amd64"), Failure, "go1.26rc1", "Install Go 1.26"},
	"Go: a development version": {goVersion("devel go1.28-1234abcd Mon Jan 1 00:00:00 2029 +0000 linux/amd64"),
		OK, "go1.28-1234abcd", ""},
	"Go: a go that cannot run": {script("go", "echo no GOROOT >&2; exit 1"), Failure, "no GOROOT", "Install Go"},
	"Go: a go that cannot fetch the new one": {
		script("go", "echo download go1.26 from https://jane:secret@host: no route >&2; exit 1"),
		Failure, "https://host: no route", "Install Go"},

	"git: macOS without its command line tools": {
		script("git", "echo xcode-select: note: No developer tools were found >&2; exit 1"),
		Failure, "No developer tools", "xcode-select --install"},

	"Lines: a checkout of Git for Windows": {
		script("git", `printf 'i/lf w/crlf attr/ Makefile\ni/lf w/mixed attr/ README.md\ni/-text w/-text attr/ a.png\n'`),
		Failure, "2 files have CRLF", "git config core.autocrlf false"},
	"Lines: a file that was removed": {script("git", "echo 'i/lf w/ attr/ Makefile'"), OK, "converted", ""},
	"Lines: an unpacked archive": {script("git", "echo not a git repository >&2; exit 128"),
		NotApplicable, "not a clone", ""},

	"Variables: another machine": {environment("GOOS", "plan9", "GOARCH", "mips"), Warning,
		"GOOS=plan9 (programs are built for another machine: Exec format error); GOARCH=mips", "unset GOOS GOARCH\n"},
	"Variables: this machine":     {environment("GOOS", runtime.GOOS, "GOARCH", runtime.GOARCH), OK, "no setting", ""},
	"Variables: flags":            {environment("GOFLAGS", "-mod=mod"), Warning, "GOFLAGS=-mod=mod", "unset GOFLAGS"},
	"Variables: a workspace":      {environment("GOWORK", "/home/go.work"), Warning, "GOWORK=/home", "unset GOWORK"},
	"Variables: a folder":         {environment("GOBIN", "/bin"), Warning, "`go install` writes there", "unset GOBIN"},
	"Variables: an old toolchain": {environment("GOTOOLCHAIN", "go1.25.1"), Warning, "Go 1.26", "unset GOTOOLCHAIN"},
	"Variables: no other toolchain": {
		environment("GOTOOLCHAIN", "local", "GOWORK", "off", "GOFLAGS", "-mod=readonly -trimpath"), OK, "no setting", ""},
	"Variables: a setting of go env -w": {setByGo("GOARCH=mips\n"), Warning, "GOARCH=mips", "go env -u GOARCH\n"},
	"Variables: no go to ask":           {remove("go"), OK, "no setting", ""},

	"Disk: a little short":          {disk(8*gib-1, 8*gib), Warning, "Only 8.0 GiB free for /", "go env -w GOCACHE="},
	"Disk: just enough":             {disk(8*gib, 8*gib), OK, "8.0 GiB free", ""},
	"Disk: a full module cache":     {disk(2*gib-1, 7*gib), Failure, "Only 2.0 GiB free for ", "Free some space"},
	"Disk: a full repository":       {disk(7*gib, gib), Failure, "Only 1.0 GiB free for ", "Free some space"},
	"Disk: a file system's error":   {unreadable, Warning, "input/output error", "Free some space"},
	"Disk: no go to ask for caches": {remove("go"), OK, "100.0 GiB free", ""},

	"Memory: a small machine": {file("proc/meminfo", "MemAvailable: 4194303 kB\n"),
		Warning, "Only 4.0 GiB of memory available", "GOMAXPROCS=1"},
	"Memory: a tiny machine": {file("proc/meminfo", "MemAvailable: 2097151 kB\n"),
		Failure, "Only 2.0 GiB of memory", "Close other programs"},
	"Memory: just enough": {file("proc/meminfo", "MemAvailable: 4194304 kB\n"), OK, "4.0 GiB of memory available", ""},
	"Memory: a container with a limit": {file("sys/fs/cgroup/memory.max", "4294967296\n",
		"sys/fs/cgroup/memory.current", "3221225472\n", "sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 1073741824\n"),
		Warning, "Only 2.0 GiB left under this container's memory limit", "container"},
	"Memory: a container without a limit": {
		file("sys/fs/cgroup/memory.max", "max\n", "sys/fs/cgroup/memory.current", "3221225472\n"),
		OK, "8.0 GiB of memory available", ""},
	"Memory: a small Mac":     {mac, Failure, "Only 1.0 GiB of memory in all", "Close"},
	"Memory: no meminfo":      {noFiles, Warning, "unknown", "Close"},
	"Memory: another meminfo": {file("proc/meminfo", "MemFree: 1 kB\n"), Warning, "has no MemAvailable", "Close"},

	"Ports: the health port is taken": {takePort, Warning, "is in use", "--health-probe-bind-address=127.0.0.1:0"},
	"Ports: no program may listen": {func(w *fixture) { w.HealthPort = 1 << 16 },
		Failure, "No program may listen: listen tcp", "sandbox"},

	"Proxies: a proxy for everything": {environment("HTTPS_PROXY", "http://jane:secret@proxy:3128"),
		Warning, "HTTPS_PROXY set", "export no_proxy="},
	"Proxies: an exception for the name localhost only": {
		environment("http_proxy", "http://proxy:3128", "NO_PROXY", "localhost,10.0.0.0/8"),
		Warning, "http_proxy set, and NO_PROXY does not contain 127.0.0.1", "export no_proxy="},
	"Proxies: a lower-case list that hides a better one": {
		environment("http_proxy", "http://proxy:3128", "no_proxy", "example.com", "NO_PROXY", "127.0.0.1"),
		Warning, "does not contain 127.0.0.1", "export no_proxy="},
	"Proxies: an exception for the address": {
		environment("http_proxy", "http://proxy:3128", "NO_PROXY", "example.com, 127.0.0.1"), OK, "not for 127.0.0.1", ""},
	"Proxies: an exception for its network": {
		environment("ALL_PROXY", "socks5://proxy:1080", "no_proxy", "127.0.0.0/8"), OK, "ALL_PROXY", ""},
	"Proxies: an exception for everything": {
		environment("HTTP_PROXY", "http://proxy:3128", "no_proxy", "*"), OK, "HTTP_PROXY", ""},

	"Docker: no docker": {remove("docker"), NotApplicable, "everything else works without", ""},
	"Docker: a dead daemon": {script("docker", "echo Cannot connect to the Docker daemon. >&2; exit 1"),
		Warning, "Cannot connect to the Docker daemon", "sudo systemctl restart docker"},
	"Docker: a client that hides the dead daemon": {script("docker", "echo ' cgroup v'"),
		Warning, "no server version", "docker info"},
	"Docker: cgroup v1 or hybrid": {script("docker", "echo 29.1.0 cgroup v1"),
		Warning, "uses cgroup version 1", "systemd.unified_cgroup_hierarchy=1"},

	"inotify: few instances": {file("proc/sys/fs/inotify/max_user_instances", "128\n"),
		Warning, "max_user_instances 128, max_user_watches 524288", "sudo sysctl fs.inotify.max_user_instances=512\nTo"},
	"inotify: few watches": {file("proc/sys/fs/inotify/max_user_watches", "524287\n"),
		Warning, "max_user_watches 524287", "sudo sysctl fs.inotify.max_user_watches=524288\n"},
	"inotify: no such limits": {noFiles, NotApplicable, "cannot be read", ""},
	"inotify: a Mac":          {mac, NotApplicable, "its own Linux", ""},
	"inotify: no docker":      {remove("docker"), NotApplicable, "there is no Docker", ""},
}

func TestEachCheckSeesItsFault(t *testing.T) {
	missing := map[string]bool{}
	for _, check := range checks {
		missing[check.name] = true
	}
	for sentence, scene := range scenes {
		name, _, _ := strings.Cut(sentence, ":")
		if scene.status >= Warning {
			delete(missing, name)
		}
		t.Run(sentence, func(t *testing.T) {
			w := newFixture(t)
			scene.set(w)
			got := named(t, name).run(t.Context(), w.Machine)
			if got.Status != scene.status || !strings.Contains(got.What, scene.what) || !strings.Contains(got.Fix, scene.fix) {
				t.Errorf("want %s, %q and %q, got %+v", scene.status, scene.what, scene.fix, got)
			}
			complete(t, got)
			if strings.Contains(got.What+got.Why+got.Fix, "secret") {
				t.Errorf("a credential is shown: %+v", got)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("no test makes the fault that these checks look for: %v", missing)
	}
}

// complete verifies that a finding has all the sentences that its status requires.
func complete(t *testing.T, finding Diagnosis) {
	t.Helper()
	problem := finding.Status >= Warning
	if finding.What == "" || problem != (finding.Why != "") || problem != (finding.Fix != "") {
		t.Errorf("a problem has a why and a fix, all else has only a what: %+v", finding)
	}
}
