package examine

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"fmt"
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
	for _, s := range r.sections() {
		if !r.ran(s.ID) {
			continue
		}
		suite := junitSuite{Name: s.Title}
		for _, f := range r.Findings {
			if f.Experiment != s.ID {
				continue
			}
			c := junitCase{Class: r.Operator + "." + s.ID, Name: f.Title, Seconds: f.Took.Seconds()}
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

// sarifLevels maps severities to levels of SARIF.
var sarifLevels = map[Severity]string{Stops: "error", Costs: "warning", Little: "note", Choice: "note"}

// A jsonObject is an object of JSON.
type jsonObject = map[string]any

func sarifText(text string) jsonObject { return jsonObject{"text": text} }

// sarif has the part of SARIF 2.1.0 that code scanning reads: a rule for each experiment, and a result for each
// failure that is not accepted. An observation has no line in the operator's code: its place is a manifest, often the
// sample.
func (r *Report) sarif() ([]byte, error) {
	rules, results := []jsonObject{}, []jsonObject{}
	for _, s := range r.sections() {
		rules = append(rules, jsonObject{"id": s.ID, "shortDescription": sarifText(s.Title),
			"fullDescription": sarifText(s.Why)})
	}
	for _, f := range r.Findings {
		if f.Verdict != Failed || f.Accepted != "" {
			continue // code scanning would open an alert for it
		}
		place := jsonObject{"artifactLocation": jsonObject{"uri": inRepository(cmp.Or(f.File, r.Subject.Sample, r.Subject.CRD))},
			"region": jsonObject{"startLine": max(1, f.Line)}}
		// GitHub reads only this fingerprint. Without it, GitHub hashes the line, which many findings have in common.
		prints := jsonObject{"primaryLocationLineHash": fmt.Sprintf("%x:1", sha256.Sum256([]byte(f.ID)))}
		result := jsonObject{"ruleId": f.Experiment, "level": cmp.Or(sarifLevels[f.Severity], "error"),
			"message": sarifText(f.Title + ": " + f.What), "partialFingerprints": prints,
			"locations": []jsonObject{{"physicalLocation": place}}}
		results = append(results, result)
	}
	driver := jsonObject{"name": "operator workshop: examine", "rules": rules}
	log := jsonObject{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []jsonObject{{"tool": jsonObject{"driver": driver}, "results": results}}}
	data, err := json.MarshalIndent(log, "", "  ")
	return append(data, '\n'), err
}
