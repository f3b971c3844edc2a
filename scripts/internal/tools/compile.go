package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/process"
)

// Warm downloads and compiles the packages that the code, the tests and the tools of a module need, into Go's build
// cache, and shows its progress. Later `go run` and `go test` commands, which show no progress, then start at once.
func (b Builder) Warm(ctx context.Context, module string) error {
	// Without programs, which `go build` would link, and then discard.
	const names = `{{if and .GoFiles (ne .Name "main") (not (or .Standard .ForTest))}}{{.ImportPath}}{{"\n"}}{{end}}`
	var packages []string
	for _, what := range [][]string{{"-test", "./..."}, {"tool"}} {
		var out bytes.Buffer
		meter := b.Report.Meter("downloading sources")
		args := append(append(buildFlags("list"), "-deps", "-f", names), what...)
		err := b.run(ctx, module, args, &out, meter.CountDownloads())
		meter.Stop()
		if err != nil {
			return err
		}
		packages = append(packages, strings.Fields(out.String())...)
	}
	if packages == nil {
		return nil
	}
	return b.compile(ctx, module, packages)
}

// Program compiles a command of one of our modules into bin/, in one step: the go command renames the program from its
// work folder. It links a program only when a package has changed.
func (b Builder) Program(ctx context.Context, module, pkg, name string) error {
	if err := os.MkdirAll(b.Bin(), 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(b.Bin(), ".program-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	b.Env = append(slices.Clone(b.Env), "GOTMPDIR="+work)
	return b.compile(ctx, module, []string{pkg}, "-ldflags", noDebug, "-o", filepath.Join(b.Bin(), name))
}

// compile builds packages of a module with one `go build`, so that shared packages are compiled once.
func (b Builder) compile(ctx context.Context, module string, packages []string, args ...string) error {
	meter := b.Report.Meter("downloading and reading sources")
	stale, err := b.countStale(ctx, module, packages, meter)
	meter.Stop()
	if err != nil || stale == 0 && len(args) == 0 {
		return err
	}
	meter = b.Report.Meter("compiling packages")
	meter.Set(0, stale)
	defer meter.Stop()
	done := 0
	args = append(append(buildFlags("build"), "-v"), args...)
	err = b.run(ctx, module, append(args, packages...), io.Discard, func(string) {
		done++
		meter.Set(done, max(stale, done))
	})
	if err == nil { // the progress does not count packages that were only linked
		meter.Set(max(stale, done), max(stale, done))
	}
	return err
}

// Resolve downloads the modules that a module of the repository needs for its packages and their tests, for the
// builder's platform. For scripts/tools, these packages are the programs.
func (b Builder) Resolve(ctx context.Context, module string) error {
	meter := b.Report.Meter("modules of " + module)
	defer meter.Stop()
	dir, list := filepath.Join(b.Root, module), append(buildFlags("list"), "-deps", "-f", "")
	needs := [][]string{{"-test", "-tags=e2e,kind", "./..."}, {"tool"}} // with the tests on kind
	if dir == b.moduleDir("") {
		needs = [][]string{nil}
		for _, t := range b.tools() {
			if t.Module == "" {
				needs[0] = append(needs[0], t.Package)
			}
		}
	}
	for _, what := range needs {
		if err := b.run(ctx, dir, slices.Concat(list, what), io.Discard, meter.CountDownloads()); err != nil {
			return err
		}
	}
	return nil
}

// countStale downloads what the packages need and returns how many of all packages in their import
// graph the build cache does not have yet.
func (b Builder) countStale(ctx context.Context, module string, packages []string, meter *Meter) (int, error) {
	args := append(buildFlags("list"), "-deps", "-f", "{{if .Stale}}x{{end}}")
	var out bytes.Buffer
	err := b.run(ctx, module, append(args, packages...), &out, meter.CountDownloads())
	return strings.Count(out.String(), "x"), err
}

// buildFlags makes a build independent of GOFLAGS, `go env -w`, a go.work and version control. With -trimpath a compiled package
// contains no path of this machine, so Go's build cache has it for all clones, and for other builds with this flag.
func buildFlags(verb string) []string {
	return []string{verb, "-mod=readonly", "-buildvcs=false", "-trimpath"}
}

// noDebug has flags of the linker: without debug information it is faster, and these programs need no debugger.
const noDebug = "-s -w"

// Env returns the environment in which the workshop compiles: static programs for this machine, without the reader's
// settings for other projects. Env sets every variable, because for a missing variable the setting of `go env -w` would
// count. GOPROXY and similar variables are the reader's.
func Env() []string {
	ours := []string{"GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "CGO_ENABLED=0", "GO111MODULE=on",
		"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "GOEXPERIMENT=") || slices.ContainsFunc(ours, func(o string) bool {
			name, _, _ := strings.Cut(o, "=")
			return strings.HasPrefix(kv, name+"=")
		})
	})
	return append(env, ours...)
}

// output runs the go command and returns its output.
func (b Builder) output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := b.run(ctx, b.moduleDir(""), args, &out, func(string) {})
	return out.String(), err
}

// run runs the go command in a module and passes each line of stderr to line. When the command fails, the error has the
// last lines that are not progress.
func (b Builder) run(ctx context.Context, module string, args []string, stdout io.Writer, line func(string)) error {
	work, err := os.MkdirTemp("", "workshop-build-") // the go command's work folder, which it leaves behind at Ctrl-C
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cmd := process.Command(ctx, 5*time.Second, "go", args...)
	goos, arch := b.platform()
	cmd.Dir, cmd.Env, cmd.Stdout = module, append(Env(), "GOOS="+goos, "GOARCH="+arch, "GOTMPDIR="+work), stdout
	cmd.Env = append(cmd.Env, b.Env...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the go command: %w (fix: install Go 1.26 or newer from https://go.dev/dl/)", err)
	}
	var tail []string
	var download string
	scanner := bufio.NewScanner(stderr)
	scanner.Buffer(nil, 16<<20) // a line that does not fit would stop the scanner, and so block the go command
	for scanner.Scan() {
		text := scanner.Text()
		line(text)
		if strings.HasPrefix(text, "go: downloading") {
			download = text
		} else if strings.ContainsAny(text, " :") {
			if download != "" { // some messages about a module do not name it
				tail, download = append(tail, download), ""
			}
			tail = append(tail, text)
		}
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes of its group that ignored the signal
		return ctx.Err()
	}
	if err != nil {
		return explain(tail, err)
	}
	return nil
}

// explain turns the end of the go command's output into an error with a fix where one is known.
func explain(tail []string, err error) error {
	text := strings.Join(tail[max(0, len(tail)-8):], "\n")
	for _, known := range fixes {
		if strings.Contains(text, known.mark) {
			return fmt.Errorf("%s\n%w: %s", text, err, known.fix)
		}
	}
	if text == "" {
		return err
	}
	return errors.Join(errors.New(text), err)
}

// fixes says what to do about messages of the go command, the most specific message first.
var fixes = []struct{ mark, fix string }{
	{"no space left on device", "the disk is full: free about 8 GB and run the same command again"},
	{"GOPROXY=off", "GOPROXY=off, and a module is not in the module cache: run once with a module proxy"},
	{"GOTOOLCHAIN=local", "this Go is too old for the pinned modules: install Go 1.26 or newer (https://go.dev/dl/)"},
	{"checksum mismatch", "a downloaded module differs from its recorded checksum: check GOPROXY"},
	{"proxyconnect tcp", "the HTTP proxy cannot be reached: check HTTPS_PROXY"},
	{"x509:", "the module proxy's certificate is not trusted: check SSL_CERT_FILE"},
	{"dial tcp", "the module proxy cannot be reached: check the network and GOPROXY, then run it again"},
	{"i/o timeout", "the network is slow or blocked: run the same command again, it goes on where it stopped"},
	{"GOCACHE is not defined", "HOME is not set: set it, or GOCACHE and GOMODCACHE"},
	{"read-only file system", "a folder is not writable: check bin/ and Go's caches (go env GOCACHE GOMODCACHE)"},
	{"signal: killed", "the compiler was killed, most likely for lack of memory: run it with GOMAXPROCS=1"},
	{"permission denied", "a folder is not writable: check bin/ and Go's caches (go env GOCACHE GOMODCACHE)"},
}
