package window

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestTypesOfTheScripts has TypeScript check the JSDoc types of the window's scripts. Its version is that of
// package-lock.json; npm installs it into bin/, and runs no script of it.
func TestTypesOfTheScripts(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not installed: the types of the scripts are checked where it is")
	}
	folder := filepath.Join("..", "..", "..", "bin", ".typescript")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	fresh := true
	for _, name := range []string{"package.json", "package-lock.json"} {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, name)); err == nil && string(got) == string(want) {
			continue
		}
		fresh = false
		if err := os.WriteFile(filepath.Join(folder, name), want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compiler := filepath.Join(folder, "node_modules", ".bin", "tsc")
	if _, err := os.Stat(compiler); err != nil || !fresh {
		install := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		install.Dir = folder
		if out, err := install.CombinedOutput(); err != nil {
			_ = os.Remove(filepath.Join(folder, "package.json")) // not installed: the next test begins anew
			if os.Getenv("CI") != "" {
				t.Fatalf("npm ci: %v\n%s", err, out)
			}
			t.Skipf("TypeScript cannot be installed here: %v\n%s", err, out)
		}
	}
	if out, err := exec.CommandContext(t.Context(), compiler, "-p", ".").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
