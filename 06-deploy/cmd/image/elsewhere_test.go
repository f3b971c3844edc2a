package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
)

// The source of the operators is in other chapters. A copy of this chapter finds the source by WORKSHOP_ROOT, or
// reports that it is missing.
func TestACopyElsewhereBuildsTheImage(t *testing.T) {
	root, err := filepath.Abs(strings.TrimPrefix(source(t), "--root="))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(t.TempDir(), "a copy")
	if err := os.CopyFS(folder, os.DirFS("../..")); err != nil {
		t.Fatal(err)
	}
	image := func(args ...string) (said string, err error) {
		cmd := exec.CommandContext(t.Context(), "make", append([]string{"image", "COMMIT=0123abc"}, args...)...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "MAKEFLAGS=")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if said, err := image("WORKSHOP_ROOT=" + root); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	if _, err := crane.Load(filepath.Join(folder, "dist", "image.tar")); err != nil {
		t.Error(err)
	}
	const want = "set WORKSHOP_ROOT to a checkout of the workshop"
	if said, err := image("WORKSHOP_ROOT=" + t.TempDir()); err == nil || !strings.Contains(said, want) {
		t.Errorf("without a checkout: %v, got %q, want %q", err, said, want)
	}
}
