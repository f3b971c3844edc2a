// Package doctor examines the machine before a reader loses an hour to it. Every check looks at one
// condition that the workshop rests on and reports what it saw, why that matters and what fixes it.
// It changes nothing.
package doctor

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Status is the outcome of one check.
type Status int

const (
	// OK: nothing to do.
	OK Status = iota
	// Warning: the workshop works, but a part of it is slow, fragile or missing.
	Warning
	// Failure: the default environment does not work until this is fixed.
	Failure
	// NotApplicable: the check says nothing about this machine; What gives the reason.
	NotApplicable
)

// String gives the word that Print puts in front of a finding.
func (s Status) String() string {
	switch s {
	case OK:
		return "ok"
	case Warning:
		return "warn"
	case Failure:
		return "FAIL"
	case NotApplicable:
		return "n/a"
	}
	return fmt.Sprintf("Status(%d)", int(s))
}

// Finding is the outcome of one check, free of credentials and control characters.
type Finding struct {
	// Check names the check; stable, and the same in every outcome.
	Check string
	// What was seen, in one sentence.
	What string
	// Why it matters: what breaks. Set when the status is Warning or Failure.
	Why string
	// Fix is what to do. A command stands on a line of its own. Set when Why is.
	Fix    string
	Status Status
}

// ID is the name of the check in one word.
func (f Finding) ID() string { return strings.ReplaceAll(strings.ToLower(f.Check), " ", "-") }

// DefaultLimit bounds one check when Machine.Limit is not set.
const DefaultLimit = 10 * time.Second

const grace = 100 * time.Millisecond

// check is one row of the table that Examine works through.
type check struct {
	name string
	run  func(context.Context, Machine) Finding
	// slow is the finding when run outlives the time limit; What is completed by Examine.
	slow Finding
}

const (
	toolWhy = "The targets of the Makefile call it."
	slowWhy = "What cannot be examined in time is likely to hang the workshop too."
	slowFix = "Run it again; if it stays slow, look at what the machine is busy with."
)

// checks lists what Examine does, in the order of its answer.
var checks = []check{
	{name: "Go", run: checkGo},
	{name: "GOFLAGS", run: checkGoFlags},
	{name: "go.work", run: checkGoWork},
	{name: "Module proxy", run: checkModuleProxy},
	{name: "make", run: checkMake},
	{name: "git", run: checkGit},
	{name: "bash", run: checkBash},
	{name: "Disk", run: checkDisk, slow: Finding{
		Why: "A file system that does not answer (a network drive, say) stalls every build.",
		Fix: "Put the repository, GOCACHE and GOMODCACHE on a local disk.",
	}},
	{name: "Memory", run: checkMemory},
	{name: "Loopback", run: checkLoopback},
	{name: "Ports", run: checkPorts},
	{name: "Host name", run: checkHostname},
	{name: "Proxies", run: checkProxies},
	{name: "Local cluster", run: checkCluster},
	{name: "Docker", run: checkDocker, slow: Finding{
		Why: dockerWhy,
		Fix: "Restart Docker, then see that this answers:\ndocker info",
	}},
	{name: "inotify", run: checkInotify},
	{name: "cgroup", run: checkCgroup},
}

// Examine runs every check at once, each for at most machine.Limit, and returns one finding a check
// in a fixed order. A check that hangs becomes a Warning and is left behind.
func Examine(ctx context.Context, machine Machine) []Finding {
	findings := make([]Finding, len(checks))
	var running sync.WaitGroup
	for i, check := range checks {
		running.Go(func() { findings[i] = examine(ctx, machine, check) })
	}
	running.Wait()
	return findings
}

func examine(ctx context.Context, machine Machine, check check) Finding {
	limit := machine.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	done := make(chan Finding, 1)
	go func() { done <- check.run(ctx, machine) }()
	var finding Finding
	select {
	case finding = <-done:
	case <-ctx.Done():
		// A moment for a program to be killed before the doctor itself may end.
		select {
		case <-done:
		case <-time.After(grace):
		}
	}
	// Whatever a check says after its time is up is an effect of the limit, not of the machine.
	if ctx.Err() != nil {
		finding = check.slow
		finding.Status = Warning
		finding.What = fmt.Sprintf("No answer within %s.", limit)
		if ctx.Err() == context.Canceled {
			finding.What = "Interrupted before it answered."
		}
		if finding.Why == "" {
			finding.Why, finding.Fix = slowWhy, slowFix
		}
	}
	finding.Check = check.name
	finding.What, finding.Why, finding.Fix = clean(finding.What), clean(finding.Why), clean(finding.Fix)
	return finding
}

// Worst returns the gravest status among the findings: Failure over Warning over OK. NotApplicable
// counts as OK, and so does no finding at all.
func Worst(findings []Finding) Status {
	worst := OK
	for _, finding := range findings {
		if finding.Status != NotApplicable && finding.Status > worst {
			worst = finding.Status
		}
	}
	return worst
}

var (
	// The user part reaches to the last @: a password may hold any character, even one that should
	// have been escaped.
	urlUser  = regexp.MustCompile(`//[^\s"'|,]*@`)
	bareUser = regexp.MustCompile(`[^\s"'/|,]+:[^\s"'|,]*@`)
)

// clean takes away the user part of every URL and every control character but the line break:
// findings quote the environment and the output of programs, and are pasted into issues.
func clean(text string) string {
	text = bareUser.ReplaceAllString(urlUser.ReplaceAllString(text, "//"), "")
	return strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

func okay(format string, arguments ...any) Finding {
	return Finding{Status: OK, What: fmt.Sprintf(format, arguments...)}
}

func notApplicable(format string, arguments ...any) Finding {
	return Finding{Status: NotApplicable, What: fmt.Sprintf(format, arguments...)}
}
