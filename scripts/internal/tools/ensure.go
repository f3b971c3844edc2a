package tools

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/examine/programs"
)

// A Builder builds tools for one repository.
type Builder struct {
	// Root is the repository's folder.
	Root string
	// Report receives progress.
	Report Reporter
	// Tools are the programs that can be built; an empty list means All.
	Tools []Tool
	// Platform is the platform of the programs, such as darwin/arm64; empty means that of this machine.
	Platform string
	// Env is added to the environment of the go command.
	Env []string
}

// Bin returns the folder into which programs are built. Programs for another platform have a separate folder in it.
func (b Builder) Bin() string {
	return filepath.Join(b.Root, "bin", strings.ReplaceAll(b.Platform, "/", "-"))
}

func (b Builder) platform() (goos, arch string) {
	if b.Platform == "" {
		return runtime.GOOS, runtime.GOARCH
	}
	goos, arch, _ = strings.Cut(b.Platform, "/")
	return goos, arch
}

// Names returns the names of all programs that can be built.
func (b Builder) Names() (names []string) {
	for _, t := range b.tools() {
		names = append(names, t.Name)
	}
	return names
}

func (b Builder) tools() []Tool {
	if b.Tools != nil {
		return b.Tools
	}
	return All
}

// Ensure builds the named programs that bin/ lacks or has at another version. A program is replaced in one step: other
// processes see the old program or the new program. A second build at the same time waits for the first.
func (b Builder) Ensure(ctx context.Context, names ...string) error {
	wanted, err := b.outdated(b.Bin(), names)
	if err != nil || len(wanted) == 0 {
		return err
	}
	if err := os.MkdirAll(b.Bin(), 0o755); err != nil {
		return fmt.Errorf("%w: the programs are built into this folder, it must be writable", err)
	}
	release, err := lock.Acquire(ctx, filepath.Join(b.Bin(), ".lock"), func(owner string) {
		b.Report.Line("another build is running (process %s), waiting for it", owner)
	})
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w: the programs are built into %s, it must be writable", err, b.Bin())
	}
	if err != nil {
		return err
	}
	defer release()
	if wanted, err = b.outdated(b.Bin(), names); err != nil || len(wanted) == 0 {
		return err
	}
	return b.build(ctx, wanted)
}

// Adopt moves programs of the pinned versions from a folder into bin/, and leaves the other programs there.
func (b Builder) Adopt(from string) error {
	other, err := b.outdated(from, b.Names())
	if err != nil {
		return err
	}
	err = os.MkdirAll(b.Bin(), 0o755)
	for _, t := range b.tools() {
		if !slices.ContainsFunc(other, func(o Tool) bool { return o.Name == t.Name }) {
			err = errors.Join(err, os.Rename(filepath.Join(from, t.Name), filepath.Join(b.Bin(), t.Name)))
		}
	}
	return err
}

// outdated returns the named tools whose program is missing in a folder, or was built from other versions than the
// pinned ones.
func (b Builder) outdated(dir string, names []string) (wanted []Tool, err error) {
	all := b.tools()
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no tool is called %q: scripts/internal/tools lists them", name)
		}
		pins, err := readPins(b.moduleDir(all[i].Module))
		if err != nil {
			return nil, err
		}
		if !b.isPinned(filepath.Join(dir, name), all[i].Package, pins) {
			wanted = append(wanted, all[i])
		}
	}
	return wanted, nil
}

// isPinned reports whether a program was built from the package at the pinned versions of all its modules. The go
// command records these versions in each program; `go version -m` prints them. The Go version is not compared: a newer
// Go is no reason to build everything again.
func (b Builder) isPinned(program, pkg string, pins map[string]string) bool {
	info, err := buildinfo.ReadFile(program)
	if err != nil || info.Path != pkg {
		return false
	}
	goos, arch := b.platform()
	for _, s := range info.Settings {
		if s.Key == "GOOS" && s.Value != goos || s.Key == "GOARCH" && s.Value != arch {
			return false
		}
	}
	return !slices.ContainsFunc(append(info.Deps, &info.Main), func(m *debug.Module) bool {
		version := m.Version
		if m.Replace != nil && m.Replace.Version != ofFolder {
			version = m.Replace.Version
		}
		return pins[m.Path] != version
	})
}

// build compiles the tools into a temporary folder and moves them into bin/.
func (b Builder) build(ctx context.Context, wanted []Tool) (err error) {
	tmp := filepath.Join(b.Bin(), ".build") // one folder, because this process has the lock: a killed build may have left it
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	var names []string
	modules := map[string][]Tool{}
	for _, t := range wanted {
		names = append(names, t.Name)
		modules[t.Module] = append(modules[t.Module], t)
	}
	start := time.Now()
	b.Report.Line("building %s", strings.Join(names, ", "))
	for module, tools := range modules {
		if err := b.buildFrom(ctx, module, tools, tmp); err != nil {
			return fmt.Errorf("build %s: %w", strings.Join(names, ", "), err)
		}
	}
	for _, t := range wanted {
		err := os.Rename(filepath.Join(tmp, cmp.Or(t.Built, t.Name)), filepath.Join(b.Bin(), t.Name))
		if err != nil {
			return err
		}
	}
	b.Report.Line("built into bin/: %d of %d, in %s", len(names), len(names), time.Since(start).Round(time.Second))
	return nil
}

// buildFrom compiles tools of one module into a folder, with one command. `go install` would refuse programs for another
// platform.
func (b Builder) buildFrom(ctx context.Context, module string, tools []Tool, folder string) error {
	pins, err := readPins(b.moduleDir(module))
	if err != nil {
		return err
	}
	kubernetes := pins["k8s.io/kubernetes"]
	flags := noDebug
	if kubernetes != "" {
		flags = programs.VersionFlags(kubernetes)
	}
	var packages []string
	for _, t := range tools {
		packages = append(packages, t.Package)
		for _, variable := range t.Versions {
			flags += " -X " + variable + "=" + versionOf(t.Package, pins)
		}
		if t.Tags != "" {
			b.Env = append(slices.Clone(b.Env), "GOFLAGS=-mod=readonly -tags="+t.Tags)
		}
	}
	ofKubernetes := func(pkg string) bool { return strings.HasPrefix(pkg, "k8s.io/kubernetes/") }
	if slices.ContainsFunc(packages, ofKubernetes) && b.isNew(ctx, kubernetes) {
		b.Report.Line("%s", firstTime(runtime.NumCPU()))
	}
	return b.compile(ctx, b.moduleDir(module), packages, "-ldflags", flags, "-o", folder+string(os.PathSeparator))
}

// isNew reports whether the sources of Kubernetes must still be downloaded, and so all packages must be compiled.
func (b Builder) isNew(ctx context.Context, version string) bool {
	cache, err := b.output(ctx, "env", "GOMODCACHE")
	if err != nil {
		return false
	}
	_, err = os.Stat(filepath.Join(strings.TrimSpace(cache), "k8s.io", "kubernetes@"+version))
	return errors.Is(err, fs.ErrNotExist)
}

// firstTime announces the cost of the first build: 16 minutes of one core.
func firstTime(cores int) string {
	minutes := max(1, (16+cores/2)/cores)
	return fmt.Sprintf("the first time this takes about 5 GB of disk and %d min on the %d cores of this machine",
		minutes, cores)
}

// moduleDir returns the folder of a tool's module.
func (b Builder) moduleDir(module string) string {
	return filepath.Join(b.Root, "scripts", cmp.Or(module, "tools"))
}

// ofFolder is the version that the go command records for a module in a folder, which is not in the module cache.
const ofFolder = "(devel)"

// readPins returns the versions of the modules that the go.mod in a folder pins.
func readPins(dir string) (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{file.Module.Mod.Path: ofFolder}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range file.Replace {
		versions[r.Old.Path] = cmp.Or(r.New.Version, versions[r.Old.Path])
	}
	return versions, nil
}

// versionOf returns the version of the module that has a package.
func versionOf(pkg string, pins map[string]string) string {
	for pins[pkg] == "" && pkg != "." {
		pkg = path.Dir(pkg)
	}
	return pins[pkg]
}
