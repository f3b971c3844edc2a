package exercises

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
)

// used are the requests of the operator of chapter 04 in the life of a MyWeb: made, served, changed, deleted. The test
// of the package permissions measures them in the audit log of an API server. delete is for the owner reference of a
// child that has lost it: the admission plugin OwnerReferencesPermissionEnforcement asks for it.
var used = map[string]string{
	"/configmaps":                           "create delete list patch watch",
	"/services":                             "create delete list patch watch",
	"apps/deployments":                      "create delete list patch watch",
	"events.k8s.io/events":                  "create",
	"operator.k8s-summit.org/mywebs":        "list watch",
	"operator.k8s-summit.org/mywebs/status": "update",
}

// grants reports whether one rule allows a request, as the API server reads it.
func grants(rule rbacv1.PolicyRule, verb, group, resource string) bool {
	has := func(all []string, one string) bool { return slices.Contains(all, one) || slices.Contains(all, "*") }
	return has(rule.Verbs, verb) && has(rule.APIGroups, group) && has(rule.Resources, resource)
}

func TestRole(t *testing.T) {
	checkRules(t, only[rbacv1.ClusterRole](t, answer(t, "role.yaml", "../config/rbac/04/role.yaml"), "ClusterRole").Rules)
}

// checkRules reports each request of the operator that no rule allows, and each permission that it does not use.
func checkRules(t *testing.T, rules []rbacv1.PolicyRule) {
	t.Helper()
	for what, verbs := range used {
		group, resource, _ := strings.Cut(what, "/")
		for verb := range strings.FieldsSeq(verbs) {
			if !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool { return grants(r, verb, group, resource) }) {
				t.Errorf("denied: the operator sends %s %s, and may not", verb, what)
			}
		}
	}
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				what := group + "/" + resource
				for _, verb := range rule.Verbs {
					if !slices.Contains(strings.Fields(used[what]), verb) {
						t.Errorf("not used: %s %s", verb, what)
					}
				}
			}
		}
	}
}
