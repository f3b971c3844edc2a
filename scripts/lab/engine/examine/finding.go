package examine

import (
	"fmt"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
)

// A Verdict is how a finding ended.
type Verdict string

// Verdicts.
const (
	Passed  Verdict = "passed"
	Failed  Verdict = "failed"
	Skipped Verdict = "skipped" // nothing was shown, What says why
	// Late: what somebody changed came back only when the operator looked at everything again.
	Late Verdict = "late"
)

// A Finding is what one experiment showed.
type Finding struct {
	// ID is the same in each examination of the same sample: "drift/a-deleted-configmaps-hello-comes-back".
	ID string `json:"id"`
	// Experiment is the ID of the experiment, such as "drift"; Title is what should be true.
	Experiment string `json:"experiment"`
	Title      string `json:"title"`
	// Verdict, and in What the observation that it rests on.
	Verdict Verdict `json:"verdict"`
	What    string  `json:"what"`
	// Evidence are requests, or differences between objects, one a line.
	Evidence []string `json:"evidence,omitempty"`
	// Severity is set on what failed or came late; Cause is what the pattern of the observation points to, and Others what
	// other operators do about it.
	Severity Severity `json:"severity,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	Others   string   `json:"others,omitempty"`
	// Accepted is the reason of the baseline that lists the finding.
	Accepted string `json:"accepted,omitempty"`
	// Took is how long it was.
	Took time.Duration `json:"took"`
}

func passed(what string, args ...any) Finding {
	return Finding{Verdict: Passed, What: fmt.Sprintf(what, args...)}
}

func failed(what string, args ...any) Finding {
	return Finding{Verdict: Failed, What: fmt.Sprintf(what, args...)}
}

func skipped(what string, args ...any) Finding {
	return Finding{Verdict: Skipped, What: fmt.Sprintf(what, args...)}
}

func late(what string, args ...any) Finding {
	return Finding{Verdict: Late, What: fmt.Sprintf(what, args...)}
}

func (f Finding) with(evidence ...string) Finding {
	f.Evidence = append(f.Evidence, evidence...)
	return f
}

// lines are requests as evidence: of many, the first and the last.
func lines(entries []ledger.Entry) (all []string) {
	for _, e := range entries {
		all = append(all, e.String())
	}
	if len(all) > 14 {
		all = append(append(all[:7:7], fmt.Sprintf("… %d more …", len(all)-14)), all[len(all)-7:]...)
	}
	return all
}

// An experiment is a section of the report.
type experiment struct {
	id, title string
	// share is its part of the time, beside those of the others.
	share int
	// why it matters, and how others solve it.
	why string
	run func(r *run) error
}

var experiments = []experiment{
	{"creation", "What creation costs", 1,
		"Every write is a write to etcd and an event for every watcher, also one that changes nothing. " +
			"Others compare desired with observed state first, or use server-side apply and a cache; reads come from " +
			"informers.", creation},
	{"steady-state", "Steady state", 2,
		"With thousands of objects, what is sent for each of them without a change is what overloads an API server. " +
			"Others react to watches, and requeue only with a reason and a long period.", steadyState},
	{"restart", "Restart over converged objects", 1, "Every upgrade restarts the operator over all objects at once. " +
		"Others compare before they write, so that a restart reads and writes nothing.", restart},
	{"deletion", "Deletion", 3, "What stays behind costs money and blocks the name. " +
		"Others set owner references and leave deletion to the garbage collector; a finalizer is for what is outside the " +
		"cluster.", deletion},
	{"drift", "Drift", 8, "People and programs change what an operator owns. Others watch their children (Owns), and " +
		"apply the fields that they set; what others add stays.", drift},
	{"replicas", "Two replicas", 2, "During an upgrade two processes run. Others elect a leader by a lease.", replicas},
	{"faults", "API faults", 8,
		"API servers are upgraded, overloaded and unreachable. Others return the error, and the work queue tries again " +
			"with exponential backoff, for each object apart.", apiFaults},
	{"admission", "Admission", 5,
		"Companies guard their clusters by policies and quotas. Others report what was refused in the status, make " +
			"the other children, and try again with exponential backoff.", admission},
	{"spec", "Spec changes", 6,
		"A field that is accepted and ignored misleads its users. Others refuse it in the schema, or let it reach the " +
			"children.", specChanges},
	{"crash", "Killed after each write", 8,
		"A process can end between any two writes. Others keep no progress in memory: each reconcile starts from " +
			"what is in the cluster.", crashes},
	{"permissions", "Permissions", 1,
		"What an operator may do, whoever takes it over may do too. Others write down the verbs that are used, no " +
			"wildcard.", permissions},
}
