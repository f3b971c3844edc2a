// Package report writes the lab's results as a page of Markdown.
package report

import (
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
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
	Families []Family         `json:"families"`
	// Notes list unknown results of checks, with the reasons.
	Notes []string `json:"notes,omitempty"`
}

// An Implementation has a name and a title.
type Implementation struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Requests has the numbers of requests of ten MyWebs, by phase and kind.
	Requests map[string]map[string]int `json:"requests,omitempty"`
	// Memory is its resident set in bytes, in steady state after a restart over ten MyWebs.
	Memory int64  `json:"memory,omitempty"`
	Static Static `json:"static"`
}

// A Family is a suite of checks: conformance, crash points, faults.
type Family struct {
	Name string `json:"name"`
	// About describes the examined property in one line.
	About string `json:"about"`
	// Groups name the groups of the checks, in their order.
	Groups []Group `json:"groups"`
	// Outcomes by the name of the implementation, each in the same order of checks.
	Outcomes map[string][]outcome.Result `json:"outcomes"`
}

// A Group is a behaviour, or a row of the fault catalogue.
type Group struct {
	ID    string `json:"id"`
	Title string `json:"title"`
}
