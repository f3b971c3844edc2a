package controller

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onsi/gomega"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
	"github.com/example/memcached-operator/internal/program"
)

// asOperator returns a configuration for a user with exactly the ClusterRole of config/rbac/role.yaml, bound
// in the given namespaces, or everywhere when namespaces is empty.
func (l *loop) asOperator(namespaces []string) *rest.Config {
	l.t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "rbac", "role.yaml"))
	l.Expect(err).NotTo(gomega.HaveOccurred())
	role := &rbacv1.ClusterRole{}
	l.Expect(yaml.UnmarshalStrict(data, role)).To(gomega.Succeed())
	role.Name = l.here
	l.Expect(l.admin.Create(l.t.Context(), role)).To(gomega.Succeed())

	user := rest.CopyConfig(cfg)
	user.Impersonate.UserName = "operator-of-" + l.here
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user.Impersonate.UserName}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	if len(namespaces) == 0 {
		l.Expect(l.admin.Create(l.t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects, RoleRef: ref})).To(gomega.Succeed())
	}
	for _, namespace := range namespaces {
		l.Expect(l.admin.Create(l.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
				Name: role.Name}, Subjects: subjects, RoleRef: ref})).To(gomega.Succeed())
	}
	if len(namespaces) == 0 {
		namespaces = []string{l.here}
	}
	for _, namespace := range namespaces { // the API server's authorizer sees the role a moment later
		l.Eventually(func() (bool, error) {
			rule := role.Rules[0]
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user.Impersonate.UserName, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace,
					Group: rule.APIGroups[0], Resource: rule.Resources[0], Verb: rule.Verbs[0]}}}
			err := l.admin.Create(l.t.Context(), review)
			return review.Status.Allowed, err
		}).Should(gomega.BeTrue())
	}
	return user
}

// TestTheThreeFormsOfItsScope gives the operator only the permissions of each form.
func TestTheThreeFormsOfItsScope(t *testing.T) {
	for name, served := range map[string]func(one, two, three string) []string{
		"all namespaces": func(string, string, string) []string { return nil },
		"one":            func(one, _, _ string) []string { return []string{one} },
		"several":        func(one, two, _ string) []string { return []string{one, two} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t)
			all := []string{l.here, l.namespace(), l.namespace()}
			scope := served(all[0], all[1], all[2])
			t.Setenv("WATCH_NAMESPACE", strings.Join(scope, ","))
			var o program.Options
			o.Bind(flag.NewFlagSet("test", flag.ContinueOnError))
			l.start(l.asOperator(scope), o.Namespaces, twoWorkers)
			for _, namespace := range all {
				m := l.create(namespace)
				if scope == nil || slices.Contains(scope, namespace) {
					l.complete(m, 3)
				} else {
					l.Consistently(l.is(m, owned.Degraded), "500ms").Should(gomega.Equal("none"),
						"it does not serve this namespace")
				}
			}
			m := l.create(l.here, func(m *cachev1alpha1.Memcached) {
				m.Name, m.Spec.ConfigRef = "configured", &cachev1alpha1.ConfigReference{}
			})
			l.configMap(m.Name, nil)
			l.complete(m, 3)
			l.Eventually(l.completions(m)).Should(gomega.Equal(1))
			l.merge(m, `{"spec":{"size":4}}`)
			l.complete(m, 4)
			l.Eventually(l.completions(m)).Should(gomega.Equal(2), "an event of a kind that was recorded before")
			l.adopted(m)
			l.Expect(l.refused()).To(gomega.BeEmpty(), "denied")
		})
	}
}

// adopted removes the owner reference from the Service of a Memcached, and waits until it is back. The API server
// lets a user set it only if the user may delete the Service.
func (l *loop) adopted(m *cachev1alpha1.Memcached) {
	l.t.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	l.merge(service, `{"metadata":{"ownerReferences":null}}`)
	l.Eventually(func() (bool, error) {
		err := l.admin.Get(l.t.Context(), client.ObjectKeyFromObject(service), service)
		return metav1.IsControlledBy(service, m), err
	}).Should(gomega.BeTrue(), "the Service is adopted")
}

// completions returns a function that counts the events for a complete Memcached. Another goroutine sends events after
// the status.
func (l *loop) completions(m *cachev1alpha1.Memcached) func() (int, error) {
	return func() (n int, err error) {
		var all eventsv1.EventList
		err = l.admin.List(l.t.Context(), &all, client.InNamespace(m.Namespace))
		for _, e := range all.Items {
			if e.Regarding.UID == m.UID && e.Reason == owned.ReasonComplete {
				n++
			}
		}
		return n, err
	}
}
