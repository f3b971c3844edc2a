package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/teaching"
)

func TestTimesOfPagesAreRecorded(t *testing.T) {
	w := workshop{root: t.TempDir()}
	if err := os.MkdirAll(filepath.Join(w.root, filepath.Dir(teaching.MeasuredFile)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, took := range []map[string]int{{"a/README.md": 3, "b/README.md": 4}, {}, {"b/README.md": 5}} {
		if err := w.recordTimes(took); err != nil {
			t.Fatal(err)
		}
	}
	m, err := teaching.ReadMeasured(w.root)
	if want := map[string]int{"a/README.md": 3, "b/README.md": 5}; err != nil || !maps.Equal(m.Seconds, want) {
		t.Errorf("recorded %v, %v; want %v", m.Seconds, err, want)
	}
	if !strings.Contains(m.Machine, " cores, 2") {
		t.Errorf("the machine is %q", m.Machine)
	}
}
