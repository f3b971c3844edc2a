package kro_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"

	"example.com/operator-workshop/05-operator-sdk/kro/internal/testenv"
)

// permissions compares the permissions of the role with the requests to the API server. An informer watches; it needs
// list too, for a server that cannot begin a watch with all objects. An apply of a missing object needs create.
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
	for _, r := range requests(t) {
		resource := r.ObjectRef.Resource
		if r.ObjectRef.Subresource != "" {
			resource += "/" + r.ObjectRef.Subresource
		}
		verbs := []string{r.Verb}
		switch {
		case resource == "":
			continue // discovery, which needs no permission of the role
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

// request is a line of the audit log.
type request struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Resource, Subresource string }
	ResponseStatus struct{ Code int }
}

// requests returns the requests of kro to the API server.
func requests(t *testing.T) (all []request) {
	t.Helper()
	data, err := os.ReadFile(auditLog)
	testenv.Must(t, err)
	for line := range bytes.Lines(data) {
		var r request
		if json.Unmarshal(line, &r) == nil && r.User.Username == user { // the API server is still writing the last line
			all = append(all, r)
		}
	}
	return all
}
