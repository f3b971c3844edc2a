package examine

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// A permission is a verb on a resource that a rule of a role grants, or that a request needs.
type permission fixture.Permission

func (p permission) writes() bool {
	return slices.Contains([]string{wire.Create, wire.Update, wire.Patch, wire.Delete, wire.DeleteCollection}, p.Verb)
}

func (p permission) String() string {
	resource, subresource, _ := strings.Cut(p.Resource, "/")
	if p.Group != "" {
		resource += "." + p.Group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return p.Verb + " " + resource
}

// permissions compares the granted permissions with those that the requests of all experiments used.
func permissions(r *run) error {
	if err := r.createMore(); err != nil {
		return err
	}
	used, denied, err := r.uses()
	if err != nil {
		return err
	}
	if r.second != nil {
		used, denied = union(used, r.second.used), union(denied, r.second.denied)
	}
	granted, everywhere, err := r.target.granted()
	if err != nil {
		return err
	}
	if denied = missing(denied, slices.Concat(everywhere, used)); len(denied) > 0 {
		f := failed("%d kinds of requests were refused with 403", len(denied)).with(texts(denied)...)
		f.File, f.Line = r.target.placeOfRule(denied[0])
		r.add("what it asks for is granted", f)
	} else {
		r.add("what it asks for is granted", passed("no request was refused because of a missing permission, leases in "+
			"other namespaces apart"))
	}
	if len(r.target.Role) == 0 && r.target.workload == nil {
		r.add("each granted permission is used",
			skipped("no ROLE= was given; it used %d permissions, which are all that its role needs "+
				"as far as these experiments saw", len(used)).with(texts(used)...))
		return nil
	}
	idle, notReached := byReach(unused(granted, used), used)
	switch {
	case len(idle) > 0:
		f := failed("%d of %d permissions were never used, though these experiments reach their resources; a wildcard is never "+
			"used as a whole", len(idle), len(granted)).with(texts(idle)...)
		f.File, f.Line = r.target.placeOfRule(idle[0])
		r.add("each granted permission is used", f)
	case len(notReached) == 0:
		r.add("each granted permission is used", passed("all %d permissions were used", len(granted)))
	}
	if len(notReached) > 0 {
		r.add("further permissions", skipped("%d of %d permissions were not reached by these samples: SAMPLES= adds some",
			len(notReached), len(granted)).with(texts(notReached)...))
	}
	return nil
}

// uses are the permissions that the requests of the operator needed so far, and those that were missing.
func (r *run) uses() (used, denied []permission, err error) {
	entries := r.fixture.Ledger.Entries(ledger.Match{Where: func(e ledger.Entry) bool {
		// The lab grants a Role in the operator's own namespace alone; an operator may keep its lease elsewhere.
		elsewhere := e.Resource == "leases" && e.Namespace != r.target.home() && e.Code == http.StatusForbidden
		return strings.HasPrefix(e.User, r.operator.user.Name) && e.Resource != "" && !elsewhere
	}})
	refused, err := r.refused()
	if err != nil {
		return nil, nil, err
	}
	used, denied = uses(entries, refused)
	return used, denied, nil
}

// union has the permissions of two lists, each of them once.
func union(a, b []permission) []permission {
	return append(slices.Clone(a), slices.DeleteFunc(slices.Clone(b), func(p permission) bool { return slices.Contains(a, p) })...)
}

// createMore creates the further samples, so that the operator uses the permissions that it needs for them.
func (r *run) createMore() error {
	for _, u := range r.target.more {
		_, err := r.try(func(t *trial) (Finding, error) {
			if err := t.put(u); err != nil {
				return Finding{}, fmt.Errorf("SAMPLES=: create %s %s: %w", u.GetKind(), u.GetName(), err)
			}
			if err := t.quiet(2 * time.Second); err != nil && !errors.Is(err, errRestless) {
				return Finding{}, err
			}
			return Finding{}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// byReach splits unused permissions. reached are wildcards, and permissions on resources that a request used;
// notReached are those on resources that the samples do not need. An operator may list objects that other samples need,
// so a read does not reach the verbs that write.
func byReach(idle, used []permission) (reached, notReached []permission) {
	for _, p := range idle {
		wild := p.Verb == "*" || p.Group == "*" || p.Resource == "*"
		same := func(u permission) bool {
			return u.Group == p.Group && u.Resource == p.Resource && (!p.writes() || u.writes())
		}
		if wild || slices.ContainsFunc(used, same) {
			reached = append(reached, p)
		} else {
			notReached = append(notReached, p)
		}
	}
	return reached, notReached
}

// granted are the permissions of the roles, and those of them that apply in all namespaces. Without a role the
// operator may do everything.
func (t *target) granted() (all, everywhere []permission, err error) {
	if len(t.Role) == 0 && t.workload == nil {
		return nil, []permission{{"*", "*", "*"}}, nil
	}
	for _, file := range t.Role {
		roles, err := fixture.Roles(file)
		if err != nil {
			return nil, nil, err
		}
		for _, role := range roles {
			for _, p := range fixture.Permissions(role.Rules) {
				all = append(all, permission(p))
				if role.Kind == "ClusterRole" {
					everywhere = append(everywhere, permission(p))
				}
			}
		}
	}
	grants, err := t.workload.grants()
	for _, g := range grants {
		for _, p := range fixture.Permissions(g.rules) {
			all = append(all, permission(p))
			if g.namespace == "" {
				everywhere = append(everywhere, permission(p))
			}
		}
	}
	return all, everywhere, err
}

func texts(permissions []permission) (all []string) {
	for _, p := range permissions {
		all = append(all, p.String())
	}
	slices.Sort(all)
	return all
}

// refused are the audit IDs of requests for which a user had no permission. An answer of 403 alone does not prove
// this, because a namespace that is being deleted also answers 403.
func (r *run) refused() (map[string]bool, error) {
	events, _, err := r.fixture.Audit(0)
	ids := map[string]bool{}
	for _, e := range events {
		if e.Denied() {
			ids[e.AuditID] = true
		}
	}
	return ids, err
}

// uses are the permissions that requests needed, and those that were missing.
func uses(entries []ledger.Entry, refused map[string]bool) (used, denied []permission) {
	add := func(list *[]permission, verb string, e ledger.Entry) {
		resource := e.Resource
		if e.Subresource != "" {
			resource += "/" + e.Subresource
		}
		if p := (permission{verb, e.Group, resource}); !slices.Contains(*list, p) {
			*list = append(*list, p)
		}
	}
	for _, e := range entries {
		verb := e.Verb
		if verb == wire.Apply {
			verb = wire.Patch
		}
		switch {
		case slices.ContainsFunc(e.AuditIDs, func(id string) bool { return refused[id] }):
			add(&denied, verb, e)
		case len(e.Served) > 0:
			add(&used, verb, e)
			if e.Verb == wire.Apply && slices.Contains(e.Served, 201) { // an apply that creates an object needs both
				add(&used, wire.Create, e)
			}
		}
	}
	return used, denied
}

// missing are those of the denied permissions that were not granted. An API server that has just started also refuses
// granted permissions until it has read the roles.
func missing(denied, granted []permission) []permission {
	return slices.DeleteFunc(denied, func(d permission) bool {
		return slices.ContainsFunc(granted, func(g permission) bool { return g.allows(d) })
	})
}

// allows reports whether a permission, which may have wildcards, includes another permission.
func (p permission) allows(other permission) bool {
	fits := func(pattern, value string) bool { return pattern == "*" || pattern == value }
	return fits(p.Group, other.Group) && fits(p.Resource, other.Resource) && fits(p.Verb, other.Verb)
}

// impliedBy are verbs that count as used when a request with another verb was seen. An informer falls back to list.
// Where the admission plugin OwnerReferencesPermissionEnforcement is enabled, a client that sets an owner reference
// on an existing object needs delete on it.
var impliedBy = map[string]string{wire.List: wire.Watch, wire.Delete: wire.Patch}

// unused are the permissions that no request needed.
func unused(granted, used []permission) (idle []permission) {
	for _, g := range granted {
		needed := slices.ContainsFunc(used, func(u permission) bool {
			return g.allows(u) || impliedBy[g.Verb] == u.Verb && g.allows(permission{g.Verb, u.Group, u.Resource})
		})
		if !needed || g.Verb == "*" || g.Resource == "*" || g.Group == "*" {
			idle = append(idle, g)
		}
	}
	return idle
}
