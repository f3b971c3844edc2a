package examine

import (
	"fmt"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// A Verdict is how a finding ended. A skipped finding has its reason in What; a late finding was restored only at the
// next resync.
type Verdict = outcome.Verdict

// Verdicts.
const (
	Passed  = outcome.Passed
	Failed  = outcome.Failed
	Skipped = outcome.Skipped
	Late    = outcome.Late
)

// A Finding is the result of an experiment while trials make it.
type Finding struct{ outcome.Result }

func findingOf(v Verdict, what string, args ...any) Finding {
	return Finding{outcome.Result{Verdict: v, What: fmt.Sprintf(what, args...)}}
}

func passed(what string, args ...any) Finding {
	return findingOf(Passed, what, args...)
}

// failed is a failure, except when it rests on a time-out of the lab: that proves nothing about the operator.
func failed(what string, args ...any) Finding {
	for _, arg := range args {
		if err, _ := arg.(error); isTimeout(err) {
			return unfinished(fmt.Errorf("the lab's own API server had no answer in time: %w", err))
		}
	}
	return findingOf(Failed, what, args...)
}

func skipped(what string, args ...any) Finding {
	return findingOf(Skipped, what, args...)
}

func late(what string, args ...any) Finding {
	return findingOf(Late, what, args...)
}

func (f Finding) with(evidence ...string) Finding {
	f.Evidence = append(f.Evidence, evidence...)
	return f
}

// notTried is the beginning of the title of a finding about parts that were not tried.
const notTried = "not tried: "

// leftOut records that some parts of the experiment were not tried, if there are any.
func (r *run) leftOut(what string, left, of int) {
	if left > 0 {
		f := skipped("%d of %d: RUN=%s or TIME=20m, without FAST=1, tries more", left, of, r.current.id)
		f.Left, f.Of = left, of
		r.add(notTried+what, f)
	}
}

// and joins the findings about variants of one question: it fails when one of them fails, and lists those alone.
func (f Finding) and(other Finding) Finding {
	switch {
	case f.Verdict == "" || f.Verdict != Failed && other.Verdict == Failed:
		return other
	case f.Verdict == Failed && other.Verdict != Failed:
		return f
	}
	f.What += "\n" + other.What
	return f.with(other.Evidence...)
}

// lines formats requests as evidence: of many, the first and the last.
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
	// share is the weight of its part of the time, relative to the other experiments.
	share int
	// alone means that no other experiment runs at the same time.
	alone bool
	// why explains why it matters, and how other operators solve it.
	why string
	run func(r *run) error
}

// experiments are in the order of risk: what loses data or stops comes before what costs, or is a choice.
var experiments = []experiment{
	{"creation", "Cost of a creation", 1, true,
		"Every change is a write to etcd and an event for every watcher, and a write that changes nothing is still a " +
			"request. Others compare desired with observed state first, or use server-side apply and a cache; reads come from " +
			"informers.", creation},
	{"steady-state", "Steady state", 2, true,
		"With thousands of objects, requests without a change for each of them overload an API server. " +
			"Others react to watches, and requeue only with a reason and a long period.", steadyState},
	{"restart", "Restart over converged objects", 1, false, "Every upgrade restarts the operator over all objects at once. " +
		"Others compare before they write, so that a restart reads and writes nothing.", restart},
	{"deletion", "Deletion", 3, false, "Objects that stay behind cost money and block the name. " +
		"Others set owner references and leave deletion to the garbage collector; a finalizer is for objects outside the " +
		"cluster.", deletion},
	{"ownership", "Names that are taken", 3, false,
		"Two programs can need an object with the same name. Others look for the controller of an existing object, do not " +
			"change an object that they do not own, and report the conflict in the status.", ownership},
	{"faults", "API faults", 12, false,
		"API servers are upgraded, overloaded and unreachable. Others return the error, and the work queue tries again " +
			"with exponential backoff, for each object separately.", apiFaults},
	{"crash", "Killed after each write", 8, false,
		"A process can end between any two writes. Others keep no progress in memory: each reconcile starts from " +
			"the state of the cluster.", crashes},
	{"replicas", "Two replicas", 2, false, "During an upgrade two processes run. Others elect a leader by a lease.", replicas},
	{"drift", "Drift", 10, false, "People and programs change what an operator owns. Others watch their children (Owns), and " +
		"apply the fields that they set; additions by others stay.", drift},
	{"admission", "Admission", 8, false,
		"Companies guard their clusters by policies and quotas. Others report the refusal in the status, make " +
			"the other children, and try again with exponential backoff.", admission},
	{"older", "Children of an older version", 3, false,
		"A new version of an operator meets children that the old one made, and no client can change some of " +
			"their fields. Others delete and create such a child, or keep it and report the refusal in the status.", olderChildren},
	{"spec", "Spec changes", 6, false,
		"A field that is accepted and ignored misleads its users. Others refuse it in the schema, or let it reach the " +
			"children.", specChanges},
	{"values", "Extreme values", 4, false,
		"Users type zeros, empty texts, letters of all languages, and texts too large for a child. Others refuse in the schema a value that they cannot " +
			"serve, and report any other problem in the status.", extremeValues},
	{"upgrade", "Upgrade from the old program", 2, false,
		"A new version starts over the objects of the old one. Others change a pod template only when the user or the " +
			"image asks for it, because a changed template restarts all pods.", upgrade},
	{"many", "Many samples", 2, false,
		"The cost of each object must not grow with their number. Others find the objects of an event by an index or an " +
			"owner reference, and read from a cache.", many},
	{"permissions", "Permissions", 1, true,
		"An attacker who takes over an operator gets all its permissions. Others list the verbs that are used, and no " +
			"wildcard.", permissions},
}
