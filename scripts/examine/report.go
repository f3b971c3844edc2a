package examine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// Schema names the format of a report in JSON: report.schema.json. A version only gets new
// fields.
const Schema = "https://example.com/operator-workshop/examine/v1"

// A Report is the result of an examination.
type Report struct {
	Schema string `json:"schema"`
	// Operator is the program's name; Kind is the sample's kind.
	Operator string `json:"operator"`
	Kind     string `json:"kind"`
	// Subject holds the user's settings.
	Subject Subject   `json:"subject"`
	Date    time.Time `json:"date"`
	// Took is the duration in nanoseconds; Interrupted means that the user ended the examination early.
	Took        time.Duration `json:"took"`
	Interrupted bool          `json:"interrupted,omitempty"`
	// idle is the duration that an idle machine would have needed.
	idle time.Duration
	// Notes are remarks about the whole examination.
	Notes []string `json:"notes,omitempty"`
	// Children are the objects that the operator writes, with the number of fields that it sets.
	Children []string `json:"children"`
	// Creation lists the events that the operator received, the requests that it sent, and the lines that it printed,
	// from the creation of the sample until it was ready.
	Creation []string  `json:"creation,omitempty"`
	Findings []Finding `json:"findings"`
	// Requests are the numbers of requests that the operator sent in each experiment, without leases and events.
	Requests map[string]Requests `json:"requests"`
	// Gone are entries of the baseline that did not fail, without those that fail only sometimes.
	Gone []string `json:"gone,omitempty"`
}

// Requests are numbers of requests.
type Requests struct {
	Reads  int `json:"reads"`
	Writes int `json:"writes"`
}

// ReadReport reads a report that Write wrote.
func ReadReport(file string) (*Report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("%s has the schema %q, and %q is read: examine the operator again", file, r.Schema, Schema)
	}
	return r, nil
}

func newReport(t *target) *Report {
	r := &Report{Schema: Schema, Operator: nameOf(t.Program), Kind: t.sample.GetKind(), Subject: t.Subject,
		Date: time.Now().UTC(), Requests: map[string]Requests{}}
	r.Subject.Env, r.Subject.Args = slices.Clone(r.Subject.Env), slices.Clone(r.Subject.Args)
	for n, variable := range r.Subject.Env { // a value may be a secret
		r.Subject.Env[n], _, _ = strings.Cut(variable, "=")
	}
	kinds := map[schema.GroupKind]bool{} // each may have several versions
	for gvk := range t.kinds {
		kinds[gvk.GroupKind()] = true
	}
	if len(kinds) > 1 {
		r.Notes = append(r.Notes,
			fmt.Sprintf("The CRDs are for several kinds (%s). This is an examination of %s: run another with a sample of each "+
				"other kind.",
				t.kindNames(), r.Kind))
	}
	if t.statusless {
		r.Notes = append(r.Notes, fmt.Sprintf("The CRD of %s has no status subresource: a client that may write the status may "+
			"also write the spec, each write of the status raises metadata.generation, and observedGeneration is meaningless.", r.Kind))
	}
	return r
}

// Count is the number of findings with a verdict.
func (r *Report) Count(v Verdict) int { return r.count("", v) }

func (r *Report) count(experiment string, v Verdict) (n int) {
	for _, f := range r.Findings {
		if f.Verdict == v && (experiment == "" || experiment == f.Experiment) {
			n++
		}
	}
	return n
}

// Failed are the IDs of the failed findings of some experiments that no baseline accepts; "any" stands for all.
func (r *Report) Failed(experiments ...string) (ids []string) {
	for _, f := range r.Findings {
		chosen := slices.Contains(experiments, f.Experiment) || slices.Contains(experiments, "any")
		if f.Verdict == Failed && f.Accepted == "" && chosen {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// Explain prints the findings with an ID, or those of an experiment, and reports whether there are any.
func (r *Report) Explain(w io.Writer, id string) (found bool) {
	for _, f := range r.Findings {
		if f.ID != id && f.Experiment != id {
			continue
		}
		why := f.What
		if f.Cause != "" {
			why += fmt.Sprintf("\nSeverity: %s. Likely cause: %s. %s", f.Severity, f.Cause, f.Others)
		}
		if f.Accepted != "" {
			why += "\nAccepted: " + f.Accepted
		}
		outcome.Result{Check: f.ID, Title: f.Title, Verdict: f.Verdict, Seconds: f.Took.Seconds(), Reason: why,
			Evidence: f.Evidence}.Print(w, true)
		found = true
	}
	if experiment, _, _ := strings.Cut(id, "/"); found {
		outcome.Wrap(w, "", "Why it matters: "+experimentOf(experiment).why)
	}
	return found
}

// IDs are the IDs of all experiments.
func IDs() (ids []string) {
	for _, e := range experiments {
		ids = append(ids, e.id)
	}
	return ids
}

// NotTried lists the parts that were not tried, and how many of them: "3 of 13 faults".
func (r *Report) NotTried() string {
	var all, out []string
	for _, f := range r.Findings {
		if what, part := strings.CutPrefix(f.Title, notTried); part && f.Left > 0 {
			all = append(all, fmt.Sprintf("%d of %d %s", f.Left, f.Of, what))
		} else if f.Left > 0 {
			all = append(all, f.Title)
		}
	}
	for _, e := range experiments {
		if !r.ran(e.id) {
			out = append(out, e.id)
		}
	}
	if len(out) > 0 {
		all = append(all, "the experiments "+strings.Join(out, ", "))
	}
	return strings.Join(all, "; ")
}

// causes is the number of likely causes of the failed findings, in words.
func (r *Report) causes() string {
	all := map[string]bool{}
	for _, f := range r.Findings {
		if f.Verdict == Failed {
			all[f.Cause] = true
		}
	}
	if len(all) == 1 {
		return "1 cause"
	}
	return fmt.Sprintf("%d causes", len(all))
}

// cut reports whether an experiment did not run, or parts of it were not tried.
func (r *Report) cut(id string) bool {
	return !r.ran(id) || slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Experiment == id && f.Left > 0 })
}

// failures are the failed findings of a severity that no baseline accepts.
func (r *Report) failures(s Severity) (some []Finding) {
	for _, f := range r.Findings {
		if f.Verdict == Failed && f.Severity == s && f.Accepted == "" {
			some = append(some, f)
		}
	}
	return some
}

// Markdown is the report as a page: failures come first, by severity and cause.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, examined with a %s\n", r.Operator, r.Kind)
	fmt.Fprintf(&b, "\n%d findings passed, %d failed for %s, %d came late, %d were skipped, in %v, on %s.\n",
		r.Count(Passed), r.Count(Failed), r.causes(), r.Count(Late), r.Count(Skipped), r.Took,
		r.Date.Format("2006-01-02 15:04 UTC"))
	if left := r.NotTried(); left != "" {
		fmt.Fprintf(&b, "\nNot tried: %s.\n", left)
	}
	if r.Interrupted {
		b.WriteString("\nThe examination was interrupted: later experiments did not run.\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", note)
	}
	for _, id := range r.Gone {
		fmt.Fprintf(&b, "\nThe baseline accepts %s, which did not fail in this run: take it off the list, or add sometimes: true.\n", id)
	}
	if len(r.Children) > 0 {
		fmt.Fprintf(&b, "\nThe operator writes: %s.\n", strings.Join(r.Children, ", "))
	}
	r.worst(&b)
	b.WriteString("\n## All experiments\n\nThe requests include those for the samples that an experiment creates first.\n\n" +
		"| experiment | passed | late | failed | skipped | reads | writes |\n" +
		"| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, e := range experiments {
		if n := r.Requests[e.id]; r.ran(e.id) {
			fmt.Fprintf(&b, "| [%s](#%s) | %d | %d | %d | %d | %d | %d |\n", e.title, anchor(e.title), r.count(e.id, Passed),
				r.count(e.id, Late), r.count(e.id, Failed), r.count(e.id, Skipped), n.Reads, n.Writes)
		}
	}
	for _, e := range experiments {
		r.section(&b, e)
	}
	if len(r.Creation) > 0 {
		fmt.Fprintf(&b, "\n## The creation, step by step\n\nThe events that the operator received, the requests that it "+
			"sent, and the lines that it printed (log).\n\n```text\n%s\n```\n", strings.Join(r.Creation, "\n"))
	}
	return b.String()
}

// anchor is the link that a heading of Markdown gets.
func anchor(title string) string {
	return strings.ReplaceAll(strings.ToLower(strings.NewReplacer(",", "", ":", "").Replace(title)), " ", "-")
}

// ran reports whether an experiment was chosen and begun.
func (r *Report) ran(id string) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Experiment == id })
}

// worst lists the failures by severity, and groups those of one cause.
func (r *Report) worst(b *strings.Builder) {
	for _, s := range severities {
		all := r.failures(s)
		if len(all) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n## %s\n", strings.ToUpper(string(s[:1]))+string(s[1:]))
		seen := map[string]bool{}
		for _, first := range all {
			if seen[first.Cause] {
				continue
			}
			seen[first.Cause] = true
			if first.Cause != "" {
				fmt.Fprintf(b, "\nLikely cause: %s. %s\n", first.Cause, first.Others)
			}
			b.WriteString("\n")
			for _, f := range all {
				if f.Cause == first.Cause {
					section := anchor(experimentOf(f.Experiment).title)
					fmt.Fprintf(b, "- **failed**: [%s](#%s): %s\n", f.Title, section, firstLine(f.What))
				}
			}
		}
	}
	var accepted []string
	for _, f := range r.Findings {
		if f.Verdict == Failed && f.Accepted != "" {
			accepted = append(accepted, fmt.Sprintf("- %s: %s. Accepted: %s", f.Title, firstLine(f.What), f.Accepted))
		}
	}
	if len(accepted) > 0 {
		fmt.Fprintf(b, "\n## Accepted by the baseline\n\n%s\n", strings.Join(accepted, "\n"))
	}
}

// experimentOf is the experiment with an ID. A report of another version may have others.
func experimentOf(id string) experiment {
	for _, e := range experiments {
		if e.id == id {
			return e
		}
	}
	return experiment{id: id, title: id}
}

func (r *Report) section(b *strings.Builder, e experiment) {
	if !r.ran(e.id) {
		return
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n", e.title, e.why)
	r.items(b, e, false)
	if passed := r.count(e.id, Passed); passed > 0 {
		fmt.Fprintf(b, "\n<details><summary>%d passed</summary>\n\n", passed)
		r.items(b, e, true)
		b.WriteString("\n</details>\n")
	}
}

// items lists the findings of an experiment that passed, or the others.
func (r *Report) items(b *strings.Builder, e experiment, passed bool) {
	for _, f := range r.Findings {
		if f.Experiment != e.id || (f.Verdict == Passed) != passed {
			continue
		}
		fmt.Fprintf(b, "- **%s**: %s: %s\n", f.Verdict, f.Title, strings.ReplaceAll(strings.TrimSpace(f.What), "\n", "\n  "))
		if len(f.Evidence) > 0 {
			fmt.Fprintf(b, "\n  ```text\n  %s\n  ```\n\n", strings.ReplaceAll(strings.Join(f.Evidence, "\n"), "\n", "\n  "))
		}
	}
}

// Write writes the report into a folder, as a page and in the formats for programs, and returns the path of the page.
func (r *Report) Write(folder string) (string, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return "", err
	}
	junit, err := r.junit()
	if err != nil {
		return "", err
	}
	sarif, err := r.sarif()
	if err != nil {
		return "", err
	}
	page := filepath.Join(folder, "examine.md")
	for name, data := range map[string][]byte{"examine.md": []byte(r.Markdown()), "examine.json": append(data, '\n'),
		"examine.junit.xml": junit, "examine.sarif": sarif} {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), data, 0o644))
	}
	return page, err
}
