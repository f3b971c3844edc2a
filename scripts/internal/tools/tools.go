// Package tools builds the programs that are not ours, at the versions that the go.mod files of scripts/tools,
// scripts/operator-sdk and scripts/restic pin, into the repository's bin/.
package tools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/modfile"

	"example.com/operator-workshop/scripts/examine/lock"
)

// A Tool is one program and the package from which it is built.
type Tool struct {
	// Name is the name of the program in bin/.
	Name string
	// Package is the import path of its main package.
	Package string
	// Module is the folder in scripts/ whose go.mod pins the program; empty means tools. A program that needs other
	// versions than Kubernetes is in another module, and is compiled only on request.
	Module string
	// Tags are the build tags that the program needs, separated by commas.
	Tags string
	// Versions are the variables of the program that the linker sets to its module's version.
	Versions []string
}

// All lists every program that the workshop uses and that is not ours.
var All = []Tool{
	{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"},
	{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl"},
	{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"},
	{Name: "controller-gen", Package: "sigs.k8s.io/controller-tools/cmd/controller-gen"},
	{Name: "deepcopy-gen", Package: "k8s.io/code-generator/cmd/deepcopy-gen"},
	{Name: "register-gen", Package: "k8s.io/code-generator/cmd/register-gen"},
	{Name: "applyconfiguration-gen", Package: "k8s.io/code-generator/cmd/applyconfiguration-gen"},
	{Name: "client-gen", Package: "k8s.io/code-generator/cmd/client-gen"},
	{Name: "lister-gen", Package: "k8s.io/code-generator/cmd/lister-gen"},
	{Name: "informer-gen", Package: "k8s.io/code-generator/cmd/informer-gen"},
	{Name: "kind", Package: "sigs.k8s.io/kind"},
	{Name: "kustomize", Package: "sigs.k8s.io/kustomize/kustomize/v5"},
	{Name: "kubebuilder", Package: "sigs.k8s.io/kubebuilder/v4"},
	operatorSDK,
	{Name: "restic", Package: "github.com/restic/restic/cmd/restic", Module: "restic"},
	{Name: "rest-server", Package: "github.com/restic/rest-server/cmd/rest-server", Module: "restic"},
	{Name: "rclone", Package: "example.com/operator-workshop/scripts/restic/rclone", Module: "restic"},
}

// operatorSDK is built without the C libraries for signatures and storage of images. The releases of operator-sdk set
// the same variables.
var operatorSDK = Tool{
	Name:    "operator-sdk",
	Package: "github.com/operator-framework/operator-sdk/cmd/operator-sdk",
	Module:  "operator-sdk",
	Tags:    "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper",
	Versions: []string{
		"github.com/operator-framework/operator-sdk/internal/version.Version",
		"github.com/operator-framework/operator-sdk/internal/version.GitVersion",
		"github.com/operator-framework/operator-sdk/internal/version.ImageVersion",
	},
}

// Sets of programs by the purpose they serve.
var (
	// Envtest has the programs that the tests of every chapter start.
	Envtest = []string{"etcd", "kube-apiserver", "kubectl"}
	// Local has the programs that the local environment runs.
	Local = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}
	// Generators has the programs that `make generate` of the chapters runs.
	Generators = []string{"controller-gen", "deepcopy-gen", "register-gen", "applyconfiguration-gen", "client-gen",
		"lister-gen", "informer-gen", "kustomize"}
	// Kind has the programs that the kind environment needs besides Docker.
	Kind = []string{"kind", "kubectl"}
)

// A Builder builds tools for one repository.
type Builder struct {
	// Root is the repository's folder.
	Root string
	// Report receives progress.
	Report Reporter
	// Tools are the programs that can be built; an empty list means All.
	Tools []Tool
	// Ready is a folder with programs that were built on another machine, and their stamps.
	Ready string
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

// Ensure builds the named programs that bin/ lacks or has at another version. A program is replaced in one step: other
// processes see the old program or the new program. An interrupted build leaves nothing behind, and a second build at
// the same time waits for the first.
func (b Builder) Ensure(ctx context.Context, names ...string) error {
	wanted, err := b.outdated(ctx, names)
	if err != nil || len(wanted) == 0 {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.Bin(), ".stamps"), 0o755); err != nil {
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
	wanted, err = b.outdated(ctx, names)
	if err == nil && b.Ready != "" {
		wanted, err = b.adopt(wanted)
	}
	if err != nil || len(wanted) == 0 {
		return err
	}
	return b.build(ctx, wanted)
}

// A pinned tool is a tool that bin/ lacks, with its module's version and its two possible stamps: for a build on this
// machine, and for a ready-made program from a bundle.
type pinned struct {
	Tool
	version, stamp, readyMade string
}

// outdated returns the tools whose program or stamp is missing or differs from the pins.
func (b Builder) outdated(ctx context.Context, names []string) ([]pinned, error) {
	goVersion, err := b.output(ctx, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	all := b.tools()
	var wanted []pinned
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no tool is called %q: scripts/internal/tools lists them", name)
		}
		t, err := b.pinned(all[i], strings.TrimSpace(goVersion))
		if err != nil {
			return nil, err
		}
		if !b.isBuilt(name, t.stamp, t.readyMade) {
			wanted = append(wanted, t)
		}
	}
	return wanted, nil
}

// tools returns the tools that can be built.
func (b Builder) tools() []Tool {
	if b.Tools != nil {
		return b.Tools
	}
	return All
}

// build compiles the tools into a temporary folder and moves them, each with its stamp, into bin/.
func (b Builder) build(ctx context.Context, wanted []pinned) (err error) {
	abandoned, _ := os.ReadDir(b.Bin()) // left by a build that was killed, because this process has the lock
	for _, entry := range abandoned {
		if strings.HasPrefix(entry.Name(), ".build-") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.Bin(), entry.Name())))
		}
	}
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(b.Bin(), ".build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	var names []string
	kubernetes := false
	for _, t := range wanted {
		names = append(names, t.Name)
		kubernetes = kubernetes || strings.HasPrefix(t.Package, "k8s.io/kubernetes/")
	}
	start := time.Now()
	b.Report.Line("building %s", strings.Join(names, ", "))
	version, err := KubernetesVersion(b.Root)
	if err != nil {
		return err
	}
	if kubernetes && b.isNew(ctx, version) {
		b.Report.Line("%s", firstTime(runtime.NumCPU()))
	}
	if err := b.compileAll(ctx, wanted, versionFlags(version), tmp+string(os.PathSeparator)); err != nil {
		return fmt.Errorf("build %s: %w", strings.Join(names, ", "), err)
	}
	for _, t := range wanted {
		if err := b.install(filepath.Join(tmp, outputName(t.Package)), t.Name, t.stamp); err != nil {
			return err
		}
	}
	b.Report.Line("built into bin/: %d of %d, in %s", len(names), len(names), time.Since(start).Round(time.Second))
	return nil
}

// compileAll compiles the tools into a folder, all tools of a module with one command.
func (b Builder) compileAll(ctx context.Context, wanted []pinned, ldflags, folder string) error {
	type unit struct{ module, tags string }
	units := map[unit][]pinned{}
	for _, t := range wanted {
		of := unit{t.Module, t.Tags}
		units[of] = append(units[of], t)
	}
	for of, tools := range units {
		var packages []string
		flags := ldflags
		for _, t := range tools {
			packages = append(packages, t.Package)
			for _, variable := range t.Versions {
				flags += " -X " + variable + "=" + t.version
			}
		}
		alone := b
		if of.tags != "" {
			alone.Env = append(slices.Clone(b.Env), "GOFLAGS=-mod=readonly -tags="+of.tags)
		}
		if err := alone.compile(ctx, b.moduleDir(of.module), packages, "-ldflags", flags, "-o", folder); err != nil {
			return err
		}
	}
	return nil
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

// install moves one program into place. It removes the old stamp first and writes the new stamp last, so that a stamp
// is never beside a program that it does not describe.
func (b Builder) install(from, name, stamp string) error {
	sum, err := sum(from)
	if err != nil {
		return err
	}
	if err := os.Remove(b.stampPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, filepath.Join(b.Bin(), name)); err != nil {
		return err
	}
	installed, err := identity(filepath.Join(b.Bin(), name))
	if err != nil {
		return err
	}
	return b.writeStamp(name, withSum(stamp, sum)+installed)
}

// moduleDir returns the folder of a tool's module.
func (b Builder) moduleDir(module string) string {
	return filepath.Join(b.Root, "scripts", cmp.Or(module, "tools"))
}

// pins has the versions in a go.mod.
type pins struct {
	modules map[string]string
	sum     string
}

func readPins(dir string) (pins, error) {
	p := pins{modules: map[string]string{}}
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return p, err
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return p, err
	}
	p.modules[file.Module.Mod.Path] = "workshop" // a program that consists of packages of other modules
	for _, r := range file.Require {
		p.modules[r.Mod.Path] = r.Mod.Version
	}
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return p, err
	}
	p.sum = fmt.Sprintf("%x", sha256.Sum256(append(data, sums...)))[:12]
	return p, nil
}

// module returns the module of a package, with its version.
func (p pins) module(pkg string) (string, string) {
	for m := pkg; m != "." && m != "/"; m = path.Dir(m) {
		if v, ok := p.modules[m]; ok {
			return m, v
		}
	}
	return "", ""
}

// pinned adds to a tool its version and its stamps. The stamp of a program that is built here describes all inputs of
// the program: its module's version, the Go version, the platform and the checksum of every pinned module.
func (b Builder) pinned(t Tool, goVersion string) (pinned, error) {
	p, err := readPins(b.moduleDir(t.Module))
	if err != nil {
		return pinned{}, err
	}
	m, v := p.module(t.Package)
	if v == "" {
		return pinned{}, fmt.Errorf("scripts/%s/go.mod pins no module for %s (package %s)",
			cmp.Or(t.Module, "tools"), t.Name, t.Package)
	}
	goos, arch := b.platform()
	what, where := t.Name+" "+m+"@"+v, goos+"/"+arch
	return pinned{t, v, fmt.Sprintf("%s %s %s pins:%s", what, goVersion, where, p.sum), what + " ready-made " + where}, nil
}

// KubernetesVersion returns the pinned version of Kubernetes, such as v1.37.1.
func KubernetesVersion(root string) (string, error) {
	p, err := readPins(filepath.Join(root, "scripts", "tools"))
	if err != nil {
		return "", err
	}
	return p.modules["k8s.io/kubernetes"], nil
}

// outputName returns the file name that `go build` gives to the program of a package.
func outputName(pkg string) string {
	base := path.Base(pkg)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(pkg))
	}
	return base
}
