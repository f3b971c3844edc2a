package faults

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Rows are the titles of the groups of checks, in the order of the catalogue.
var Rows = []string{
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

// Checks returns all checks, in the order of the rows.
func Checks() []suite.Check {
	all := slices.Concat(outsideChecks, writeChecks, controlPlaneChecks, leaderChecks, childChecks, statusChecks,
		leftoverChecks, specChecks, permissionChecks, podChecks, refusalChecks, mutationChecks, writes(), watches(),
		children(), mutated())
	for at, c := range all {
		row := strings.TrimPrefix(c.ID, "fault/")[:2]
		all[at].Group, all[at].Within = strings.TrimPrefix(row, "0"), cmp.Or(c.Within, 2*time.Minute)
		if reported.MatchString(c.ID) {
			all[at].Needs = []suite.Need{suite.Status}
		} else if row == "16" {
			all[at].Needs = []suite.Need{suite.LeaderElection}
		}
	}
	slices.SortStableFunc(all, func(a, b suite.Check) int { return cmp.Compare(number(a), number(b)) })
	return all
}

// reported matches the checks of the content of a status, and of its writes.
var reported = regexp.MustCompile(
	`^fault/(05-conflict-(status|true)|06-.*-status|07-|10-mywebs|21-status|22-|23-(port|refused)|2[45]-|3[124-6]-)`)

// number is the number of a check's row.
func number(c suite.Check) int {
	n, _ := strconv.Atoi(c.Group)
	return n
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
