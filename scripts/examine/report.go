package examine

import (
	"cmp"
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
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/webpage"
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
	// Took is the duration in nanoseconds, and Idle is that on an idle machine. Interrupted means that the user ended the
	// examination early.
	Took        time.Duration `json:"took"`
	Idle        time.Duration `json:"idle,omitempty"`
	Interrupted bool          `json:"interrupted,omitempty"`
	// Notes are remarks about the whole examination.
	Notes []string `json:"notes,omitempty"`
	// Children are the objects that the operator writes, with the number of fields that it sets.
	Children []string `json:"children"`
	// Creation lists the events that the operator received, the requests that it sent, and the lines that it printed,
	// from the creation of the sample until it was ready.
	Creation []string         `json:"creation,omitempty"`
	Findings []outcome.Result `json:"findings"`
	// Sections are those of the findings; empty means the experiments of examine.
	Sections []Section `json:"sections,omitempty"`
	// Requests are the numbers of requests that the operator sent in each experiment, without leases and events.
	Requests map[string]Requests `json:"requests"`
	// Gone are entries of the baseline that did not fail, without those that fail only sometimes.
	Gone []string `json:"gone,omitempty"`
}

// A Section of a report has the results of one experiment. Why explains why it matters.
type Section struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Why   string `json:"why"`
}

// sections are all sections, in the order of the page.
func (r *Report) sections() []Section {
	all := r.Sections
	if len(all) == 0 {
		for _, e := range experiments {
			all = append(all, Section{e.id, e.title, e.why})
		}
	}
	return all
}

// section is the section with an ID. A report of another version may have others.
func (r *Report) section(id string) Section {
	all := r.sections()
	if at := slices.IndexFunc(all, func(s Section) bool { return s.ID == id }); at >= 0 {
		return all[at]
	}
	return Section{ID: id, Title: id}
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
	r.Operator, r.Kind = output.Line(r.Operator), output.Line(r.Kind)
	var ids []string
	for _, f := range r.Findings {
		ids = append(ids, output.Line(f.ID))
	}
	r.replace(output.Lines) // the file may come from another project
	for n := range ids {
		r.Findings[n].ID = ids[n]
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
		if f.Cause != "" {
			f.What += fmt.Sprintf("\nSeverity: %s. Likely cause: %s. %s", f.Severity, f.Cause, f.Others)
		}
		if f.Accepted != "" {
			f.What += "\nAccepted: " + f.Accepted
			f.Accepted = "" // print all of it
		}
		f.Print(w, true)
		found = true
	}
	if experiment, _, _ := strings.Cut(id, "/"); found {
		outcome.Wrap(w, "", "Why it matters: "+r.section(experiment).Why)
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
	for _, s := range r.sections() {
		if !r.ran(s.ID) {
			out = append(out, s.ID)
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
			all[cmp.Or(f.Cause, f.ID)] = true
		}
	}
	if len(all) == 1 {
		return "1 cause"
	}
	return fmt.Sprintf("%d causes", len(all))
}

// cut reports whether an experiment did not run, or parts of it were not tried.
func (r *Report) cut(id string) bool {
	return !r.ran(id) || slices.ContainsFunc(r.Findings, func(f outcome.Result) bool { return f.Experiment == id && f.Left > 0 })
}

// failures are the failed findings of a severity that no baseline accepts.
func (r *Report) failures(s Severity) (some []outcome.Result) {
	for _, f := range r.Findings {
		if f.Verdict == Failed && f.Severity == s && f.Accepted == "" {
			some = append(some, f)
		}
	}
	return some
}

// ran reports whether an experiment was chosen and begun.
func (r *Report) ran(id string) bool {
	return slices.ContainsFunc(r.Findings, func(f outcome.Result) bool { return f.Experiment == id })
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
	page, text := filepath.Join(folder, "examine.md"), r.Markdown()
	err = webpage.Write(filepath.Join(folder, "examine.html"), r.Operator, text)
	for name, data := range map[string][]byte{"examine.md": []byte(text), "examine.json": append(data, '\n'),
		"examine.junit.xml": junit, "examine.sarif": sarif} {
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), data, 0o644))
	}
	return page, err
}
