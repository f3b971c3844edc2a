package webhook

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The tests of internal/webhookserver show that certificates rotate, in several replicas and without a failed call.
// These tests show that the rotator, the manifests and the role name the same objects.

// shipped reads a file of config/webhook. kustomize adds the operator's name as a prefix to the names in it, except
// those in resourceNames.
func shipped(t *testing.T, file string) (all []*unstructured.Unstructured) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "config", "webhook", file))
	must(t, err)
	for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		u.SetName(operatorName + "-" + u.GetName())
		all = append(all, u)
	}
}

func TestTheRotatorIsForTheShippedObjects(t *testing.T) {
	r := clusterRotator("system")
	var webhooks []rotator.WebhookInfo
	for _, u := range shipped(t, "manifests.yaml") {
		kind := rotator.Validating
		if u.GetKind() == "MutatingWebhookConfiguration" {
			kind = rotator.Mutating
		}
		webhooks = append(webhooks, rotator.WebhookInfo{Name: u.GetName(), Type: kind})
	}
	if diff := cmp.Diff(webhooks, r.Webhooks); diff != "" {
		t.Error("webhook configurations:", diff)
	}
	if name := shipped(t, "service.yaml")[0].GetName(); r.DNSName != name+".system.svc" {
		t.Errorf("the certificate is for %s, the Service is %s", r.DNSName, name)
	}
	if name := shipped(t, "secret.yaml")[0].GetName(); r.SecretKey.Name != name || r.SecretKey.Namespace != "system" {
		t.Errorf("the certificate is kept in %s, the Secret is %s", r.SecretKey, name)
	}
}

func TestTheRoleIsForWhatTheRotatorWrites(t *testing.T) {
	r := clusterRotator("system")
	want := []string{r.SecretKey.Name}
	for _, w := range r.Webhooks {
		want = append(want, w.Name)
	}
	var got []string
	for _, role := range shipped(t, "role.yaml") {
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		must(t, err)
		for _, rule := range rules {
			names, _, err := unstructured.NestedStringSlice(rule.(map[string]any), "resourceNames")
			must(t, err)
			got = append(got, names...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
