package faults

import (
	"regexp"
	"slices"
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
	all := slices.Concat(checks, writes(), watches(), children(), mutated())
	for at, c := range all {
		if reported.MatchString(c.ID) {
			all[at].Needs = []suite.Need{suite.Status}
		} else if c.Group == "16" {
			all[at].Needs = []suite.Need{suite.LeaderElection}
		}
	}
	slices.SortStableFunc(all, func(a, b suite.Check) int { return strings.Compare(row(a), row(b)) })
	return all
}

// reported matches the checks of the content of a status, and of its writes.
var reported = regexp.MustCompile(
	`^fault/(05-conflict-(status|true)|06-.*-status|07-|10-mywebs|21-status|22-|23-(port|refused)|2[45]-|3[124-6]-)`)

// row is the part of an ID that is common to the checks of a row: "fault/07".
func row(c suite.Check) string { return c.ID[:len("fault/00")] }

// checks are the individual checks. The other checks are variations of one experiment. A row that no external check
// can test is not applicable.
var checks = []suite.Check{
	{ID: "fault/01-crash", Group: "1",
		Title:         "when the process dies after any write, the next process completes the work",
		NotApplicable: "the crash sequences show it"},
	{ID: "fault/02-crash-in-delete", Group: "2", Title: "the resources that a finalizer guards are cleaned up once",
		NotApplicable: "a MyWeb has no finalizer: the garbage collector removes its children"},
	{ID: "fault/03-answer-lost", Group: "3", Fast: true, Within: 2 * time.Minute, Run: whileMade(answerLost),
		Title: "a child or status that was written, but whose answer was lost, is recognized; nothing is created twice"},
	{ID: "fault/03-error-after-commit", Group: "3", Within: 2 * time.Minute, Run: whileMade(errorAfterCommit),
		Title: "a write that succeeded but was answered with 500 is recognized; nothing is created twice"},
	{ID: "fault/03-answer-lost-update", Group: "3", Within: 2 * time.Minute, Run: answerLostUpdate,
		Title: "a change whose answer is lost is made once, and reported"},
	{ID: "fault/04-dropped", Group: "4", Fast: true, Within: 2 * time.Minute, Run: whileMade(dropped),
		Title: "a write that never arrived is sent again"},
	{ID: "fault/04-unreachable", Group: "4", Within: 2 * time.Minute, Run: unreachable,
		Title: "while no write arrives, the operator retries with backoff; it recovers"},
	{ID: "fault/04-duplicated", Group: "4", Within: 2 * time.Minute, Run: whileMade(duplicated),
		Title: "a write that arrives twice makes one object"},
	{ID: "fault/05-conflict-children", Group: "5", Within: 2 * time.Minute, Run: conflictChildren,
		Title: "five conflicts on each child are tried again, never shown as a failure"},
	{ID: "fault/05-conflict-status", Group: "5", Fast: true, Within: 2 * time.Minute, Run: whileMade(conflictStatus),
		Title: "five conflicts on the status are tried again, never shown as a failure"},
	{ID: "fault/05-conflict-true", Group: "5", Within: 2 * time.Minute, Run: trueConflict,
		Title: "the status is reported even when another client changes the MyWeb before each status write"},
	{ID: "fault/06-429-retry-after-children", Group: "6", Within: 2 * time.Minute,
		Run:   retryAfter(429, suite.Kinds...),
		Title: "a 429 with Retry-After is waited for before the child is sent again"},
	{ID: "fault/06-503-retry-after-status", Group: "6", Within: 2 * time.Minute, Run: retryAfter(503, status),
		Title: "a 503 with Retry-After is waited for before the status is sent again"},
	{ID: "fault/07-slow-status", Group: "7", Alone: true, Run: slow(status),
		Title: "while status writes of three MyWebs take 2 s more, a fourth need not wait for all of them"},
	{ID: "fault/07-slow-writes", Group: "7", Alone: true, Within: 2 * time.Minute,
		Run:   slow(append([]string{status}, suite.Kinds...)...),
		Title: "while all writes of three MyWebs take 2 s more, a fourth need not wait for all of them"},
	{ID: "fault/13-apiserver-away-5s", Group: "13", Alone: true, Within: 3 * time.Minute,
		Run:   apiServerAway(5 * time.Second),
		Title: "a kube-apiserver that is killed and back after 5 s is found again; the children are as before"},
	{ID: "fault/13-apiserver-away-60s", Group: "13", Alone: true, Within: 5 * time.Minute,
		Run:   apiServerAway(time.Minute),
		Title: "a kube-apiserver that is killed and back after 60 s is found again; the children are as before"},
	{ID: "fault/14-etcd-hangs", Group: "14", Alone: true, Within: 2 * time.Minute, Run: etcdHangs,
		Title: "while etcd hangs for 5 s nothing is shown as failed; the write is done after it"},
	{ID: "fault/14-etcd-killed", Group: "14", Alone: true, Within: 2 * time.Minute, Run: etcdKilled,
		Title: "writes that etcd's end refuses are tried again when it is back; the children are as before"},
	{ID: "fault/15-crd-missing", Group: "15", Alone: true, Within: 2 * time.Minute, Run: crdMissing,
		Title: "without the CRD the operator ends with a message about it, or waits for it; no trace, no hot loop"},
	{ID: "fault/15-crd-removed", Group: "15", Alone: true, Within: 3 * time.Minute, Run: crdRemoved,
		Title: "a CRD that is removed under the operator and restored is served again"},
	{ID: "fault/16-leader-stopped", Group: "16", Alone: true, Within: 3 * time.Minute, Run: leaderStopped,
		Title: "a leader that was paused for longer than its lease does not write any more"},
	{ID: "fault/16-lease-stolen", Group: "16", Alone: true, Within: 2 * time.Minute, Run: leaseStolen,
		Title: "a leader that lost its lease stops writing before its lease would have expired"},
	{ID: "fault/17-all-deleted", Group: "17", Run: deleted(suite.Kinds...),
		Title: "all children, deleted at once, come back once"},
	{ID: "fault/18-configmap-edited", Group: "18", Within: 2 * time.Minute, Run: edited(suite.ConfigMaps),
		Title: "an edited page is restored in place"},
	{ID: "fault/18-deployment-edited", Group: "18", Within: 2 * time.Minute, Run: edited(suite.Deployments),
		Title: "each edited field of the Deployment is restored in place"},
	{ID: "fault/18-service-edited", Group: "18", Within: 2 * time.Minute, Run: edited(suite.Services),
		Title: "each edited field of the Service is restored in place"},
	{ID: "fault/18-service-port-added", Group: "18", Within: 2 * time.Minute, Run: portAdded,
		Title: "a second port that a user added to the Service stays, also when the first port is edited and restored"},
	{ID: "fault/19-owner-references", Group: "19", Fast: true, Run: ownersStripped,
		Title: "children that lost their owner references get them back"},
	{ID: "fault/19-labels", Group: "19", Run: labelsStripped,
		Title: "children that lost their labels get them back"},
	{ID: "fault/20-key-removed", Group: "20", Fast: true, Within: 2 * time.Minute, Run: keyRemoved,
		Title: "a page and a replica count that are taken out of the spec are gone from the children"},
	{ID: "fault/21-status-falsified", Group: "21", Fast: true, Run: statusFalsified,
		Title: "a falsified status is corrected soon, by one write and without an event"},
	{ID: "fault/21-status-fought", Group: "21", Within: 2 * time.Minute, Run: statusFought,
		Title: "a status that is falsified ten times a second for ten seconds is not corrected as fast; in the " +
			"end it is true"},
	{ID: "fault/21-second-writer", Group: "21", Within: 2 * time.Minute, Run: secondWriter,
		Title: "a client that edits the page ten times a second is not fought as fast; in the end the page is restored"},
	{ID: "fault/22-orphans", Group: "22", Fast: true, Within: 2 * time.Minute, Run: orphans,
		Title: "all three orphans of an earlier MyWeb are named, with advice; they are not touched; it recovers when a " +
			"user follows the advice: one is handed over where that is offered, the others are deleted"},
	{ID: "fault/22-orphans-unseen", Group: "22", Alone: true, Within: 2 * time.Minute, Run: orphansUnseen,
		Title: "an operator that sees the orphans, but not yet that the MyWeb is deleted, does not take them back"},
	{ID: "fault/22-held-by-finalizer", Group: "22", Within: 2 * time.Minute, Run: heldByFinalizer,
		Title: "a child that a finalizer keeps from going is reported with the finalizer's name, once; it recovers"},
	{ID: "fault/23-port-taken-and-back", Group: "23", Within: 2 * time.Minute, Run: badPort,
		Title: "a spec that cannot be served is reported with the reason, leaves the pods alone, and recovers when " +
			"it is reverted"},
	{ID: "fault/23-refused", Group: "23", Within: 2 * time.Minute, Run: refusedChild,
		Title: "a spec whose Deployment the API server refuses is reported with the reason, leaves the pods alone, and " +
			"recovers when it is reverted"},
	{ID: "fault/23-invalid", Group: "23", Run: invalid,
		Title: "a spec that the API server refuses itself changes nothing"},
	{ID: "fault/24-too-large", Group: "24", Within: 2 * time.Minute, Run: tooLarge,
		Title: "a page that is too large for its ConfigMap is reported, tried again with backoff, and recovers; another " +
			"MyWeb is served"},
	{ID: "fault/24-largest-page", Group: "24", Within: 2 * time.Minute, Run: largestPages,
		Title: "the largest page is served with a status, whatever its characters; one character more is refused with " +
			"the field's path"},
	{ID: "fault/25-older-child", Group: "25", Within: 2 * time.Minute, Run: olderChild,
		Title: "an owned Deployment with another selector is kept and reported, or recreated"},
	{ID: "fault/26-same-in-other-words", Group: "26", Fast: true, Run: otherWords,
		Title: "defaults of the API server and equal values in another spelling cost no write"},
	{ID: "fault/28-namespace-deleted", Group: "28", Alone: true, Within: 2 * time.Minute, Run: namespaceDeleted,
		Title: "when the namespace is deleted under a MyWeb that is being made, the operator stops trying"},
	{ID: "fault/29-dependency-down", Group: "29",
		Title:         "something outside the cluster that fails is reported, and harms no others",
		NotApplicable: "a MyWeb depends on nothing outside the cluster"},
	{ID: "fault/30-clock", Group: "30", Title: "no run is missed or made twice when clocks move",
		NotApplicable: "a MyWeb has no schedule"},
	{ID: "fault/31-permission-revoked", Group: "31", Alone: true, Within: 3 * time.Minute, Run: permissionRevoked,
		Title: "a permission that is taken away is reported, tried again with backoff, and its return noticed"},
	{ID: "fault/31-logged-once", Group: "31", Within: 2 * time.Minute, Run: loggedOnce,
		Title: "a permission that is missing for 20 s is logged once for each distinct message"},
	{ID: "fault/32-quota", Group: "32", Within: 2 * time.Minute, Run: quota,
		Title: "a quota that leaves no Service is reported, tried again with backoff, and recovers"},
	{ID: "fault/32-admission", Group: "32", Within: 2 * time.Minute, Run: admission,
		Title: "an admission policy that denies the ConfigMap is reported, tried again with backoff, and recovers"},
	{ID: "fault/32-pods-limit-range", Group: "32", Within: 2 * time.Minute, Run: podsRefused(limitRange),
		Title: "pods that a LimitRange refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-pods-security", Group: "32", Within: 2 * time.Minute, Run: podsRefused(podSecurity),
		Title: "pods that Pod Security refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-pods-admission", Group: "32", Within: 2 * time.Minute, Run: podsRefused(podPolicy),
		Title: "pods that an admission policy refuses are reported within seconds, with its message; it recovers"},
	{ID: "fault/32-replicaset", Group: "32", Within: 2 * time.Minute, Run: podsRefused(replicaSetPolicy),
		Title: "a ReplicaSet that an admission policy refuses is reported within seconds, with its message; it recovers"},
	{ID: "fault/33-panic", Group: "33", Title: "a panic over one MyWeb leaves the others alone",
		NotApplicable: "nothing from outside makes an operator panic: see the list of mutants", Run: poisoned},
	{ID: "fault/34-page-edited", Group: "34", Within: 2 * time.Minute, Run: pageMutated,
		Title: "a MyWeb whose new page a policy replaces is not completed for its new generation"},
	{ID: "fault/35-sidecar-disliked", Group: "35", Within: 2 * time.Minute, Run: sidecarDisliked,
		Title: "a policy that refuses an injected sidecar is reported; the sidecar stays; it recovers"},
	{ID: "fault/36-long-message", Group: "36", Within: 2 * time.Minute, Run: longMessage,
		Title: "a message of more than 1,024 bytes reaches the event, shortened"},
	{ID: "fault/37-no-spec", Group: "37", Fast: true, Run: noSpec,
		Title: "a MyWeb without spec is refused with the schema's message, whatever webhooks there are"},
	{ID: "fault/37-wrong-types", Group: "37", Fast: true, Run: wrongTypes,
		Title: "values of a wrong type are refused with the path of the field, whatever webhooks there are"},
}
