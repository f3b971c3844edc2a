package benchmark

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

func TestStatic(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":             "module example.com/x\n\ngo 1.26\n",
		"cmd/main.go":        "package main\n\n// main\nfunc main() {\n}\n",
		"other/other.go":     "package other\n",
		"crd.yaml":           "# a comment\nkind: X\n\nspec: {}\n",
		"chart/a.yaml":       "a: 1\n",
		"chart/b.yaml":       "b: 1\n",
		"role.yaml":          "kind: Role\nrules:\n- {apiGroups: [a], resources: [x, z], verbs: [get, list]}\n",
		"again.yaml":         "kind: Role\nrules:\n- {apiGroups: [a], resources: [x], verbs: [get]}\n",
		"wide.yaml":          "kind: ClusterRole\nrules:\n- {apiGroups: [a], resources: ['*'], verbs: [get]}\n",
		"wider.yaml":         "kind: ClusterRole\nrules:\n- {apiGroups: ['*'], resources: ['*'], verbs: ['*']}\n",
		"program":            "12345",
		"beside/carried.bin": "123",
	} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	var s Static
	i := impl.Implementation{Name: "x", Folder: folder, Path: filepath.Join(folder, "program"),
		Carries: []string{"beside/carried.bin"}, Written: []string{"./cmd", "crd.yaml", "chart/*.yaml"}}
	if err := s.count(t.Context(), i); err != nil || s.Written != 7 || s.Files != 4 {
		t.Errorf("%d lines in %d files, %v: want 3 of Go and 4 of YAML, in 4 files", s.Written, s.Files, err)
	}
	if bytes, err := sizeOf(i); err != nil || bytes != 8 {
		t.Errorf("%d bytes, %v: want 5 and 3", bytes, err)
	}
	i.Written = []string{"gone/*.yaml"}
	if err := s.count(t.Context(), i); err == nil || !strings.Contains(err.Error(), "there is no file gone/*.yaml") {
		t.Errorf("a pattern without a file: %v", err)
	}
	for want, roles := range map[string][]string{
		"all": nil, "4": {"role.yaml", "again.yaml"}, "5": {"role.yaml", "wide.yaml"},
	} {
		i.Roles = roles
		if got, err := permissionsOf(i); err != nil || got != want {
			t.Errorf("%v: %q, %v, want %q", roles, got, err, want)
		}
	}
	i.Roles = []string{"role.yaml", "wider.yaml"}
	if got, err := permissionsOf(i); err != nil || got != "all" {
		t.Errorf("a role that allows all: %q, %v", got, err)
	}
}
