// Package permissions compares the permissions of a service account with its requests: the roles of the manifests with
// the API server's audit log. No request should have been denied, and every granted permission should have been used.
package permissions

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/06-deploy/internal/manifests"
)

// A Permission is one verb on one resource, the smallest permission that a role grants.
type Permission struct {
	Verb, Group, Resource string
	// Name is the name of the one object that it allows; empty means any.
	Name string
	// Namespace is where it holds; empty means everywhere.
	Namespace string
	// Role is the role that grants it.
	Role string
}

// String returns the permission as text, such as: list mywebs.operator.k8s-summit.org everywhere.
func (p Permission) String() string {
	what := p.Resource
	if p.Group != "" {
		what += "." + p.Group
	}
	if p.Name != "" {
		what += "/" + p.Name
	}
	where := "everywhere"
	if p.Namespace != "" {
		where = "in " + p.Namespace
	}
	return fmt.Sprintf("%s %s %s (%s)", p.Verb, what, where, p.Role)
}

// Granted are the permissions that manifests grant to a service account.
func Granted(all []*unstructured.Unstructured, account rbacv1.Subject) (granted []Permission, err error) {
	rules, err := rulesOf(all)
	if err != nil {
		return nil, err
	}
	wide, err := manifests.Only[rbacv1.ClusterRoleBinding](all, "ClusterRoleBinding")
	if err != nil {
		return nil, err
	}
	narrow, err := manifests.Only[rbacv1.RoleBinding](all, "RoleBinding")
	if err != nil {
		return nil, err
	}
	for _, b := range wide { // as a RoleBinding without a namespace
		narrow = append(narrow, rbacv1.RoleBinding{RoleRef: b.RoleRef, Subjects: b.Subjects})
	}
	for _, b := range narrow {
		if !slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == "ServiceAccount" && s.Name == account.Name && s.Namespace == account.Namespace
		}) {
			continue
		}
		role := b.RoleRef.Kind + " " + b.RoleRef.Name
		in := ""
		if b.RoleRef.Kind == "Role" {
			in = b.Namespace
		}
		found, ok := rules[role+" "+in]
		if !ok {
			return nil, fmt.Errorf("%s is bound, and is not among the manifests", role)
		}
		for _, rule := range found {
			granted = append(granted, each(rule, b.Namespace, role)...)
		}
	}
	if len(granted) == 0 {
		return nil,
			fmt.Errorf("the manifests grant the account %s/%s nothing: is it the right one?", account.Namespace, account.Name)
	}
	return granted, nil
}

// rulesOf are the rules of all roles, by kind, name and namespace.
func rulesOf(all []*unstructured.Unstructured) (map[string][]rbacv1.PolicyRule, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	wide, err := manifests.Only[rbacv1.ClusterRole](all, "ClusterRole")
	if err != nil {
		return nil, err
	}
	for _, r := range wide {
		rules["ClusterRole "+r.Name+" "] = r.Rules
	}
	narrow, err := manifests.Only[rbacv1.Role](all, "Role")
	if err != nil {
		return nil, err
	}
	for _, r := range narrow {
		rules["Role "+r.Name+" "+r.Namespace] = r.Rules
	}
	return rules, nil
}

// each returns the permissions of a rule: one for each combination of verb, group, resource and name.
func each(rule rbacv1.PolicyRule, namespace, role string) (all []Permission) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, Permission{verb, group, resource, name, namespace, role})
				}
			}
		}
	}
	for _, url := range rule.NonResourceURLs {
		for _, verb := range rule.Verbs {
			all = append(all, Permission{Verb: verb, Resource: strings.TrimPrefix(url, "/"), Role: role})
		}
	}
	return all
}
