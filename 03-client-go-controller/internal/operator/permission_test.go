package operator

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rbacv1 "k8s.io/api/rbac/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

const (
	user = "myweb-operator"
	ns   = "default"
)

// The role of config/rbac is what the operator needs for the life of a MyWeb, and no more.
func TestThePermissionsAreThoseThatAreUsed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kubeconfig := f.operatorUser(user)
	p := started(t, user, kubeconfig, "--leader-elect", "--leader-election-namespace=default")
	f.create(ns, "site", func(spec *webv1.MyWebSpec) { spec.Replicas = new(int32(1)) })
	f.served(ns, "site")
	f.change(ns, "site", `{"image":"nginx:1.29","pageContentHtml":"new","nodePortNumber":30100}`)
	f.served(ns, "site")
	f.readsNothingAfterTheCachesSynced()
	t.Logf("stopped within %s of SIGTERM", p.Stop())
	started(t, user, kubeconfig, "KUBE_FEATURE_WatchListClient=false").Stop() // as with an older API server
	f.usesEveryPermission()
}

func (f *fixture) readsNothingAfterTheCachesSynced() {
	for _, r := range f.settled(user) {
		if r.ObjectRef.Resource != "" && (r.Verb == "get" || r.Verb == "list") {
			f.t.Errorf("%s was sent: reads come from the caches", r)
		}
	}
}

// usesEveryPermission: what config/rbac grants is used, and nothing that was asked for was denied.
func (f *fixture) usesEveryPermission() {
	granted, used := map[string]bool{}, map[string]bool{}
	for _, rule := range slices.Concat(shippedRules(f.t), leaseRules(f.t)) {
		for verb, resource := range each(rule) {
			granted[verb+" "+resource] = true
		}
	}
	f.settled(user)
	for _, r := range f.audit.Of(f.t, user) {
		if r.ObjectRef.Resource == "" {
			continue // which kinds there are, everybody may ask
		}
		if r.ResponseStatus.Code == http.StatusForbidden {
			f.t.Errorf("denied: %s", r)
		}
		resource := strings.TrimSuffix(r.ObjectRef.Resource+"/"+r.ObjectRef.Subresource, "/")
		used[r.Verb+" "+resource] = true
		if r.Verb == "patch" && r.ResponseStatus.Code == http.StatusCreated {
			used["create "+resource] = true // an apply that makes an object needs both
		}
		if r.Verb == "patch" && used["create "+resource] {
			used["delete "+resource] = true // of a child: fault/19-owner-references needs it, see config/rbac
		}
	}
	f.t.Logf("permissions used: %s", strings.Join(slices.Sorted(maps.Keys(used)), ", "))
	if diff := cmp.Diff(granted, used); diff != "" {
		f.t.Errorf("granted (-) and used (+) differ:\n%s", diff)
	}
}

// each yields the verbs of a rule with each of its resources.
func each(rule rbacv1.PolicyRule) func(yield func(verb, resource string) bool) {
	return func(yield func(verb, resource string) bool) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				if !yield(verb, resource) {
					return
				}
			}
		}
	}
}
