package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/examine/outcome"
)

func TestWays(t *testing.T) {
	r := sample()
	undisturbed := []outcome.Result{{ID: "crash/creation-undisturbed-1", Verdict: outcome.Failed}}
	r.Impls = append(r.Impls, Implementation{Name: "shell", Title: "a shell loop",
		Report: &examine.Report{Findings: undisturbed}})
	r.Notes = []string{"shell: not every check was run: 15m0s are over"}
	w := r.Ways()
	want := Way{Name: "03", Title: "client-go by hand", Cells: map[string]string{"lines": "1240", "files": "9",
		"behaviours": "2/3", "crashes": "3/3", "requests": "1", "steady": "0", "size": "44", "permissions": "14"}}
	if diff := cmp.Diff(want, w.Rows[0]); diff != "" {
		t.Errorf("the row of 03 (-want +got):\n%s", diff)
	}
	if got := w.Rows[2].Cells; len(got) > 0 {
		t.Errorf("of the shell loop nothing is known but that it crashes: %v", got)
	}
	notes := strings.Join(w.Notes, "\n")
	for _, words := range []string{"15m0s are over", "undisturbed runs end in different states"} {
		if !strings.Contains(notes, words) {
			t.Errorf("there is no %q in the notes:\n%s", words, notes)
		}
	}
	if got := w.Rows[1].Cells["requests"]; got != "1.3" {
		t.Errorf("13 requests for 10 MyWebs: %s for each", got)
	}

	file := filepath.Join(t.TempDir(), "ways.json")
	data, err := json.Marshal(w)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	must(t, err)
	if w, err = ReadWays(file); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	must(t, w.Print(&out))
	printed := out.String()
	lines := strings.Split(printed, "\n")
	if len(strings.Fields(lines[1])) != 1+len(columns) || !strings.HasPrefix(strings.TrimSpace(lines[3]), "shell") {
		t.Errorf("a row for each, and in it a cell for each column:\n%s", printed)
	}
	if len([]rune(lines[0])) > 120 {
		t.Errorf("the table has %d columns", len([]rune(lines[0])))
	}
	nothing := &Comparison{Impls: []Implementation{{Name: "a", Report: &examine.Report{}}}}
	if got := nothing.Ways().Rows[0].Cells; len(got) > 0 {
		t.Errorf("nothing was measured, and the cells are %v", got)
	}
}
