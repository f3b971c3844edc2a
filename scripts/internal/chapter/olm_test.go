package chapter

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// The programs that the Makefiles call, as far as these targets need them. operator-sdk adds files to a folder, and
// removes none, as the real program does.
var programsOfBundles = map[string]string{"go": "", "gofmt": "", "controller-gen": "",
	"kustomize": "echo kind: Role\n", "kubectl": "echo kind: Role\n",
	"operator-sdk": "if [ \"$1 $2\" = 'generate bundle' ]; then mkdir -p bundle/manifests && cat >bundle/manifests/role.yaml; fi\n"}

// A manifest of an object that no longer exists would be installed with the bundle.
func TestABundleOfOLMHasNoStaleFiles(t *testing.T) {
	bin := t.TempDir()
	for name, text := range programsOfBundles {
		testkit.Must(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755))
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	root := filepath.Join("..", "..", "..")
	makefiles, err := filepath.Glob(filepath.Join(root, "0*", "Makefile"))
	more, err2 := filepath.Glob(filepath.Join(root, "0*", "*", "Makefile"))
	testkit.Must(t, errors.Join(err, err2))
	tried := 0
	for _, path := range append(makefiles, more...) {
		text := testkit.Read(t, path)
		if !strings.Contains(text, "\nbundle:") && !strings.Contains(text, "\ninclude operator.mk\n") {
			continue
		}
		tried++
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "chapters", "05", "project")
			testkit.Must(t, os.CopyFS(dir, os.DirFS(filepath.Dir(path))))
			run := func(targets ...string) (string, error) {
				out, err := exec.Command("make", append([]string{"-s", "-C", dir}, targets...)...).CombinedOutput()
				return string(out), err
			}
			stale := filepath.Join(dir, "bundle", "manifests", "old-role.yaml")
			testkit.Must(t, os.WriteFile(stale, []byte("kind: Role\n"), 0o644))
			if out, err := run("generate", "bundle"); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the old role is still in the bundle: %v", err)
			}
			if out, err := run("verify"); err != nil || !strings.Contains(out, "generated files are fresh") {
				t.Fatalf("%v\n%s", err, out)
			}
			testkit.Must(t, os.WriteFile(stale, []byte("kind: Role\n"), 0o644))
			if out, err := run("verify"); err == nil || !strings.Contains(out, "old-role.yaml") {
				t.Errorf("make verify: %v\n%s", err, out)
			}
		})
	}
	if tried != 4 {
		t.Errorf("%d Makefiles make a bundle", tried)
	}
}
