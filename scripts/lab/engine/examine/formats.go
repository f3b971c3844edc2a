package examine

import (
	"encoding/json"
	"encoding/xml"
	"strings"
)

// junitSuites has the part of JUnit's format that CI servers read: https://github.com/testmoapp/junitxml describes
// it.
type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Seconds float64    `xml:"time,attr"`
	Failure *junitText `xml:"failure"`
	Skipped *junitText `xml:"skipped"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit writes a suite for each experiment. A failure that the baseline accepts is written as skipped.
func (r *Report) junit() ([]byte, error) {
	var all junitSuites
	for _, e := range experiments {
		if !r.ran(e.id) {
			continue
		}
		suite := junitSuite{Name: e.title}
		for _, f := range r.Findings {
			if f.Experiment != e.id {
				continue
			}
			c := junitCase{Class: r.Operator + "." + e.id, Name: f.Title, Seconds: f.Took.Seconds()}
			switch {
			case f.Verdict == Skipped:
				c.Skipped = &junitText{Message: firstLine(f.What)}
			case f.Accepted != "":
				c.Skipped = &junitText{Message: "accepted: " + f.Accepted}
			case f.Verdict == Failed:
				c.Failure = &junitText{firstLine(f.What), f.What + "\n" + strings.Join(f.Evidence, "\n")}
			}
			if suite.Tests++; c.Failure != nil {
				suite.Failures++
			} else if c.Skipped != nil {
				suite.Skipped++
			}
			suite.Cases = append(suite.Cases, c)
		}
		all.Suites = append(all.Suites, suite)
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}

// These types have the part of SARIF 2.1.0 that code scanning reads: a rule for each experiment, a result for each
// failure.
type (
	sarifText struct {
		Text string `json:"text"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
		Full  sarifText `json:"fullDescription"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Fingerprints map[string]string  `json:"partialFingerprints"`
		Locations    []sarifLocation    `json:"locations"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact struct {
				URI string `json:"uri"`
			} `json:"artifactLocation"`
		} `json:"physicalLocation"`
	}
	sarifRun struct {
		Tool struct {
			Driver struct {
				Name  string      `json:"name"`
				Rules []sarifRule `json:"rules"`
			} `json:"driver"`
		} `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
)

// sarifLevels maps severities to levels of SARIF.
var sarifLevels = map[Severity]string{Stops: "error", Costs: "warning", Little: "note", Choice: "note"}

// sarif names the sample's file as the place of a failure, because an observation has no line in the operator's code.
func (r *Report) sarif() ([]byte, error) {
	one := sarifRun{Results: []sarifResult{}}
	one.Tool.Driver.Name = "operator workshop: examine"
	for _, e := range experiments {
		one.Tool.Driver.Rules = append(one.Tool.Driver.Rules, sarifRule{e.id, sarifText{e.title}, sarifText{e.why}})
	}
	for _, f := range r.Findings {
		if f.Verdict != Failed {
			continue
		}
		var place sarifLocation
		place.Physical.Artifact.URI = r.Subject.Sample
		result := sarifResult{RuleID: f.Experiment, Level: sarifLevels[f.Severity],
			Message: sarifText{f.Title + ": " + f.What}, Fingerprints: map[string]string{"examine/v1": f.ID},
			Locations: []sarifLocation{place}}
		if f.Accepted != "" {
			result.Suppressions = []sarifSuppression{{"external", f.Accepted}}
		}
		one.Results = append(one.Results, result)
	}
	log := sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{one}}
	data, err := json.MarshalIndent(log, "", "  ")
	return append(data, '\n'), err
}
