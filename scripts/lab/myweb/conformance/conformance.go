// Package conformance has the 14 behaviours that every MyWeb operator must show, as checks from outside.
package conformance

import (
	"slices"
	"strconv"
	"time"

	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// Behaviours are the titles of the groups of checks, in the order of the list.
var Behaviours = []string{
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

// Checks returns all checks, in the order of the behaviours.
func Checks() []suite.Check {
	all := slices.Concat(checks, driftCorrection(), conflicts(), refusals())
	slices.SortStableFunc(all, func(a, b suite.Check) int { return behaviour(a) - behaviour(b) })
	return all
}

// behaviour is the number of a check's behaviour.
func behaviour(c suite.Check) int {
	n, _ := strconv.Atoi(c.Group)
	return n
}

// checks are the individual checks. The other checks are variations of one experiment.
var checks = []suite.Check{
	{ID: "behaviour/01-children-appear", Group: "1", Fast: true, Run: childrenAppear,
		Title: "ConfigMap, Deployment and NodePort Service appear, controlled by the MyWeb"},
	{ID: "behaviour/01-pods-apart", Group: "1", Fast: true, Run: podsApart,
		Title: "two MyWebs never share a pod: each selector finds a MyWeb's own"},
	{ID: "behaviour/01-status", Group: "1", Fast: true, Run: statusReported,
		Title: "status reports conditions, ready pods and node port of the current generation"},
	{ID: "behaviour/01-page-as-it-is", Group: "1", Run: pageAsItIs,
		Title: "the page is stored as it is: Unicode, quotes, template marks, empty"},
	{ID: "behaviour/02-page-rolls", Group: "2", Fast: true, Run: pageRolls,
		Title: "a changed page changes ConfigMap and pod template, and all pods are new when it is completed"},
	{ID: "behaviour/02-page-hash", Group: "2", Run: pageHash,
		Title: "the pod template follows the page alone: the same page gives the same template"},
	{ID: "behaviour/03-image", Group: "3", Fast: true, Run: imageChanged,
		Title: "a changed image changes the Deployment in place by one write, and nothing else"},
	{ID: "behaviour/03-port", Group: "3", Run: portIsChanged,
		Title: "a changed port changes the Service in place by one write, and no pod"},
	{ID: "behaviour/03-replicas", Group: "3", Run: replicasChanged,
		Title: "a changed replica count scales in place by one write; pods that stay are the same"},
	{ID: "behaviour/03-scale", Group: "3", Fast: true, Needs: status, Run: scaled,
		Title: "the scale subresource scales, down to zero, and reports replicas and selector"},
	{ID: "behaviour/04-port-removed", Group: "4", Fast: true, Run: portIsRemoved,
		Title: "a removed nodePortNumber keeps the port, also through later changes"},
	{ID: "behaviour/04-port-allocated", Group: "4", Run: portAllocated,
		Title: "without nodePortNumber the cluster allocates a port, which changes keep"},
	{ID: "behaviour/05-allocated-port", Group: "5", Run: allocatedPort,
		Title: "a deleted Service comes back on the node port that the cluster had allocated"},
	{ID: "behaviour/05-edited-page-hash", Group: "5", Run: editedHash,
		Title: "an edited hash of the page in the pod template is restored by one write"},
	{ID: "behaviour/05-others-stay", Group: "5", Fast: true, Run: othersStay,
		Title: "labels, annotations and a sidecar of others stay, in steady state and through updates"},
	{ID: "behaviour/06-controlled-by-another", Group: "6", Needs: status,
		Run: func(t *suite.T) { conflicted(t, suite.ConfigMaps, true) },
		Title: "a ConfigMap that another MyWeb controls is not touched; one warning reports it; the MyWeb is served when " +
			"it is gone"},
	{ID: "behaviour/07-port-taken", Group: "7", Needs: status, Fast: true, Within: 90 * time.Second, Run: portIsTaken,
		Title: "a node port that is taken is reported, retried with backoff, and assigned when it is free"},
	{ID: "behaviour/07-port-of-another-myweb", Group: "7", Needs: status, Alone: true, Run: portOfAnother,
		Title: "of two MyWebs with one node port the first is served; the second recovers with another port"},
	{ID: "behaviour/07-ports-swapped", Group: "7", Needs: status, Alone: true, Within: 2 * time.Minute, Run: portsSwapped,
		Title: "two MyWebs that swap their node ports both report who holds theirs; a third port resolves it"},
	{ID: "behaviour/08-rollout-stuck", Group: "8", Needs: status, Fast: true, Within: 90 * time.Second, Run: rolloutStuck,
		Title: "a rollout that exceeds its deadline is reported; the old pod stays Available; it recovers"},
	{ID: "behaviour/08-pods-refused", Group: "8", Needs: status, Fast: true, Within: 90 * time.Second, Run: podsRefused,
		Title: "pods that a quota refuses are reported within seconds, with the quota's message; it recovers"},
	{ID: "behaviour/08-paused", Group: "8", Needs: status, Fast: true, Within: 90 * time.Second, Run: paused,
		Title: "a rollout that waits because the Deployment is paused is reported; a pause alone is not; it recovers"},
	{ID: "behaviour/08-old-pods-gone", Group: "8", Needs: status, Alone: true, Run: oldPodsGone,
		Title: "while a rollout fails, Available is True with the old pod, and False without it"},
	{ID: "behaviour/09-leaves-nothing", Group: "9", Fast: true, Run: leavesNothing,
		Title: "a MyWeb has no finalizer, and deleting it leaves no child and no pod"},
	{ID: "behaviour/09-no-create", Group: "9", Fast: true, Run: noCreate,
		Title: "nothing is created for a MyWeb that is being deleted, in the background, in the foreground or as orphans"},
	{ID: "behaviour/09-recreated", Group: "9", Fast: true, Run: recreated,
		Title: "a MyWeb that is recreated at once is served by new children"},
	{ID: "behaviour/09-leftovers", Group: "9", Alone: true, Run: leftovers,
		Title: "children that the garbage collector has yet to delete are neither adopted nor reported as served"},
	{ID: "behaviour/10-steady-state", Group: "10", Fast: true, Run: nothingInSteadyState,
		Title: "in steady state nothing is written, also when something else changes"},
	{ID: "behaviour/10-restarted", Group: "10", Fast: true, Alone: true, Run: nothingAfterRestart,
		Title: "a restarted operator writes nothing when all is as it should be"},
	{ID: "behaviour/10-cost-of-one", Group: "10", Fast: true, Within: 2 * time.Minute,
		Run:   func(t *suite.T) { costs(t, 1) },
		Title: "a MyWeb costs 3 writes of children, 2 of status at most, and no read"},
	{ID: "behaviour/10-cost-of-three-pods", Group: "10", Within: 2 * time.Minute, Run: func(t *suite.T) { costs(t, 3) },
		Title: "a MyWeb with 3 pods costs no more than one with 1"},
	{ID: "behaviour/11-completed-once", Group: "11", Fast: true, Run: completedOnce,
		Title: "one event reports that a MyWeb is served; a further reconcile, or a restored page, causes no event"},
	{ID: "behaviour/11-annotated", Group: "11", Fast: true, Alone: true, Run: annotated,
		Title: "a user annotates the Deployment: the pods serve as before, and nothing else is reported"},
	{ID: "behaviour/11-warned-once", Group: "11", Needs: status, Run: warnedOnce,
		Title: "a lasting conflict causes one warning, not one at every try"},
	{ID: "behaviour/11-restarted", Group: "11", Needs: status, Alone: true, Run: noNewsAfterRestart,
		Title: "a restarted operator records nothing about what it reported before"},
	{ID: "behaviour/12-refused", Group: "12", Fast: true, Run: badSpecs,
		Title: "bad specs are refused with the path of the field and the allowed values"},
	{ID: "behaviour/12-refused-update", Group: "12", Run: badUpdates,
		Title: "a good MyWeb cannot be changed into a bad one, and goes on"},
	{ID: "behaviour/12-accepted", Group: "12", Run: goodSpecs,
		Title: "the sample of the tutorials is accepted as it is, and so are the limits"},
	{ID: "behaviour/13-killed-after-child", Group: "13", Fast: true, Alone: true, Run: killedAfter(2, childWrites),
		Title: "an operator that is killed after the second child was made goes on where it was"},
	{ID: "behaviour/13-killed-after-status", Group: "13", Needs: status, Alone: true, Run: killedAfter(1, statusWrites),
		Title: "an operator that is killed after it wrote status reports the rest later"},
	{ID: "behaviour/13-killed-in-update", Group: "13", Alone: true, Run: killedInUpdate,
		Title: "an operator that is killed in the middle of an update finishes it"},
	{ID: "behaviour/13-conflict", Group: "13", Fast: true, Run: conflict,
		Title: "a conflict (409) is tried again, and is not an error"},
	{ID: "behaviour/13-backoff", Group: "13", Run: backoff,
		Title: "a server that fails for a while is asked with backoff, and is not an error of the MyWeb"},
	{ID: "behaviour/14-one-writes", Group: "14", Needs: []suite.Need{suite.LeaderElection}, Fast: true, Alone: true,
		Within: 90 * time.Second, Run: oneWrites,
		Title: "of two replicas one writes, the other sends nothing"},
	{ID: "behaviour/14-leader-stops", Group: "14", Needs: []suite.Need{suite.LeaderElection}, Alone: true,
		Within: 90 * time.Second, Run: leaderStops,
		Title: "when the leader is asked to stop, the other takes over at once, and they never both write"},
	{ID: "behaviour/14-leader-dies", Group: "14", Needs: []suite.Need{suite.LeaderElection}, Alone: true,
		Within: 2 * time.Minute, Run: leaderDies,
		Title: "when the leader is killed, the other takes over when the lease expires"},
}
