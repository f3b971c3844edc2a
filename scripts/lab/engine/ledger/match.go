package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/wire"
)

// A Match selects requests. An unset field selects all requests; a request must fit each field that is set.
type Match struct {
	// Users are names of clients.
	Users []string
	// Verbs of the API; wire.Writes are those that change objects.
	Verbs []string
	// Resources are patterns resource[.group][/subresource], each part of which may be "*": "configmaps",
	// "deployments.apps", "deployments.apps/status", "*.*" (every resource, no subresource), "*.*/*" (every
	// subresource). A pattern without a slash excludes subresources; a pattern without a point means the core group.
	// No pattern selects all requests, also those for no resource.
	Resources []string
	// Except are excluded resources, in the same form.
	Except []string
	// Namespace and Name of the object.
	Namespace, Name string
	// After excludes the entries up to this ID; see Ledger.Mark.
	After int
	// Since excludes requests that came earlier.
	Since time.Time
	// Where is a condition that the other fields cannot express.
	Where func(Entry) bool
}

// Housekeeping are the resources that do not show an operator's changes: leases and events.
var Housekeeping = []string{"leases.coordination.k8s.io", "events", "events.events.k8s.io"}

// Changes are the writes that changed an object, without leases and events.
var Changes = Match{Verbs: wire.Writes, Except: Housekeeping, Where: Entry.Committed}

// Matches reports whether the match selects an entry.
func (m Match) Matches(e Entry) bool {
	resource := func(pattern string) bool { return fits(pattern, e.Request) }
	switch {
	case e.ID <= m.After && m.After > 0,
		len(m.Users) > 0 && !slices.Contains(m.Users, e.User),
		len(m.Verbs) > 0 && !slices.Contains(m.Verbs, e.Verb),
		len(m.Resources) > 0 && !slices.ContainsFunc(m.Resources, resource),
		slices.ContainsFunc(m.Except, resource),
		m.Namespace != "" && m.Namespace != e.Namespace,
		m.Name != "" && m.Name != e.Name,
		!m.Since.IsZero() && e.Start.Before(m.Since):
		return false
	}
	return m.Where == nil || m.Where(e)
}

// Check returns an error when the match is written so that it can select no request.
func (m Match) Check() error {
	for _, pattern := range slices.Concat(m.Resources, m.Except) {
		resource, _, hasSub := strings.Cut(pattern, "/")
		if resource == "" || strings.HasPrefix(resource, ".") || hasSub && strings.HasSuffix(pattern, "/") {
			return fmt.Errorf("%q is not of the form resource[.group][/subresource]", pattern)
		}
	}
	verbs := append([]string{wire.Get, wire.List, wire.Watch, "post", "put", "head"}, wire.Writes...)
	for _, verb := range m.Verbs {
		if !slices.Contains(verbs, verb) {
			return fmt.Errorf("%q is not a verb: there are %s", verb, strings.Join(verbs, ", "))
		}
	}
	return nil
}

// fits reports whether a pattern selects a request.
func fits(pattern string, r wire.Request) bool {
	if r.Resource == "" {
		return false
	}
	what, subresource, _ := strings.Cut(pattern, "/")
	resource, group, _ := strings.Cut(what, ".")
	fit := func(part, value string) bool { return part == "*" || part == value }
	if subresource == "*" && r.Subresource == "" || subresource != "*" && subresource != r.Subresource {
		return false
	}
	return fit(resource, r.Resource) && fit(group, r.Group)
}
