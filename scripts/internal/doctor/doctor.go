// Package doctor examines the machine before a problem of the machine costs a reader an hour. Every check examines one
// condition that readers met and that no later message explains. It reports its finding, why the finding matters, and
// the fix. It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Status is the outcome of one check.
type Status int

const (
	// NotApplicable: the check does not apply to this machine; What gives the reason.
	NotApplicable Status = iota
	// OK: nothing to do.
	OK
	// Warning: the workshop works, but a part of it is slow, fragile or missing.
	Warning
	// Failure: the default environment does not work until this is fixed.
	Failure
)

// String gives the word that Print puts in front of a finding.
func (s Status) String() string { return [...]string{"n/a", "ok", "warn", "FAIL"}[s] }

// Diagnosis is the outcome of one check, free of credentials.
type Diagnosis struct {
	// Check names the check in one word; stable, and the same in every outcome.
	Check string
	// The finding itself, in one sentence.
	What string
	// Why the finding matters: the feature that breaks. Set when the status is Warning or Failure.
	Why string
	// Fix says what to do. A command is on a separate line. Set when Why is set.
	Fix    string
	Status Status
}

// ID is the name of the check as TEACHING.md explains it.
func (f Diagnosis) ID() string { return strings.ToLower(f.Check) }

// limit bounds the time of one check: a Docker daemon that hangs would block it forever.
const limit = 10 * time.Second

// Run runs every check and returns one finding for each check, in a fixed order.
func Run(ctx context.Context, machine Machine) []Diagnosis {
	var findings []Diagnosis
	for _, check := range checks {
		findings = append(findings, check.run(ctx, machine))
	}
	return findings
}

func (c check) run(ctx context.Context, machine Machine) Diagnosis {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	finding := c.find(ctx, machine)
	finding.Check = c.name
	// The finding may quote a program, and is pasted into issues.
	finding.What = urlUser.ReplaceAllString(finding.What, "//")
	if finding.Status >= Warning && finding.Why == "" {
		finding.Why = c.why
	}
	if finding.Status >= Warning && finding.Fix == "" {
		finding.Fix = c.fix
	}
	return finding
}

// Worst returns the worst status among the findings: Failure before Warning before OK. NotApplicable counts as OK, and
// so does an empty list.
func Worst(findings []Diagnosis) Status {
	worst := OK
	for _, finding := range findings {
		worst = max(worst, finding.Status)
	}
	return worst
}

// The user part of a URL reaches to the last @: a password may contain any character, even a character that should have
// been escaped.
var urlUser = regexp.MustCompile(`//[^\s"'|,]*@`)

func report(status Status, format string, arguments ...any) Diagnosis {
	return Diagnosis{Status: status, What: fmt.Sprintf(format, arguments...)}
}
