// Package checks has the checks of MyWeb operators, as experiments from outside: the 14 behaviours that every operator
// must show, and the fault catalogue. Each checks the behaviour of a correct operator.
package checks

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// All returns the behaviours, and then the faults.
func All() []suite.Check { return append(Behaviours(), Faults()...) }

// Behaviours returns the checks of the behaviours, in the order of BehaviourTitles.
func Behaviours() []suite.Check {
	return ordered(0, behaviourChecks, driftCorrection(), conflicts(), refusals())
}

// Faults returns the checks of the fault catalogue, in the order of FaultTitles.
func Faults() []suite.Check {
	return ordered(2*time.Minute, outsideChecks, writeChecks, controlPlaneChecks, leaderChecks, childChecks, statusChecks,
		orphanChecks, specChecks, permissionChecks, policyChecks, podChecks, answers(), watches(), faultsOfKinds(), mutated())
}

// Needs of checks, by their IDs: checks of the content of a status, or of its writes, and checks of several replicas.
var (
	needsStatus = regexp.MustCompile(`^behaviour/(03-scale|0[678]-|11-(warned|restarted)|13-killed-after-status)|` +
		`^fault/(05-conflict-(status|true)|06-.*-status|07-|10-mywebs|21-(status|autoscaler)|22-|23-(port|refused)|2[45]-|3[124-6]-)`)
	needsLeader = regexp.MustCompile(`^behaviour/14-|^fault/16-`)
)

// ordered sorts checks by their group, which is the number in their ID, and sets their needs and a time limit.
func ordered(within time.Duration, lists ...[]suite.Check) []suite.Check {
	all := slices.Concat(lists...)
	for at := range all {
		c := &all[at]
		c.Group, c.Within = strings.TrimPrefix(number(*c), "0"), cmp.Or(c.Within, within)
		if needsStatus.MatchString(c.ID) {
			c.Needs = []suite.Need{suite.Status}
		} else if needsLeader.MatchString(c.ID) {
			c.Needs = []suite.Need{suite.LeaderElection}
		}
	}
	slices.SortStableFunc(all, func(a, b suite.Check) int { return strings.Compare(number(a), number(b)) })
	return all
}

// number is the number in the ID of a check, in two digits.
func number(c suite.Check) string {
	_, name, _ := strings.Cut(c.ID, "/")
	return name[:2]
}

// BehaviourTitles are the titles of the groups of behaviours.
var BehaviourTitles = []string{
	"1 children appear, owned and selected by name and instance",
	"2 a changed page reaches the pods",
	"3 a changed image, port or replica count changes the child in place",
	"4 a removed nodePortNumber keeps the port",
	"5 deleted or edited children are restored, additions by others stay",
	"6 an object that the operator does not own is never changed",
	"7 a node port that is taken is reported, and recovered from",
	"8 a rollout that fails is reported, and the old pods too",
	"9 deleting leaves nothing, recreating works at once",
	"10 in steady state nothing is written",
	"11 events are recorded on transitions only",
	"12 bad specs are refused with the field's path",
	"13 a killed operator converges; a refused request is not an error",
	"14 of two replicas one leads",
}

// FaultTitles are the titles of the rows of the fault catalogue.
var FaultTitles = []string{
	"1 crash after write i; every subset",
	"2 crash in the delete path (finalizer)",
	"3 response lost after commit",
	"4 request dropped; request duplicated",
	"5 409 k times",
	"6 500, 503, 504, 429 with and without Retry-After",
	"7 2 s more on status writes; on all writes",
	"8 watch ended; watch half open",
	"9 410 Gone with a delete missed",
	"10 own writes invisible",
	"11 old snapshot at restart",
	"12 unobserved change 1→3→2",
	"13 kube-apiserver killed",
	"14 etcd stopped, killed",
	"15 CRD missing at start; removed and restored",
	"16 leader stopped; lease stolen",
	"17 each owned object deleted",
	"18 each owned field edited",
	"19 owner references, labels stripped",
	"20 key removed from spec",
	"21 a second writer fights",
	"22 name taken by an unowned object",
	"23 bad spec, then reverted",
	"24 spec too large for a child",
	"25 immutable field of an older child differs",
	"26 server defaults, equal quantities in another spelling",
	"27 deleted and recreated under the same name mid-create",
	"28 namespace deleted mid-reconcile",
	"29 external dependency down",
	"30 clock moved, days of downtime",
	"31 a permission revoked and restored",
	"32 admission or quota denial",
	"33 panic on one resource",
	"34 a policy changes a field that the operator sets",
	"35 a policy refuses an addition by another client",
	"36 a message longer than an event's note may be",
	"37 an object without spec, or of other types",
}

// outsideChecks are the checks of faults that no external check can test. They are not applicable.
var outsideChecks = []suite.Check{
	{ID: "fault/01-crash",
		Title:         "when the process dies after any write, the next process completes the work",
		NotApplicable: "the crash sequences show it"},
	{ID: "fault/02-crash-in-delete", Title: "the resources that a finalizer guards are cleaned up once",
		NotApplicable: "a MyWeb has no finalizer: the garbage collector removes its children"},
	{ID: "fault/29-dependency-down",
		Title:         "something outside the cluster that fails is reported, and harms no others",
		NotApplicable: "a MyWeb depends on nothing outside the cluster"},
	{ID: "fault/30-clock", Title: "no run is missed or made twice when clocks move",
		NotApplicable: "a MyWeb has no schedule"},
	{ID: "fault/33-panic", Title: "a panic over one MyWeb leaves the others alone",
		NotApplicable: "nothing from outside makes an operator panic: see the list of mutants", Run: poisoned},
}

// poisoned is for mutants, which panic when they handle a MyWeb of that name.
func poisoned(t *suite.T) {
	for _, name := range []string{"poisoned", "web", "web-1", "web-2"} {
		t.Create(name, suite.Sample())
	}
	for _, name := range []string{"web", "web-1", "web-2"} {
		converged(t, name)
	}
	wantAlive(t)
}
