package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/wire"
)

// A Match says which requests are meant. A field that is not set means all; a request must fit each one
// that is.
type Match struct {
	// Users are names of clients.
	Users []string
	// Verbs of the API; wire.Writes are those that change something.
	Verbs []string
	// Resources are patterns resource[.group][/subresource], each part of which may be "*":
	// "configmaps", "deployments.apps", "deployments.apps/status", "*.*" (every resource,
	// no subresource), "*.*/*" (every subresource). A pattern without a slash leaves subresources out,
	// one without a point means the core group. None means all, requests for no resource as well.
	Resources []string
	// Except are resources that are not meant, in the same form.
	Except []string
	// Namespace and Name of the object.
	Namespace, Name string
	// After leaves out the entries up to this ID; see Ledger.Mark.
	After int
	// Since and Until bound the start of the request.
	Since, Until time.Time
	// Where decides about what the other fields cannot say.
	Where func(Entry) bool
}

// Housekeeping are the resources that tell nothing about what an operator changes: leases and events.
var Housekeeping = []string{"leases.coordination.k8s.io", "events", "events.events.k8s.io"}

// Changes are the writes that changed something, leases and events apart.
var Changes = Match{Verbs: wire.Writes, Except: Housekeeping, Where: Entry.Committed}

// Matches reports whether an entry is meant.
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
		!m.Since.IsZero() && e.Start.Before(m.Since),
		!m.Until.IsZero() && !e.Start.Before(m.Until):
		return false
	}
	return m.Where == nil || m.Where(e)
}

// Check returns an error when the match can fit nothing because of how it is written.
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
			return fmt.Errorf("%q is no verb: there are %s", verb, strings.Join(verbs, ", "))
		}
	}
	return nil
}

// fits reports whether a pattern means a request.
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
