// Package report makes the documents with the lab's results, and the page that compares implementations.
package report

import (
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// A Comparison is a whole run of `make compare`.
type Comparison struct {
	// Date of the run, in UTC; Took is its duration.
	Date time.Time     `json:"date"`
	Took time.Duration `json:"took"`
	// Commit of the checkout, with "+changes" when files differ from it; Machine and Versions are lines
	// such as "2 cores, 24 GB, linux/amd64" and "Kubernetes 1.37.1".
	Commit   string   `json:"commit"`
	Machine  []string `json:"machine"`
	Versions []string `json:"versions"`
	// Commands that produced the report.
	Commands []string         `json:"commands"`
	Impls    []Implementation `json:"impls"`
	// Notes list unknown results of checks, with the reasons.
	Notes []string `json:"notes,omitempty"`
}

// An Implementation has the results of its checks.
type Implementation struct {
	Name   string          `json:"name"`
	Title  string          `json:"title"`
	Report *examine.Report `json:"report"`
	Static Static          `json:"static"`
}

// counted is the result with the numbers of requests of ten MyWebs, and with the resident set in steady state after a
// restart over them.
func (i Implementation) counted() outcome.Result {
	at := slices.IndexFunc(i.Report.Findings, func(o outcome.Result) bool { return o.Requests != nil })
	if at < 0 {
		return outcome.Result{}
	}
	return i.Report.Findings[at]
}

// Of is the report on an implementation, with the sections of those families of checks that ran.
func Of(i impl.Implementation, results []outcome.Result, took time.Duration) *examine.Report {
	r := &examine.Report{Schema: examine.Schema, Operator: i.Name + " " + i.Title, Kind: "MyWeb", Findings: results,
		Subject: examine.Subject{CRD: impl.CRD}, Date: time.Now().UTC(), Took: took.Round(time.Millisecond)}
	for _, s := range sections() {
		family, _, _ := strings.Cut(s.ID, "/")
		if slices.ContainsFunc(results, func(o outcome.Result) bool { return strings.HasPrefix(o.ID, family+"/") }) {
			r.Sections = append(r.Sections, s)
		}
	}
	return r
}

// sections are the behaviours, the crash sequences, the rows of the catalogue of faults, and the requests.
func sections() (all []examine.Section) {
	const crashes = "The operator is killed right after one of its writes was committed, in every combination, and started " +
		"again. It passes when the end state is that of an undisturbed run."
	add := func(id, family, why string, lines []string) {
		for _, line := range lines {
			name, title, _ := strings.Cut(line, " ")
			all = append(all, examine.Section{ID: id + "/" + name, Title: family + " " + name + ": " + title, Why: why})
		}
	}
	add("behaviour", "Behaviour", "Every MyWeb operator must show it, tested from outside.", checks.BehaviourTitles)
	add("crash", "Crash points,", crashes, []string{"creation from nothing to completed",
		"update page, image and replicas changed", "start every state to start from"})
	add("fault", "Fault", "Requests, watches, the control plane and other writers are disturbed, one way at a time.",
		checks.FaultTitles)
	return append(all, examine.Section{ID: "budget", Title: "Requests of ten MyWebs",
		Why: "They are counted by phase and kind."})
}
