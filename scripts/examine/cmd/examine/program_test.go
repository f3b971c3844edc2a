package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/examine/programs"
)

// TestTheProgramRunsInAnEmptyFolder builds the program, and runs it in an empty folder. KUBEBUILDER_ASSETS has what
// setup-envtest provides. With LONG=1, the program compiles the others; without it, they are in the user's cache, as
// after the first run, and there is no Go in PATH.
func TestTheProgramRunsInAnEmptyFolder(t *testing.T) {
	all, err := cluster.Programs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program, operator := static(t, dir, "examine", "."), static(t, dir, "testoperator", "../../testoperator")
	config, err := filepath.Abs("../../testoperator/config")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/usr/bin:/bin"}
	cached := []string{"kube-controller-manager", "kube-scheduler", "kwok"}
	if os.Getenv("LONG") != "" {
		env, cached = []string{"PATH=" + os.Getenv("PATH")}, nil
		for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
			env = append(env, name+"="+goSetting(t, name))
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CACHE_HOME", in("cache"))
	compiled, err := programs.Compiled()
	if err != nil {
		t.Fatal(err)
	}
	linkPrograms(t, all, in("assets"), "etcd", "kube-apiserver", "kubectl")
	linkPrograms(t, all, compiled, cached...)
	linkPrograms(t, all, in("empty"))
	linkPrograms(t, all, in("tmp"))
	cmd := exec.CommandContext(t.Context(), program, "run", "PROGRAM="+operator, "CRD="+filepath.Join(config, "crd.yaml"),
		"SAMPLE="+filepath.Join(config, "sample.yaml"), "READY=Ready", "RUN=creation", "FAST=1")
	cmd.Dir, cmd.Env = in("empty"), append(env, "HOME="+dir, "XDG_CACHE_HOME="+in("cache"), "TMPDIR="+in("tmp"),
		"KUBEBUILDER_ASSETS="+in("assets"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "passed  reads come from the cache") {
		t.Errorf("%v\n%s", err, out)
	}
	// A finding that fails, and an examination that is not possible.
	for _, setting := range []string{"FAIL_ON=creation ENV=FAULT=creates", "PROGRAM=none"} {
		again := exec.CommandContext(t.Context(), program, append(slices.Clone(cmd.Args[1:]), strings.Fields(setting)...)...)
		again.Dir, again.Env = cmd.Dir, cmd.Env
		if out, err := again.CombinedOutput(); again.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: %v, want the exit code 1\n%s", setting, err, out)
		}
	}
	if _, err := os.Stat(in("empty/out/examine/examine.sarif")); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(in("tmp")); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
}

// static builds a program into a folder and returns its path. The program needs no library.
func static(t *testing.T, dir, name, pkg string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", file, pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if runtime.GOOS != "linux" {
		return file
	}
	binary, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("%s needs libraries: %v, %v", name, libraries, err)
	}
	return file
}

func goSetting(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// linkPrograms makes a folder with links to programs of another folder.
func linkPrograms(t *testing.T, from, to string, names ...string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Symlink(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
}
