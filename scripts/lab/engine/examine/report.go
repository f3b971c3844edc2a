package examine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A Report is what an examination showed.
type Report struct {
	// Operator is the program's name; Kind is that of the sample.
	Operator string `json:"operator"`
	Kind     string `json:"kind"`
	// Subject is what was given.
	Subject Subject   `json:"subject"`
	Date    time.Time `json:"date"`
	// Took is how long it was; Interrupted says that somebody ended it early.
	Took        time.Duration `json:"took"`
	Interrupted bool          `json:"interrupted,omitempty"`
	// Notes are what the reader must know about the whole.
	Notes []string `json:"notes,omitempty"`
	// Children are the objects that the operator writes, with the number of fields that it sets.
	Children []string  `json:"children"`
	Findings []Finding `json:"findings"`
}

func newReport(t *target) *Report {
	r := &Report{Operator: t.name(), Kind: t.sample.GetKind(), Subject: t.Subject, Date: time.Now().UTC()}
	r.Subject.Env, r.Subject.Args = slices.Clone(r.Subject.Env), slices.Clone(r.Subject.Args)
	for n, variable := range r.Subject.Env { // a value may be a secret
		r.Subject.Env[n], _, _ = strings.Cut(variable, "=")
	}
	if len(t.kinds) > 1 {
		r.Notes = append(r.Notes,
			fmt.Sprintf("The CRDs are for several kinds (%s). This is an examination of %s: run another with a sample of each "+
				"other kind.",
				t.kindNames(), r.Kind))
	}
	return r
}

// Count is how many findings have a verdict.
func (r *Report) Count(v Verdict) int { return r.count("", v) }

func (r *Report) count(experiment string, v Verdict) (n int) {
	for _, f := range r.Findings {
		if f.Verdict == v && (experiment == "" || experiment == f.Experiment) {
			n++
		}
	}
	return n
}

// Failed are the IDs of the experiments with a failure, in their order.
func (r *Report) Failed() (ids []string) {
	for _, e := range experiments {
		if r.count(e.id, Failed) > 0 {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// IDs are those of all experiments.
func IDs() (ids []string) {
	for _, e := range experiments {
		ids = append(ids, e.id)
	}
	return ids
}

// Markdown is the report as a page.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, examined with a %s\n\n", r.Operator, r.Kind)
	fmt.Fprintf(&b, "%d findings passed, %d failed, %d skipped, in %v, on %s.\n", r.Count(Passed), r.Count(Failed),
		r.Count(Skipped),
		r.Took, r.Date.Format("2006-01-02 15:04 UTC"))
	if r.Interrupted {
		b.WriteString("\nThe examination was interrupted: what comes later was not tried.\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	if len(r.Children) > 0 {
		fmt.Fprintf(&b, "\nThe operator writes: %s.\n", strings.Join(r.Children, ", "))
	}
	b.WriteString("\n| experiment | passed | failed | skipped |\n| --- | --- | --- | --- |\n")
	for _, e := range experiments {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", e.title, r.count(e.id, Passed), r.count(e.id, Failed),
			r.count(e.id, Skipped))
	}
	for _, e := range experiments {
		r.section(&b, e)
	}
	return b.String()
}

func (r *Report) section(b *strings.Builder, e experiment) {
	if r.count(e.id, Passed)+r.count(e.id, Failed)+r.count(e.id, Skipped) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", e.title, e.why)
	for _, f := range r.Findings {
		if f.Experiment != e.id {
			continue
		}
		fmt.Fprintf(b, "- **%s**: %s: %s\n", f.Verdict, f.Title, strings.ReplaceAll(strings.TrimSpace(f.What), "\n", "\n  "))
		if len(f.Evidence) > 0 {
			fmt.Fprintf(b, "\n  ```\n  %s\n  ```\n\n", strings.ReplaceAll(strings.Join(f.Evidence, "\n"), "\n", "\n  "))
		}
	}
}

// Write writes examine.md and examine.json into a folder, and returns the first's path.
func (r *Report) Write(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	page := filepath.Join(folder, "examine.md")
	return page, errors.Join(os.WriteFile(page, []byte(r.Markdown()), 0o644),
		os.WriteFile(filepath.Join(folder, "examine.json"), append(data, '\n'), 0o644))
}
