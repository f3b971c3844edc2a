package kro_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/operator-workshop/05-operator-sdk/kro/internal/testenv"
)

// permissions compares what the role grants with what the API server was asked for. An informer watches, and lists
// where a server cannot begin a watch with all that there is. What is applied, and was not there, is created.
func permissions(t *testing.T) {
	granted := map[string]bool{}
	for _, rule := range testenv.ReadManifest[rbacv1.ClusterRole](t, "config/rbac/role.yaml").Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				granted[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	used := map[string]bool{}
	for _, r := range audit.Of(t, user) {
		resource := r.ObjectRef.Resource
		if r.ObjectRef.Subresource != "" {
			resource += "/" + r.ObjectRef.Subresource
		}
		verbs := []string{r.Verb}
		switch {
		case resource == "":
			continue // what the API server serves, which everybody may ask
		case r.Verb == "watch":
			verbs = append(verbs, "list")
		case r.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated:
			verbs = append(verbs, "create")
		}
		for _, verb := range verbs {
			used[verb+" "+resource+"."+r.ObjectRef.APIGroup] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(granted))); diff != "" {
		t.Errorf("permissions (-used +granted):\n%s", diff)
	}
}
