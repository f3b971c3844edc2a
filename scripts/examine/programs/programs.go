// Package programs provides the programs of the control plane: those of KUBEBUILDER_ASSETS, and those that this folder
// lacks. setup-envtest fills it with kube-apiserver, etcd and kubectl; controllers, a scheduler and nodes need three more.
package programs

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/process"
)

var (
	// These files pin the programs, and all modules that they are compiled from, by their checksums.
	//go:embed files/tools.mod
	pins string
	//go:embed files/tools.sum
	sums string
)

// packages are the programs that can be compiled.
var packages = map[string]string{
	"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kube-scheduler":          "k8s.io/kubernetes/cmd/kube-scheduler",
	"kwok":                    "sigs.k8s.io/kwok/cmd/kwok",
}

// Complete returns a folder with all programs of a cluster. It compiles those that KUBEBUILDER_ASSETS lacks, once for
// this user. The caller removes the folder at the end.
func Complete(ctx context.Context, report func(format string, args ...any)) (bin string, remove func() error, err error) {
	assets, err := cluster.Programs()
	if err == nil {
		return assets, func() error { return nil }, nil
	}
	if assets == "" {
		return "", nil, err
	}
	missing := cluster.Missing(assets)
	for _, name := range missing {
		if packages[name] == "" {
			return "", nil, fmt.Errorf("%w: KUBEBUILDER_ASSETS must name a folder with kube-apiserver, etcd and kubectl, as "+
				"setup-envtest makes it", err)
		}
	}
	if err := sameMinor(ctx, assets); err != nil {
		return "", nil, err
	}
	compiled, err := compile(ctx, missing, report)
	if err != nil {
		return "", nil, err
	}
	if bin, err = os.MkdirTemp("", "examine-programs-"); err != nil {
		return "", nil, err
	}
	remove = func() error { return os.RemoveAll(bin) }
	for _, name := range append(cluster.Names(), "kubectl") {
		from := assets
		if slices.Contains(missing, name) {
			from = compiled
		}
		if from, err = filepath.Abs(filepath.Join(from, name)); err == nil {
			err = os.Symlink(from, filepath.Join(bin, name))
		}
		if err != nil {
			return "", nil, errors.Join(err, remove())
		}
	}
	return bin, remove, nil
}

// version returns the version of Kubernetes that the programs are compiled at, such as v1.37.1.
func version() string {
	_, after, _ := strings.Cut(pins, "\tk8s.io/kubernetes v")
	return "v" + strings.Fields(after)[0]
}

func minor(version string) string { return strings.Join(strings.Split(version, ".")[:2], ".") }

// sameMinor returns an error when the API server has another minor version than the programs that can be compiled: a
// controller manager does not support an older API server.
func sameMinor(ctx context.Context, assets string) error {
	out, err := exec.CommandContext(ctx, filepath.Join(assets, "kube-apiserver"), "--version").Output()
	if err != nil {
		return fmt.Errorf("kube-apiserver --version: %w", err)
	}
	fields := strings.Fields(string(out)) // Kubernetes v1.37.1
	if len(fields) < 2 || strings.Count(fields[1], ".") < 2 || minor(fields[1]) != minor(version()) {
		return fmt.Errorf("KUBEBUILDER_ASSETS has %s, and this program compiles the controllers of %s: take an API server of "+
			"%s (setup-envtest use %[3]s), or put kube-controller-manager, kube-scheduler and kwok beside this one",
			strings.TrimSpace(string(out)), version(), strings.TrimPrefix(minor(version()), "v"))
	}
	return nil
}

// Compiled returns the folder of the programs that were compiled for this user.
func Compiled() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "examine", fmt.Sprintf("%s-%x", version(), sha256.Sum256([]byte(pins+sums)))[:24]), err
}

// compile compiles programs, unless they were compiled before, and returns their folder.
func compile(ctx context.Context, names []string, report func(format string, args ...any)) (string, error) {
	folder, err := Compiled()
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, err := os.Stat(filepath.Join(folder, name))
		return err == nil
	})
	if len(names) == 0 {
		return folder, nil
	}
	list := strings.Join(names, ", ")
	if _, err := exec.LookPath("go"); err != nil {
		return "", fmt.Errorf("KUBEBUILDER_ASSETS has no %s, and Go, which compiles them, is not installed: install it from "+
			"https://go.dev/dl/, or put these programs there", list)
	}
	report("compiling %s %s into %s: some minutes, and once", list, version(), folder)
	module, err := os.MkdirTemp("", "examine-compile-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(module)
	err = errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(module, "go.mod"), []byte(pins), 0o600),
		os.WriteFile(filepath.Join(module, "go.sum"), []byte(sums), 0o600))
	if err != nil {
		return "", err
	}
	for _, name := range names {
		built := filepath.Join(module, name)
		cmd := process.Command(ctx, time.Minute, "go", "build", "-mod=readonly", "-buildvcs=false", "-ldflags", VersionFlags(version()),
			"-o", built, packages[name])
		cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=", "GOARCH=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("compile %s: %w\n%s", name, err, out)
		}
		if err := install(built, filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// install moves a program to another folder, perhaps on another disk, in one step.
func install(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	half := fmt.Sprintf("%s.%d", to, os.Getpid())
	if err := os.WriteFile(half, data, 0o755); err != nil {
		return errors.Join(err, os.Remove(half))
	}
	return os.Rename(half, to)
}

// VersionFlags returns flags of the linker that leave out debug information and set the version of the Kubernetes
// programs. kubectl refuses to connect to a server when it cannot parse its own version.
func VersionFlags(version string) string {
	flags := "-s -w"
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags += fmt.Sprintf(" -X %s.gitVersion=%s -X %[1]s.gitMajor=1 -X %[1]s.gitMinor=%[3]s -X %[1]s.gitTreeState=clean"+
			" -X %[1]s.gitCommit=module", pkg, version, strings.Split(version, ".")[1])
	}
	return flags
}
