package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func TestBrief(t *testing.T) {
	for name, test := range map[string]struct {
		set  func(w *fixture)
		want []string
	}{
		"a healthy machine": {environment(), []string{"ok linux/", " go1.26.8 ", " 8 GiB 107 GB free docker:yes"}},
		"no Docker":         {remove("docker"), []string{"ok linux/", " docker:no"}},
		"a warning":         {script("docker", "exit 1"), []string{"warn linux/", " docker:no warn:docker"}},
		"faults": {func(w *fixture) { w.remove("git"); w.script("docker", "exit 1") },
			[]string{"FAIL linux/", " docker:no FAIL:git warn:docker"}},
		"nothing is known": {func(w *fixture) { w.remove("go"); unreadable(w); noFiles(w) },
			[]string{"FAIL linux/", " go:none ", "? GiB ? GB free docker:yes FAIL:go warn:disk,memory"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			test.set(w)
			got := Brief(t.Context(), w.Machine, Run(t.Context(), w.Machine))
			for _, want := range test.want {
				if !strings.Contains(got, want) || strings.Contains(got, "\n") {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			}
		})
	}
}

// The line names faults by their ID, under which an instructor finds each fault in TEACHING.md.
func TestTeachingExplainsEachFault(t *testing.T) {
	text := testkit.Read(t, filepath.Join("..", "..", "..", "TEACHING.md"))
	for _, check := range checks {
		if id := (Diagnosis{Check: check.name}).ID(); !strings.Contains(text, "`"+id+"`") {
			t.Errorf("TEACHING.md does not explain `%s`", id)
		}
	}
}
