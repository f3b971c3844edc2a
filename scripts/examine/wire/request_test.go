package wire

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequests(t *testing.T) {
	const page, stream = "?limit=500", "?allowWatchBookmarks=true&watch=true"
	tests := map[string]struct {
		method, url, contentType string
		want                     string // verb, resource, object
		dryRun                   bool
	}{
		"one object": {"GET", "/api/v1/namespaces/a/configmaps/b", "", "get configmaps a/b", false},
		"its head":   {"HEAD", "/api/v1/namespaces/a/configmaps/b", "", "get configmaps a/b", false},
		"a list": {
			"GET", "/apis/apps/v1/namespaces/a/deployments" + page, "", "list deployments.apps a/*", false},
		"a list of everything":         {"GET", "/apis/apps/v1/deployments", "", "list deployments.apps *", false},
		"a watch":                      {"GET", "/apis/apps/v1/deployments" + stream, "", "watch deployments.apps *", false},
		"watch=0 is a list":            {"GET", "/api/v1/pods?watch=0", "", "list pods *", false},
		"watch without a value is one": {"GET", "/api/v1/pods?watch", "", "watch pods *", false},
		"the old form of a watch":      {"GET", "/api/v1/watch/namespaces/a/pods/b", "", "watch pods a/b", false},
		"a watch of one name": {
			"GET", "/api/v1/namespaces/a/pods?watch=1&fieldSelector=metadata.name%3Db", "", "watch pods a/b", false},
		"create":                 {"POST", "/api/v1/namespaces/a/pods", "", "create pods a/*", false},
		"create that only tries": {"POST", "/api/v1/namespaces/a/pods?dryRun=All", "", "create pods a/*", true},
		"update of a status": {
			"PUT", "/apis/g.io/v1/namespaces/a/webs/b/status", "", "update webs.g.io/status a/b", false},
		"patch":                 {"PATCH", "/api/v1/nodes/n", "application/merge-patch+json", "patch nodes n", false},
		"apply":                 {"PATCH", "/api/v1/nodes/n", "application/apply-patch+yaml", "apply nodes n", false},
		"apply with parameters": {"PATCH", "/api/v1/nodes/n", "application/apply-patch+cbor; x=y", "apply nodes n", false},
		"delete":                {"DELETE", "/api/v1/namespaces/a/pods/b", "", "delete pods a/b", false},
		"delete of many": {
			"DELETE", "/api/v1/namespaces/a/pods?labelSelector=x", "", "deletecollection pods a/*", false},
		"a namespace":            {"GET", "/api/v1/namespaces/a", "", "get namespaces a", false},
		"the end of a namespace": {"PUT", "/api/v1/namespaces/a/finalize", "", "update namespaces/finalize a", false},
		"all namespaces":         {"GET", "/api/v1/namespaces", "", "list namespaces *", false},
		"a log": {
			"GET", "/api/v1/namespaces/a/pods/b/log?follow=true", "", "get pods/log a/b", false},
		"discovery":                          {"GET", "/apis", "", "get /apis ", false},
		"discovery of a group":               {"GET", "/apis/apps/v1", "", "get /apis/apps/v1 ", false},
		"health":                             {"GET", "/readyz?verbose", "", "get /readyz ", false},
		"a post to something not of the API": {"POST", "/", "", "post / ", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, test.url, nil)
			r.Header.Set("Content-Type", test.contentType)
			q := Of(r)
			if got := strings.Join([]string{q.Verb, q.FullResource(), q.Which()}, " "); got != test.want || q.DryRun != test.dryRun {
				t.Errorf("%s (dry run: %v), want %s", got, q.DryRun, test.want)
			}
		})
	}
	want := Request{Verb: "update", Group: "apps", Version: "v1", Resource: "deployments",
		Subresource: "scale", Namespace: "a",
		Name: "b", Path: "/apis/apps/v1/namespaces/a/deployments/b/scale"}
	if diff := cmp.Diff(want, Of(httptest.NewRequest(http.MethodPut, want.Path, nil))); diff != "" {
		t.Error(diff)
	}
}
