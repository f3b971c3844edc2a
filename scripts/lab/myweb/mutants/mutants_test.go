package mutants

import (
	"testing"

	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// TestPatches applies every patch to the source: when an operator changes, its mutants must be updated. `make
// mutants` shows that they compile, and are caught.
func TestPatches(t *testing.T) {
	root, err := impl.Here()
	if err != nil {
		t.Fatal(err)
	}
	all, err := All(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.patched(t.Context(), t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}
