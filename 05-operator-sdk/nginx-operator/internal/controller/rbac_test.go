package controller

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientfeatures "k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"

	"github.com/example/nginx-operator/internal/owned"
	"github.com/example/nginx-operator/internal/testenv"
)

// shippedRules returns the rules of config/rbac/role.yaml.
func shippedRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	return testenv.ReadManifest[rbacv1.ClusterRole](t, "..", "..", "config", "rbac", "role.yaml").Rules
}

// allow gives a user only these permissions.
func (c *cluster) allow(user string, rules []rbacv1.PolicyRule) {
	c.t.Helper()
	name := metav1.ObjectMeta{GenerateName: "operator-"}
	role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}
	c.must(c.Create(c.t.Context(), role))
	c.must(c.Create(c.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: name,
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}}))
	// The API server's authorizer sees the role a moment later.
	gomega.NewWithT(c.t).Eventually(func() (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: rules[0].APIGroups[0],
				Resource: rules[0].Resources[0], Verb: rules[0].Verbs[0]}}}
		err := c.Create(c.t.Context(), review)
		return review.Status.Allowed, err
	}, "30s", "5ms").Should(gomega.BeTrue())
}

// serve lets the operator use each of its permissions.
func (l *loop) serve() {
	l.t.Helper()
	l.must(l.Create(l.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "page"}}))
	l.ask(site, serving("page"))
	l.pod(newPod(l.set(site), "site-1-a"), corev1.PodRunning)
	l.Eventually(l.listed(site)).Should(gomega.Equal([]string{"site-1-a"}))
	l.Eventually(l.condition(site, owned.Progressing)).Should(gomega.Equal(complete))
	l.Eventually(func() int { return l.requests()["create events"] }).ShouldNot(gomega.BeZero())
	edit(l.cluster, site, &corev1.Service{}, func(s *corev1.Service) { s.OwnerReferences = nil })
	l.Eventually(func() int { return len(get(l.cluster, site, &corev1.Service{}).OwnerReferences) }).
		Should(gomega.Equal(1), "the Service is adopted")
}

// The original had no permission to create Deployments or to list pods. Here the operator is a user with the
// permissions of config/rbac/role.yaml: it needs no other permission, and uses all of them.
func TestMissingPermissionsForDeploymentsAndPodsDoNotComeBack(t *testing.T) {
	used := map[permission]bool{}
	for name, streamed := range map[string]bool{"first lists are streamed": true, "as with an older API server": false} {
		t.Run(name, func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, clientfeatures.WatchListClient, streamed)
			l := newLoop(t)
			l.user, l.namespaces = "operator-"+l.namespace, nil // as it is shipped, it serves all namespaces
			l.allow(l.user, shippedRules(t))
			l.start()
			l.serve()
			l.stop()
			if denied := l.refused(); len(denied) > 0 {
				t.Errorf("denied: %v", denied)
			}
			maps.Copy(used, l.permissions())
		})
	}
	shipped := map[permission]bool{}
	for _, rule := range shippedRules(t) {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					shipped[permission{group, resource, verb}] = true
				}
			}
		}
	}
	// A server-side apply is a PATCH, but the API server also checks the verb create when it creates an object, and
	// the verb delete when it sets an owner reference.
	for p := range maps.Clone(used) {
		if p.verb == "patch" && p.group != "events.k8s.io" {
			used[permission{p.group, p.resource, "create"}] = true
			used[permission{p.group, p.resource, "delete"}] = true
		}
	}
	if diff := cmp.Diff(shipped, used); diff != "" {
		t.Error("shipped, and used:", diff)
	}
}
