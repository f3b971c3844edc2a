package ledger

import (
	"slices"

	"example.com/operator-workshop/scripts/examine/wire"
)

// A Match selects requests. An unset field selects all requests; a request must fit each field that is set.
type Match struct {
	// Users are names of clients.
	Users []string
	// Verbs of the API; wire.Writes are those that change objects.
	Verbs []string
	// Resources are names as Request.FullResource has them: "configmaps", "deployments.apps", "deployments.apps/status".
	// Without a name, Match selects all requests, also those for no resource.
	Resources []string
	// Except are excluded resources, in the same form.
	Except []string
	// Namespace and Name of the object.
	Namespace, Name string
	// After excludes the entries up to this ID; see Ledger.Mark.
	After int
	// Where is a condition that the other fields cannot express.
	Where func(Entry) bool
}

// Housekeeping are the resources that do not show an operator's changes: leases and events.
var Housekeeping = []string{"leases.coordination.k8s.io", "events", "events.events.k8s.io"}

// Changes are the writes that changed an object, without leases and events.
var Changes = Match{Verbs: wire.Writes, Except: Housekeeping, Where: Entry.Committed}

// Matches reports whether the match selects an entry.
func (m Match) Matches(e Entry) bool {
	resource := e.FullResource()
	switch {
	case e.ID <= m.After && m.After > 0,
		len(m.Users) > 0 && !slices.Contains(m.Users, e.User),
		len(m.Verbs) > 0 && !slices.Contains(m.Verbs, e.Verb),
		len(m.Resources) > 0 && !slices.Contains(m.Resources, resource),
		slices.Contains(m.Except, resource),
		m.Namespace != "" && m.Namespace != e.Namespace,
		m.Name != "" && m.Name != e.Name:
		return false
	}
	return m.Where == nil || m.Where(e)
}
