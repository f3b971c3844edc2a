package examine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestWhatTheAPIServerRefuses has a text that is too large for the ConfigMap, and children of an older version that no
// client can change: an operator that reports it in the status, one that only logs it, and one without backoff.
func TestWhatTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	const large, older = "spec.text becomes too large for configmaps/hello", "an older deployments.apps/hello with another selector"
	both := []string{"older", "values"}
	tests := map[string]planted{
		"only in its log": {[]string{"FAULT=overlooks"}, both, "older values", []string{
			"**failed**: [" + large + "](#extreme-values): neither the status nor an event reports it; the refusal was",
			"**failed**: [" + older + " is made again, or reported](#children-of-an-older-version): neither the status nor an event"}},
		"in the status": {nil, both, "", []string{"**passed**: " + large, ", while another sample got ready; its other children " +
			"existed; the refusal was", "finds this object too large", "**passed**: " + older, "the status reports it; its other children existed; as undisturbed"}},
	}
	if os.Getenv("LONG") != "" {
		tests["without backoff"] = planted{[]string{"FAULT=at-once"}, both[:1], "older", []string{"a hot loop"}}
	}
	plantedFaults(t, tests)
}

// TestChildrenThatItMakesAgain has an operator that deletes a child that the API server does not let it change. Its schema
// has no limit for the text, so that the limit is that of a ConfigMap.
func TestChildrenThatItMakesAgain(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	crd, err := os.ReadFile("testoperator/config/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := greeting(build(t), "FAULT=remakes", "SECRET=a long password")
	s.CRD, s.Role = filepath.Join(t.TempDir(), "crd.yaml"), nil // of the test operator it has no permission to delete
	s.Fast, s.Time.Duration = false, 10*time.Minute
	if err := os.WriteFile(s.CRD, []byte(strings.Replace(string(crd), ", maxLength: 200", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, s, []string{"older", "values"}, "", []string{
		"**passed**: an older deployments.apps/hello with another selector is made again, or reported: as undisturbed with",
		"**passed**: an older services/hello with another kind of clusterIP is made again, or reported: as undisturbed with",
		"**passed**: an older configmaps/hello with other, immutable data is made again, or reported: as undisturbed with",
		"**passed**: an older secrets/hello with other, immutable data is made again, or reported: as undisturbed with",
		"**passed**: spec.text becomes too large for configmaps/hello: ", "may not be more than 1048576 bytes"})
}

// TestAnOlderJob has an operator that creates a Job once, and then leaves the Job as it is.
func TestAnOlderJob(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test .")
	}
	t.Parallel()
	s := greeting(build(t), "FAULT=migrates")
	s.Role = nil // of the test operator it has no permission for Jobs
	s.Fast, s.Time.Duration = false, 10*time.Minute
	expect(t, s, []string{"older"}, "", []string{
		"**passed**: an older services/hello with another kind of clusterIP is made again, or reported: ",
		"**passed**: an older configmaps/hello with other, immutable data is made again, or reported: ",
		"**skipped**: an older jobs.batch/hello with another template is made again, or reported: it does not try to change"})
}

// TestFieldsThatNoClientCanChange has an object of each kind, and one of a kind without such a field.
func TestFieldsThatNoClientCanChange(t *testing.T) {
	data := []path{{{field: "metadata"}, {field: "labels"}}, {{field: "data"}, {field: "a"}}}
	for name, test := range map[string]struct{ resource, object, want string }{
		"a selector": {"statefulsets.apps", "spec: {selector: {matchLabels: {b: b, a: a}}, template: {metadata: {labels: {a: a, b: b}}}}",
			"spec: {selector: {matchLabels: {b: b, a: older}}, template: {metadata: {labels: {a: older, b: b}}}}"},
		"a selector without labels": {"deployments.apps", "spec: {selector: {matchExpressions: []}}", ""},
		"a Service with a port of the nodes": {"services", "spec: {type: NodePort, selector: {a: b}, ports: [{port: 1, nodePort: 2}]}",
			"spec: {clusterIP: None, selector: {a: b}}"},
		"a Service without an address": {"services", "spec: {clusterIP: None, ports: [{port: 1}]}", "spec: {ports: [{port: 1}]}"},
		"a Service that can change":    {"services", "spec: {ports: [{port: 1}]}", ""},
		"a Job": {"jobs.batch", "spec: {template: {spec: {containers: [{name: a, image: a}]}}}",
			"spec: {template: {spec: {containers: [{name: a, image: example.com/older}]}}}"},
		"a ConfigMap": {"configmaps", "data: {a: a, b: b}", "data: {a: b2xk, b: b}\nimmutable: true"},
		"a Secret":    {"secrets", "stringData: {a: a}", "stringData: {}\ndata: {a: b2xk}\nimmutable: true"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, f := range fixedFields {
				for _, resource := range f.resources {
					if resource != test.resource {
						continue
					}
					u := &unstructured.Unstructured{}
					if err := yaml.Unmarshal([]byte(test.object), &u.Object); err != nil {
						t.Fatal(err)
					}
					var want map[string]any
					if err := yaml.Unmarshal([]byte(test.want), &want); err != nil {
						t.Fatal(err)
					}
					if changed := f.change(u, data); changed != (want != nil) || changed && text(u.Object) != text(want) {
						t.Errorf("%v, %s", changed, text(u.Object))
					}
				}
			}
		})
	}
}
