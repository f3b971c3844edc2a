package tools

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// compile builds the packages into dir with one `go build`, so that what they share is compiled once.
func (b Builder) compile(ctx context.Context, dir string, packages []string) error {
	meter := b.Report.Meter("downloading and reading sources")
	stale, err := b.countStale(ctx, packages, meter)
	meter.Stop()
	if err != nil {
		return err
	}
	version, err := KubernetesVersion(b.Root)
	if err != nil {
		return err
	}
	args := append(buildFlags("build"), "-v", "-ldflags", versionFlags(version), "-o", dir+string(os.PathSeparator))
	meter = b.Report.Meter("compiling packages")
	meter.Set(0, stale)
	defer meter.Stop()
	done := 0
	return b.run(ctx, append(args, packages...), io.Discard, func(string) {
		done++
		meter.Set(done, max(stale, done))
	})
}

// countStale downloads what the packages need and returns how many of all packages in their import
// graph the build cache does not have yet.
func (b Builder) countStale(ctx context.Context, packages []string, meter *Meter) (int, error) {
	args := append(buildFlags("list"), "-deps", "-f", "{{if .Stale}}x{{end}}")
	var out bytes.Buffer
	downloaded := 0
	err := b.run(ctx, append(args, packages...), &out, func(line string) {
		if strings.HasPrefix(line, "go: downloading") {
			downloaded++
			meter.Set(downloaded, 0)
		}
	})
	return strings.Count(out.String(), "x"), err
}

// buildFlags makes a build independent of GOFLAGS, `go env -w`, a go.work and version control.
func buildFlags(verb string) []string {
	return []string{verb, "-mod=readonly", "-buildvcs=false", "-trimpath=false"}
}

// versionFlags tell the Kubernetes programs their version; kubectl refuses to talk to a server when it
// cannot parse its own.
func versionFlags(version string) string {
	minor := strings.Split(strings.TrimPrefix(version, "v"), ".")[1]
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags, "-X "+pkg+".gitVersion="+version, "-X "+pkg+".gitMajor=1",
			"-X "+pkg+".gitMinor="+minor, "-X "+pkg+".gitTreeState=clean", "-X "+pkg+".gitCommit=module")
	}
	return strings.Join(flags, " ")
}

// Env is the environment in which the workshop compiles: static programs for this machine, and none
// of the settings that a reader may have for other projects.
func Env() []string {
	drop := []string{"GOFLAGS=", "GOWORK=", "GOOS=", "GOARCH=", "CGO_ENABLED=", "GOEXPERIMENT=", "GO111MODULE="}
	env := []string{"GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0", "GO111MODULE=on"}
	for _, kv := range os.Environ() {
		keep := true
		for _, d := range drop {
			keep = keep && !strings.HasPrefix(kv, d)
		}
		if keep {
			env = append(env, kv)
		}
	}
	return env
}

// output runs the go command and returns what it printed.
func (b Builder) output(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	err := b.run(ctx, args, &out, func(string) {})
	return out.String(), err
}

// run runs the go command in the tools module and hands each line of stderr to line. When it fails
// the error holds the last lines that are not progress.
func (b Builder) run(ctx context.Context, args []string, stdout io.Writer, line func(string)) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stdout = b.moduleDir(), Env(), stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the go command: %w", err)
	}
	var tail []string
	for scanner := bufio.NewScanner(stderr); scanner.Scan(); {
		line(scanner.Text())
		if strings.ContainsAny(scanner.Text(), " :") && !strings.HasPrefix(scanner.Text(), "go: downloading") {
			tail = append(tail, scanner.Text())
		}
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return explain(tail, err)
	}
	return nil
}

// explain turns the end of the go command's output into an error with a cure where one is known.
func explain(tail []string, err error) error {
	text := strings.Join(tail[max(0, len(tail)-8):], "\n")
	for _, known := range cures {
		if strings.Contains(text, known.mark) {
			return fmt.Errorf("%s\n%w: %s", text, err, known.cure)
		}
	}
	if text == "" {
		return err
	}
	return errors.Join(errors.New(text), err)
}

// cures are what to do about messages of the go command, the most telling one first.
var cures = []struct{ mark, cure string }{
	{"no space left on device", "the disk is full: free about 8 GB and run the same command again"},
	{"GOPROXY=off", "GOPROXY=off, and a module is not in the module cache: run once with a module proxy"},
	{"GOTOOLCHAIN=local", "this Go is too old for the pinned modules: install Go 1.26 or newer (https://go.dev/dl/)"},
	{"checksum mismatch", "a downloaded module differs from its recorded checksum: check GOPROXY"},
	{"proxyconnect tcp", "the HTTP proxy cannot be reached: check HTTPS_PROXY"},
	{"x509:", "the module proxy's certificate is not trusted: check SSL_CERT_FILE"},
	{"dial tcp", "the module proxy cannot be reached: check the network and GOPROXY, then run it again"},
	{"i/o timeout", "the network is slow or blocked: run the same command again, it goes on where it stopped"},
	{"signal: killed", "the compiler was killed, most likely for lack of memory: run it with GOMAXPROCS=1"},
	{"permission denied", "a folder is not writable: check bin/ and Go's caches (go env GOCACHE GOMODCACHE)"},
}
