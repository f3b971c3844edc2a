package examine

import (
	"regexp"
	"strings"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// A Severity is the cost of a failure.
type Severity = outcome.Severity

// Severities, the worst first.
const (
	Stops  Severity = "loses data or stops"
	Costs  Severity = "costs the cluster"
	Little Severity = "costs little"
	Choice Severity = "a choice to make"
)

// severities are in the order of a report.
var severities = []Severity{Stops, Costs, Little, Choice}

// A pattern is the likely cause of a failure of an experiment, or of any experiment if none is named. The first pattern
// that fits counts; the last pattern of each experiment fits all its failures.
type pattern struct {
	experiment string
	// says is a text in the title, the observation or the evidence; empty fits all failures of the experiment.
	says          string
	severity      Severity
	cause, others string
}

var patterns = []pattern{
	{"", givenStays, Stops, "it deletes or adopts an object that has the name of a child",
		"Other operators set owner references on objects that they create, and delete only objects that they own."},
	{"creation", "the sample gets ready", Stops, "it does not reach the state that it reached before",
		"Other operators report the reason in a condition, and return the error, so that the work queue tries again."},
	{"creation", "changed nothing", Costs, "it writes without comparing with the existing object",
		"Other operators compare desired with observed state before they write, or apply only what differs."},
	{"creation", "409", Little, "it writes from a cache that has not seen its own last write",
		"Other operators return the error and try again, or patch only the fields that they own."},
	{"creation", "create what exists", Little, "it creates without reading its cache, or does not watch the kind",
		"Other operators read from the cache first, and treat AlreadyExists as success."},
	{"creation", "reads went", Little, "its client reads past the cache: a kind without an informer, or an APIReader",
		"Other operators read through informers, which cost one list and one watch for a kind."},
	{"creation", "", Stops, "a creation does not end as an earlier one",
		"Other operators observe the cluster in each reconcile."},
	{"steady-state", "without a watch", Costs, "it reads objects at intervals, and does not watch them",
		"Other operators watch their custom resource (For) and what they create (Owns), and read from the cache."},
	{"steady-state", "", Costs, "it reads or writes at an interval, even when nothing changes",
		"Other operators react to watches, and requeue only with a reason and a long period."},
	{"restart", "", Costs, "it writes each object at each upgrade, without comparing with the existing object",
		"Other operators compare before they write."},
	{"deletion", "stays without its sample", Stops, "it creates children of a sample that is gone",
		"Other operators return from Reconcile when metadata.deletionTimestamp is set, and set owner references."},
	{"deletion", "deletion timestamp", Costs, "it does not look at metadata.deletionTimestamp",
		"Other operators return from Reconcile when it is set, and leave children to the garbage collector."},
	{"deletion", "held by the finalizers", Stops, "it adds a finalizer that it does not remove",
		"Other operators remove it when the work for it is done, and test the deletion of an object whose creation failed."},
	{"deletion", "had the namespace of the first", Stops, "the name of the object does not have the namespace of the sample",
		"Other operators put the namespace and the name of the sample into the name of a cluster-scoped object."},
	{"deletion", "has the namespace of the sample", Costs, "an owner reference cannot lead to another namespace",
		"Other operators set a finalizer on the sample, and delete such objects before they remove it."},
	{"deletion", "created again under the same name", Stops, "a change for the earlier sample stays, often in an object that the " +
		"sample was given", "Other operators undo such a change before they remove their finalizer."},
	{"deletion", "it took back", Stops, "it sets an owner reference by its cache, which may not have seen the deletion yet",
		"Other operators read the owner from the API server before they adopt an object."},
	{"deletion", "", Stops, "a child has no owner reference, and nothing deletes it",
		"Other operators set a controller reference, or a finalizer for objects outside the namespace."},
	{"drift", "no longer sees", Stops, "its cache selects objects by this label",
		"Other operators select by a label that the operator restores, or accept that it loses such an object."},
	{"drift", "it was back", Stops, "it creates the object from what it finds in the cluster, not from the sample alone",
		"Other operators compute each object from the sample, with defaults that do not depend on what exists."},
	{"drift", "the operator does not watch", Stops, "it does not watch this kind",
		"Other operators watch what they create (Owns)."},
	{"drift", "the operator watches", Stops, "it watches this kind, and does not react to the deletion",
		"Other operators reconcile the owner of a deleted object (Owns), and create what is missing."},
	{"drift", "is gone from", Costs, "it replaces the whole object: additions by others are lost",
		"Other operators apply or patch the fields that they set."},
	{"drift", "causes no write", Little, "it writes at each event, even when nothing differs",
		"Other operators compare the fields that they set."},
	{"drift", "status stayed", Little, "it does not react to a change of the status alone (GenerationChangedPredicate)",
		"Other operators compare the status in each reconcile, and reconcile at each event about the sample."},
	{"drift", "is still false", Stops, "it gives up, or remembers the status that it wrote and does not observe it",
		"Other operators compare the status in each reconcile, and requeue a correction that they postpone."},
	{"drift", "falsified", Costs, "it corrects the status as often as another client falsifies it",
		"Other operators limit how often they correct the status of one object, and correct it later."},
	{"drift", "and reports no other client", Choice, "it corrects a field, and does not observe that another client sets it again",
		"Other operators report the other client and the field, or leave the replicas unset where the sample does not name them."},
	{"drift", "an autoscaler", Choice, "it restores the replicas as often as an autoscaler changes them",
		"Other operators leave the replicas unset where the sample does not name them, or restore them ever more rarely."},
	{"drift", "stayed changed", Choice,
		"it compares a hash of its input, or only some fields: changes of other fields stay",
		"Other operators apply all fields that they set, at each event about a child."},
	{"drift", "", Stops, "after a change by another client it does not reach its own state again",
		"Other operators compare all fields that they set with the observed object, at each event about a child."},
	{"replicas", "and goes on", Stops, "it works on when it has lost its lease",
		"Other operators end when they lose it."},
	{"replicas", "directly after its pause", Little, "leader election alone does not stop a request of a leader that was paused",
		"Other operators send the resource version that they have read, or look before a write whether the lease is valid."},
	{"replicas", "both", Stops, "two processes work at once during an upgrade",
		"Other operators elect a leader by a lease."},
	{"replicas", "", Stops, "no replica takes over",
		"Other operators elect a leader by a lease, and end when they lose it."},
	{"ownership", "the operator deleted it", Stops, "it deletes by name, and not by owner",
		"Other operators delete only objects of which the sample is the controller."},
	{"ownership", "the operator changed it", Stops, "it adopts or overwrites an object that it did not create",
		"Other operators read the object first, and neither change nor adopt it without the consent of its user."},
	{"ownership", "hot loop", Costs, "a refused write is repeated at once",
		"Other operators return the error: the work queue waits longer after each failure."},
	{"ownership", "neither the status nor an event", Little, "the conflict is only in the log",
		"Other operators set a condition that names the object, and its owner."},
	{"ownership", "", Stops, "it gives up after the first conflict",
		"Other operators return the error, and try again with exponential backoff."},
	{"faults", "hot loop", Costs, "a failed write is repeated at once",
		"Other operators return the error: the work queue waits longer after each failure."},
	{"faults", "it printed a message", Costs, "it logs while it waits, or at each event, not only when it tries",
		"Other operators return the error: the work queue logs each try, and waits longer after each failure."},
	{"faults", "it logged the same line", Choice, "it logs each try",
		"Most operators do so. Others log an error again only when its message changes, and count the tries in a metric."},
	{"faults", "did not progress", Costs, "one object that fails holds up the others",
		"Other operators have several workers."},
	{"faults", "after that, ", Stops, "it does not watch again after the end of a watch",
		"Other operators use informers, or begin each watch again from its last resource version."},
	{"faults", "the cluster then deleted", Stops, "it gives an object to the sample that it has read, which no longer exists",
		"Other operators compare the UID of the owner, and read the owner from the API server before they adopt an object."},
	{"faults", "of an earlier time", Stops, "it deletes by name, without the UID of the object that it has read",
		"Other operators give the UID as a precondition of a deletion, or leave deletion to the garbage collector."},
	{"faults", "a second time", Stops, "a create with a generated name is not observed after a restart",
		"Other operators derive names from the owner."},
	{"faults", "", Stops, "an error is dropped, or progress is remembered and not observed",
		"Other operators return the error, and observe the cluster in each reconcile."},
	{"admission", "the operator removed", Costs, "it replaces the whole object: additions by others are lost",
		"Other operators apply or patch the fields that they set."},
	{"admission", "hot loop", Costs, "a refused write is repeated at once",
		"Other operators return the error: the work queue waits longer after each failure."},
	{"admission", "at length", Little, "its event is longer than the API server accepts (1024 bytes)",
		"Other operators shorten the message of an event, or report it in the status."},
	{"admission", "neither the status nor an event", Little, "a refusal is only in the log",
		"Other operators set a condition with the message of the API server."},
	{"admission", "meanwhile it did not make", Choice, "the first error ends the reconcile",
		"Some operators make the independent children, and join the errors; others keep an order on purpose."},
	{"admission", "", Stops, "it gives up, or relies on outdated memory",
		"Other operators try again with exponential backoff."},
	{"older", "hot loop", Costs, "a refused write is repeated at once",
		"Other operators return the error: the work queue waits longer after each failure."},
	{"older", "neither the status nor an event", Little, "a refusal is only in the log, or it does not compare the field",
		"Other operators delete and create the child, or set a condition with the message of the API server."},
	{"older", "meanwhile it did not make", Choice, "the first error ends the reconcile",
		"Some operators make the independent children, and join the errors; others keep an order on purpose."},
	{"older", "", Stops, "it does not reach its own state from the objects of an older version",
		"Other operators delete and create a child that they cannot change."},
	{"spec", "left behind", Costs, "children of an earlier spec stay",
		"Other operators list their objects by label or owner, and delete those that the spec no longer wants."},
	{"spec", "accepted, and neither", Choice, "the field is used only at the creation, or not at all",
		"Other operators refuse the change in the schema (x-kubernetes-validations: self == oldSelf), or follow it."},
	{"spec", "only annotations differ", Little, "an annotation depends on the generation, or on earlier specs",
		"Other operators hash the part of the spec that the object depends on."},
	{"spec", "", Stops, "undoing the change does not restore the first state",
		"Other operators derive each object from the current spec alone, and remove what an earlier spec set."},
	{"values", "did not stay alive", Stops, "a value that its schema allows ends the program",
		"Other operators refuse such a value in the schema, and recover from a panic in a reconcile."},
	{"values", "hot loop", Costs, "a refused write is repeated at once",
		"Other operators return the error: the work queue waits longer after each failure."},
	{"values", "did not progress", Costs, "one object that fails holds up the others",
		"Other operators have several workers."},
	{"values", "neither the status nor an event", Little, "a refusal is only in the log",
		"Other operators set a condition with the message of the API server, or refuse the value in the schema."},
	{"values", "", Stops, "after such a value it does not reach its own state again",
		"Other operators derive each object from the current spec alone."},
	{"crash", "created twice", Stops, "a create with a generated name is not observed after a restart",
		"Other operators derive names from the owner."},
	{"crash", "", Stops, "progress is remembered and not observed",
		"Other operators observe the cluster in each reconcile."},
	{"upgrade", "restarts all pods", Choice, "the new version wants another pod template, and applies it at its start",
		"Other operators keep the template of existing objects until the user changes something, or announce the rollout."},
	{"upgrade", "", Stops, "the new version does not bring the objects of the old one to its own state",
		"Other operators test the upgrade over objects of the last release."},
	{"many", "costs more", Costs, "the work for one object touches objects of the others",
		"Other operators find the objects of an event by an index or an owner reference."},
	{"many", "", Stops, "the work queue does not keep up: one worker, a slow reconcile, or a client-side rate limit",
		"Other operators have several workers, and raise the rate limit of the client."},
	{"permissions", "were refused", Stops, "a marker or a rule of the role is missing",
		"Other operators generate the role from markers, and run their tests with that role."},
	{"permissions", "*", Costs, "a rule allows more than it names", "Other operators name each verb and resource."},
	{"permissions", "", Little, "the role has more than the program needs",
		"Other operators generate the role from markers beside the code that needs it."},
}

// explained adds the severity and the cause of the pattern that fits a failure.
func (f Finding) explained() Finding {
	if f.Verdict == Late {
		f.Severity, f.Cause = Little, "it notices the change only at its next resync"
		f.Others = "Other operators watch what they create (Owns); a long resync is only a safety net."
	}
	if f.Verdict != Failed {
		return f
	}
	all := f.Title + "\n" + f.What + "\n" + strings.Join(f.Evidence, "\n")
	for _, p := range patterns {
		if (p.experiment == f.Experiment || p.experiment == "") && strings.Contains(all, p.says) {
			f.Severity, f.Cause, f.Others = p.severity, p.cause, p.others
			return f
		}
	}
	return f
}

var notOfID = regexp.MustCompile(`[^a-z0-9.]+`)

// idOf is the name of a finding that a baseline lists.
func idOf(experiment, title string) string {
	return experiment + "/" + strings.Trim(notOfID.ReplaceAllString(strings.ToLower(title), "-"), "-")
}
