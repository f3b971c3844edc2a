package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A repository is a small repository that pins one tool, whose module is beside it, so that the tests need no network.
type repository struct {
	t *testing.T
	Builder
	out *output
}

// output collects the text that a reporter prints from several goroutines.
type output struct {
	mu sync.Mutex
	bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Buffer.String()
}

func newRepository(t *testing.T) repository {
	t.Helper()
	out := &output{}
	r := repository{t, Builder{
		Root:   filepath.Join(t.TempDir(), `a learner's "repository"`),
		Report: Reporter{W: out, Every: time.Millisecond},
		Tools:  []Tool{{Name: "hello", Package: "example.test/hello/v2"}, {Name: "unpinned", Package: "example.test/unpinned"}},
	}, out}
	r.write("hello/go.mod", "module example.test/hello/v2\n\ngo 1.26.0\n")
	r.write("go.sum", "")
	r.pin("v2.0.0")
	return r
}

func (r repository) write(path, text string) {
	r.t.Helper()
	testkit.Write(r.t, filepath.Join(r.moduleDir(""), path), text)
}

// pin changes the tool to another version, and the tool prints that version.
func (r repository) pin(version string) {
	r.write("go.mod", "module example.test/tools\n\ngo 1.26.0\n\ntool example.test/hello/v2\n\n"+
		"require example.test/hello/v2 "+version+"\n\nreplace example.test/hello/v2 => ./hello\n")
	r.write("hello/main.go", "package main\n\nfunc main() { println(\"hello "+version+"\") }\n")
}

func (r repository) ensure() error { return r.Ensure(r.t.Context(), "hello", "hello") }

// mustHave checks that bin/ has the tool in that version, and no incomplete files.
func (r repository) mustHave(version string) {
	r.t.Helper()
	out, err := exec.Command(filepath.Join(r.Bin(), "hello")).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != "hello "+version {
		r.t.Errorf("the program says %q (%v), wanted version %s", got, err, version)
	}
	if left, _ := os.ReadDir(r.Bin()); len(left) != 2 { // .lock, hello
		r.t.Errorf("bin/ has %v", left)
	}
}

func (r repository) mustBuild(version string) {
	r.t.Helper()
	testkit.Must(r.t, r.ensure())
	r.mustHave(version)
}

// fails requires an error with the reason and the fix.
func (r repository) fails(reason, fix string) {
	r.t.Helper()
	if err := r.ensure(); err == nil || !strings.Contains(err.Error(), reason) || !strings.Contains(err.Error(), fix) {
		r.t.Errorf("the error is: %v\nwanted: %s … %s", err, reason, fix)
	}
}

func TestAToolIsBuiltOnceForEachVersion(t *testing.T) {
	r := newRepository(t)
	r.mustBuild("v2.0.0")
	before, err := os.Stat(filepath.Join(r.Bin(), "hello"))
	testkit.Must(t, err)
	r.out.Reset()
	r.mustBuild("v2.0.0")
	after, err := os.Stat(filepath.Join(r.Bin(), "hello"))
	if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) || r.out.Len() > 0 {
		t.Errorf("it was built again: %v\n%s", err, r.out)
	}
	r.pin("v2.0.1")
	r.mustBuild("v2.0.1")
}

func TestProgressMovesAndEndsWithATotal(t *testing.T) {
	r := newRepository(t)
	r.mustBuild("v2.0.0")
	text := r.out.String()
	for _, line := range []string{`building hello`, `  compiling packages: 0 of [1-9]\d*, 0s`,
		`  compiling packages: \d+ of \d+, \d+s`, `built into bin/: 1 of 1, in \d+s`} {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(text) {
			t.Errorf("no line like %q in:\n%s", line, text)
		}
	}
	for _, found := range regexp.MustCompile(`(\d+) of (\d+)`).FindAllStringSubmatch(text, -1) {
		var done, total int
		if _, err := fmt.Sscan(found[1]+" "+found[2], &done, &total); err != nil || done > total {
			t.Errorf("%s is more than all: %v", found[0], err)
		}
	}
	moving := &output{}
	meter := Reporter{W: moving, Moving: true}.Meter("compiling packages")
	meter.Set(3, 7)
	meter.Stop()
	if got := moving.String(); !strings.HasPrefix(got, "\r\x1b[K  compiling packages: 3 of 7, 0s") ||
		!strings.HasSuffix(got, "\n") {
		t.Errorf("on a terminal: %q", got)
	}
	if got := meter.text(30 * time.Second); got != "  compiling packages: 3 of 7, 30s, about 40s to go" {
		t.Errorf("after a while: %q", got)
	}
}

func TestTheFirstTimeIsAnnounced(t *testing.T) {
	for cores, want := range map[int]string{
		2:  "about 5 GB of disk and 8 min on the 2 cores of this machine",
		10: "about 5 GB of disk and 2 min on the 10 cores of this machine",
		64: "about 5 GB of disk and 1 min on the 64 cores of this machine",
	} {
		if got := firstTime(cores); !strings.Contains(got, want) {
			t.Errorf("with %d cores: %s", cores, got)
		}
	}
	r := newRepository(t)
	t.Setenv("GOMODCACHE", t.TempDir())
	if !r.isNew(t.Context(), "v1.37.1") {
		t.Error("a module cache without Kubernetes is not announced")
	}
	cache := t.TempDir()
	testkit.Must(t, os.MkdirAll(filepath.Join(cache, "k8s.io", "kubernetes@v1.37.1"), 0o755))
	t.Setenv("GOMODCACHE", cache)
	if r.isNew(t.Context(), "v1.37.1") {
		t.Error("it is announced, although the sources are there")
	}
}

func TestWhatIsHalfBuiltIsBuiltAgain(t *testing.T) {
	r := newRepository(t)
	r.mustBuild("v2.0.0")
	program := filepath.Join(r.Bin(), "hello")
	for what, err := range map[string]func() error{
		"the program is missing":        func() error { return os.Remove(program) },
		"the program is empty":          func() error { return os.Truncate(program, 0) },
		"the program has half its size": func() error { return os.Truncate(program, 1<<18) },
		"another program in its place": func() error {
			self, err := os.ReadFile(os.Args[0])
			return errors.Join(err, os.Remove(program), os.WriteFile(program, self, 0o755))
		},
		"a build was killed": func() error {
			return errors.Join(os.MkdirAll(filepath.Join(r.Bin(), ".build", "x"), 0o755), os.Remove(program))
		},
	} {
		t.Run(what, func(t *testing.T) {
			testkit.Must(t, err())
			repository{t, r.Builder, r.out}.mustBuild("v2.0.0")
		})
	}
}

// A bundle has programs of other machines. Those of the pinned versions are not compiled.
func TestAPinnedProgramIsAdopted(t *testing.T) {
	r := newRepository(t)
	r.mustBuild("v2.0.0")
	ready := t.TempDir()
	for pinned, wanted := range map[string]bool{"v2.0.0": true, "v2.0.1": false} {
		r.pin("v2.0.0")
		r.mustBuild("v2.0.0")
		testkit.Must(t, os.Rename(filepath.Join(r.Bin(), "hello"), filepath.Join(ready, "hello")))
		r.pin(pinned)
		r.out.Reset()
		testkit.Must(t, r.Adopt(ready))
		r.mustBuild(pinned)
		if adopted := r.out.Len() == 0; adopted != wanted {
			t.Errorf("with the pin %s, v2.0.0 was adopted: %v", pinned, adopted)
		}
	}
}

func TestAFailedBuildLeavesTheOldProgram(t *testing.T) {
	r := newRepository(t)
	r.mustBuild("v2.0.0")
	r.pin("v2.0.1")
	r.write("hello/main.go", "package main\n\nfunc main() { nonsense() }\n")
	r.fails("build hello: ", "main.go:3:15: undefined: nonsense")
	r.mustHave("v2.0.0")
	if err := r.Ensure(t.Context(), "hullo"); err == nil || !strings.Contains(err.Error(), `"hullo"`) {
		t.Errorf("a tool that nobody knows: %v", err)
	}
	if err := r.Ensure(t.Context(), "unpinned"); err == nil ||
		!strings.Contains(err.Error(), "package example.test/unpinned") {
		t.Errorf("a tool that is not pinned: %v", err)
	}
}

func TestAnInterruptedBuildLeavesTheOldProgram(t *testing.T) {
	r := newRepository(t)
	r.mustBuild("v2.0.0")
	r.pin("v2.0.1")
	t.Setenv("GOCACHE", t.TempDir()) // empty: the build would have to compile the standard library
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.Report.W = writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("compiling packages: 3 of")) {
			cancel()
		}
		return len(p), nil
	})
	start := time.Now()
	if err := r.Ensure(ctx, "hello"); !errors.Is(err, context.Canceled) || time.Since(start) > time.Minute {
		t.Errorf("after %v it ended with %v", time.Since(start), err)
	}
	r.mustHave("v2.0.0")
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestTwoBuildsAtOnceAreOne(t *testing.T) {
	r := newRepository(t)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := r.ensure(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r.mustHave("v2.0.0")
	if text := r.out.String(); strings.Count(text, "building hello") != 1 {
		t.Errorf("not one build:\n%s", text)
	}
}

// hostile returns settings that a reader may have for other projects; parent is the folder that contains the checkout.
var hostile = map[string]func(t *testing.T, parent string){
	"GOFLAGS asks for a vendor folder": func(t *testing.T, _ string) { t.Setenv("GOFLAGS", "-mod=vendor") },
	"GOFLAGS is nonsense":              func(t *testing.T, _ string) { t.Setenv("GOFLAGS", "nonsense") },
	"another platform": func(t *testing.T, _ string) {
		t.Setenv("GOOS", "windows")
		t.Setenv("GOARCH", "386")
	},
	"modules are off":             func(t *testing.T, _ string) { t.Setenv("GO111MODULE", "off") },
	"no toolchain may be fetched": func(t *testing.T, _ string) { t.Setenv("GOTOOLCHAIN", "local") },
	"no network":                  func(t *testing.T, _ string) { t.Setenv("GOPROXY", "off") },
	"go env -w wrote all that": func(t *testing.T, parent string) {
		file := filepath.Join(parent, "env")
		t.Setenv("GOENV", file)
		text := "GOFLAGS=-mod=vendor\nGOOS=windows\nGOARCH=386\nGO111MODULE=off\nCGO_ENABLED=1\n"
		testkit.Must(t, os.WriteFile(file, []byte(text), 0o644))
		for _, name := range []string{"GOFLAGS", "GOOS", "GOARCH", "GO111MODULE", "CGO_ENABLED"} {
			t.Setenv(name, "")
		}
	},
	"a go.work in a parent folder": func(t *testing.T, parent string) {
		if err := os.WriteFile(filepath.Join(parent, "go.work"), []byte("go 1.26.0\n\nuse ./elsewhere\n"),
			0o644); err != nil {
			t.Fatal(err)
		}
	},
}

func TestSettingsForOtherProjectsDoNotMatter(t *testing.T) {
	for what, set := range hostile {
		t.Run(what, func(t *testing.T) {
			r := newRepository(t)
			set(t, filepath.Dir(r.Root))
			r.mustBuild("v2.0.0")
		})
	}
}

func TestErrorsNameTheFix(t *testing.T) {
	needsNetwork := func(t *testing.T, r repository) {
		r.write("go.mod", "module example.test/tools\n\ngo 1.26.0\n\nrequire example.test/hello/v2 v2.0.0\n")
		r.write("go.sum", "example.test/hello/v2 v2.0.0 h1:"+strings.Repeat("A", 43)+"=\n"+
			"example.test/hello/v2 v2.0.0/go.mod h1:"+strings.Repeat("A", 43)+"=\n")
	}
	for what, fault := range map[string]struct {
		make        func(t *testing.T, r repository)
		reason, fix string
	}{
		"no Go": {func(t *testing.T, _ repository) { t.Setenv("PATH", t.TempDir()) }, "go", "https://go.dev/dl/"},
		"an old Go": {func(t *testing.T, _ repository) {
			t.Setenv("PATH", pathWithout(t, `[ "$1" = env ] && echo go1.24.1 && exit
echo "go: go.mod requires go >= 1.26.0 (running go 1.24.1; GOTOOLCHAIN=local)" >&2; exit 1`))
		}, "running go 1.24.1", "install Go 1.26"},
		"a proxy that is off": {func(t *testing.T, r repository) {
			needsNetwork(t, r)
			t.Setenv("GOPROXY", "off")
		}, "example.test/hello/v2 v2.0.0", "run once with a module proxy"},
		"a network that is down": {func(t *testing.T, r repository) {
			needsNetwork(t, r)
			t.Setenv("GOPROXY", "http://127.0.0.1:1")
		}, "connection refused", "check the network and GOPROXY"},
		"no home": {func(t *testing.T, _ repository) {
			for _, name := range []string{"HOME", "XDG_CACHE_HOME", "GOCACHE"} {
				t.Setenv(name, "")
			}
			t.Setenv("GOENV", "off")
		}, "HOME", "set it"},
		"pins that are damaged": {func(_ *testing.T, r repository) { r.write("go.mod", "module") }, "go.mod", ""},
		"bin/ is a file": {func(t *testing.T, r repository) {
			testkit.Must(t, os.WriteFile(r.Bin(), nil, 0o644))
		}, "bin: not a directory", "must be writable"},
		"bin/ is read-only": {func(t *testing.T, r repository) { mount(t, r.Bin(), "ro") }, "read-only", "must be writable"},
		"the disk is full": {func(t *testing.T, r repository) { mount(t, r.Bin(), "size=64k") }, "no space left",
			"free about 8 GB"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRepository(t)
			fault.make(t, r)
			r.fails(fault.reason, fault.fix)
		})
	}
}

// mount mounts a small file system at dir, where the machine allows it.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(dir, 0o755))
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "none", dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount here: %s", out)
	}
	t.Cleanup(func() {
		if err := exec.Command("umount", dir).Run(); err != nil {
			t.Error("umount:", err)
		}
	})
}

func TestNoProcessOutlivesAnInterrupt(t *testing.T) {
	r := newRepository(t)
	number := filepath.Join(t.TempDir(), "number")
	t.Setenv("NUMBER", number)
	t.Setenv("PATH", pathWithout(t, `[ "$1" = env ] && echo go1.26.0 && exit
sleep 600 & echo $! >"$NUMBER.new"; mv "$NUMBER.new" "$NUMBER"; wait`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(number); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	start := time.Now()
	if err := r.Ensure(ctx, "hello"); !errors.Is(err, context.Canceled) || time.Since(start) > time.Minute {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	var pid int
	data, _ := os.ReadFile(number)
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for alive(pid) && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if alive(pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("process %d of the go command lives on", pid)
	}
}

// alive reports whether a process runs. A zombie process does not run.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	out, err := exec.Command("/bin/ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestAToolThatHasAModuleOfItsOwn(t *testing.T) {
	r := newRepository(t)
	r.Tools = append(r.Tools, Tool{Name: "other", Package: "example.test/other", Module: "other", Tags: "tagged",
		Versions: []string{"main.version"}})
	pin := func(library string) {
		r.write("../other/go.mod", "module example.test/others\n\ngo 1.26.0\n\nrequire example.test/other v1.0.0\n"+
			"require example.test/library "+library+"\n\nreplace example.test/other => ./other\n"+
			"replace example.test/library => ./library\n")
	}
	pin("v1.0.0")
	r.write("../other/library/go.mod", "module example.test/library\n\ngo 1.26.0\n")
	r.write("../other/library/library.go", "package library\n")
	r.write("../other/go.sum", "")
	r.write("../other/other/go.mod", "module example.test/other\n\ngo 1.26.0\n\nrequire example.test/library v1.0.0\n")
	r.write("../other/other/main.go", "package main\n\nimport _ \"example.test/library\"\n\nvar version, tag string\n\nfunc main() { println(version + tag) }\n")
	r.write("../other/other/tagged.go", "//go:build tagged\n\npackage main\n\nfunc init() { tag = \" tagged\" }\n")
	testkit.Must(t, r.Ensure(t.Context(), "hello", "other"))
	for name, want := range map[string]string{"hello": "hello v2.0.0", "other": "v1.0.0 tagged"} {
		out, err := exec.Command(filepath.Join(r.Bin(), name)).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s prints %q (%v), wanted %q", name, got, err, want)
		}
	}
	pin("v1.0.1")
	if wanted, err := r.outdated(r.Bin(), []string{"hello", "other"}); err != nil || len(wanted) != 1 || wanted[0].Name != "other" {
		t.Errorf("after the change of a dependency of other, these tools are built again: %v, %v", wanted, err)
	}
}

// Warm compiles libraries alone: a program would be linked, and then discarded.
func TestWarmLinksNoProgram(t *testing.T) {
	r := newRepository(t)
	r.write("program/go.mod", "module example.test/program\n\ngo 1.26.0\n")
	r.write("program/main.go", "package main\n\nimport \"example.test/program/library\"\n\nfunc main() { absent(library.Value) }\n")
	r.write("program/absent.go", "package main\n\nfunc absent(int)\n") // the linker finds no such function
	r.write("program/absent.s", "")
	r.write("program/library/library.go", "package library\n\nconst Value = 1\n")
	module := filepath.Join(r.moduleDir(""), "program")
	testkit.Must(t, r.Warm(t.Context(), module))
	stale, err := r.countStale(t.Context(), module, []string{"example.test/program/library"}, r.Report.Meter(""))
	if err != nil || stale != 0 {
		t.Errorf("the library: %d stale packages, %v", stale, err)
	}
}

func TestAProgramIsLinkedWhenAPackageHasChanged(t *testing.T) {
	r := newRepository(t)
	var before os.FileInfo
	for step, linked := range []bool{true, false, true} {
		if step == 2 {
			r.pin("v2.0.1")
		}
		testkit.Must(t, r.Program(t.Context(), filepath.Join(r.moduleDir(""), "hello"), ".", "hello"))
		after, err := os.Stat(filepath.Join(r.Bin(), "hello"))
		if err != nil || os.SameFile(before, after) == linked {
			t.Errorf("step %d: it should be linked: %v (%v)", step, linked, err)
		}
		before = after
	}
	if left, _ := os.ReadDir(r.Bin()); len(left) != 1 {
		t.Errorf("bin/ has %v", left)
	}
}
