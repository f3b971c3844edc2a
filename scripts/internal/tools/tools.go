// Package tools builds the programs that are not ours, at the versions that scripts/tools/go.mod
// pins, into the repository's bin/.
package tools

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"example.com/operator-workshop/scripts/internal/lock"
)

// A Tool is one program and the package it is built from.
type Tool struct {
	// Name of the program in bin/.
	Name string
	// Package is the import path of its main package.
	Package string
}

// All lists every program that the workshop uses and that is not ours.
var All = []Tool{
	{"etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kubectl", "k8s.io/kubernetes/cmd/kubectl"},
	{"kwok", "sigs.k8s.io/kwok/cmd/kwok"},
	{"controller-gen", "sigs.k8s.io/controller-tools/cmd/controller-gen"},
	{"kind", "sigs.k8s.io/kind"},
	{"kustomize", "sigs.k8s.io/kustomize/kustomize/v5"},
}

// Sets of programs by the purpose they serve.
var (
	// Envtest is what the tests of every chapter start.
	Envtest = []string{"etcd", "kube-apiserver", "kubectl"}
	// Local is what the local lane runs.
	Local = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}
	// Kind is what the kind lane needs besides Docker.
	Kind = []string{"kind", "kubectl"}
)

// A Builder builds tools for one repository.
type Builder struct {
	// Root is the repository's folder.
	Root string
	// Report receives progress; Discard is silent.
	Report Reporter
}

// Bin returns the folder that the programs are built into.
func (b Builder) Bin() string { return filepath.Join(b.Root, "bin") }

// Ensure builds those of the named programs that bin/ lacks or has at another version. A program is
// replaced in one step: whoever looks sees the old one or the new one. An interrupted build leaves
// nothing behind, and a second one at the same time waits for the first.
func (b Builder) Ensure(ctx context.Context, names ...string) error {
	wanted, err := b.outdated(ctx, names)
	if err != nil || len(wanted) == 0 {
		return err
	}
	if err := os.MkdirAll(b.Bin(), 0o755); err != nil {
		return err
	}
	release, err := lock.Acquire(ctx, filepath.Join(b.Bin(), ".lock"), func(owner string) {
		b.Report.Line("another build is running (process %s), waiting for it", owner)
	})
	if err != nil {
		return err
	}
	defer release()
	if wanted, err = b.outdated(ctx, names); err != nil || len(wanted) == 0 {
		return err
	}
	return b.build(ctx, wanted)
}

// outdated returns the tools whose program or stamp is missing or differs from what the pins say.
func (b Builder) outdated(ctx context.Context, names []string) (map[string]Tool, error) {
	pins, err := readPins(b.moduleDir())
	if err != nil {
		return nil, err
	}
	goVersion, err := b.output(ctx, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	wanted := map[string]Tool{}
	for _, name := range names {
		i := slices.IndexFunc(All, func(t Tool) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no tool is called %q: scripts/internal/tools lists them", name)
		}
		stamp := pins.stamp(All[i], strings.TrimSpace(goVersion))
		have, _ := os.ReadFile(b.stampPath(name))
		_, missing := os.Stat(filepath.Join(b.Bin(), name))
		if string(have) != stamp || missing != nil {
			wanted[stamp] = All[i]
		}
	}
	return wanted, nil
}

// build compiles the tools into a temporary folder and moves them, each with its stamp, into bin/.
func (b Builder) build(ctx context.Context, wanted map[string]Tool) (err error) {
	tmp, err := os.MkdirTemp(b.Bin(), ".build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()

	var names, packages []string
	for _, t := range wanted {
		names, packages = append(names, t.Name), append(packages, t.Package)
	}
	slices.Sort(names)
	slices.Sort(packages)
	start := time.Now()
	b.Report.Line("building %s", strings.Join(names, ", "))
	if err := b.compile(ctx, tmp, packages); err != nil {
		return fmt.Errorf("build %s: %w", strings.Join(names, ", "), err)
	}
	for stamp, t := range wanted {
		if err := b.install(filepath.Join(tmp, outputName(t.Package)), t.Name, stamp); err != nil {
			return err
		}
	}
	b.Report.Line("built %d programs into bin/ in %s", len(names), time.Since(start).Round(time.Second))
	return nil
}

// install moves one program into place. The stamp goes first and comes last, so that no moment shows
// a stamp beside a program that it does not describe.
func (b Builder) install(from, name, stamp string) error {
	if err := os.MkdirAll(filepath.Dir(b.stampPath(name)), 0o755); err != nil {
		return err
	}
	if err := os.Remove(b.stampPath(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, filepath.Join(b.Bin(), name)); err != nil {
		return err
	}
	return os.WriteFile(b.stampPath(name), []byte(stamp), 0o644)
}

func (b Builder) stampPath(name string) string { return filepath.Join(b.Bin(), ".stamps", name) }
func (b Builder) moduleDir() string            { return filepath.Join(b.Root, "scripts", "tools") }

// pins are the versions of scripts/tools/go.mod.
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

// module returns the module that a package lies in, with its version.
func (p pins) module(pkg string) (string, string) {
	for m := pkg; m != "." && m != "/"; m = path.Dir(m) {
		if v, ok := p.modules[m]; ok {
			return m, v
		}
	}
	return "", ""
}

// stamp describes all that a program depends on: its module's version, the Go version, the platform
// and the checksum of every pinned module.
func (p pins) stamp(t Tool, goVersion string) string {
	m, v := p.module(t.Package)
	return fmt.Sprintf("%s %s@%s %s %s/%s pins:%s\n", t.Name, m, v, goVersion, runtime.GOOS, runtime.GOARCH, p.sum)
}

// KubernetesVersion returns the pinned version of Kubernetes, such as v1.37.1.
func KubernetesVersion(root string) (string, error) {
	p, err := readPins(filepath.Join(root, "scripts", "tools"))
	if err != nil {
		return "", err
	}
	return p.modules["k8s.io/kubernetes"], nil
}

// outputName is the file name that `go build` gives to the program of a package.
func outputName(pkg string) string {
	base := path.Base(pkg)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(pkg))
	}
	return base
}
