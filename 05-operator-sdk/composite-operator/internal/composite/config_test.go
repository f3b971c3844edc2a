package composite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const manifest = "../../config/compositecontroller.yaml"

func TestReadConfigRefuses(t *testing.T) {
	good, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ old, new, want string }{
		"another kind":        {"kind: CompositeController", "kind: DecoratorController", "is not a CompositeController"},
		"a selector":          {"generateSelector: true", "generateSelector: false", "generateSelector must be true"},
		"an unknown strategy": {"method: InPlace", "method: RollingRecreate", `"RollingRecreate", supported are`},
		"an unknown field":    {"hooks:", "resyncPeriodSeconds: 5\n  hooks:", "resyncPeriodSeconds"},
		"a negative timeout":  {"timeout: 5s", "timeout: -5s", "must not be negative"},
		"a wrong timeout":     {"timeout: 5s", "timeout: soon", `invalid duration "soon"`},
	} {
		file := filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(good), test.old, test.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig(file); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}
