package controller

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

func TestWhatTheSchemaTakes(t *testing.T) {
	b := newFixture(t)
	for name, test := range map[string]struct {
		name  string
		spec  map[string]any // nil: the object has no spec
		wrong string         // a part of the refusal, empty when the API server accepts the spec
	}{
		"nothing said":  {"site", nil, ""},
		"an empty spec": {"site", map[string]any{}, ""},
		"the smallest":  {"a", map[string]any{"size": int64(1), "containerPort": int64(1)}, ""},
		"the largest": {strings.Repeat("a", 63),
			map[string]any{"size": int64(5), "containerPort": int64(65535)}, ""},
		"a ConfigMap unnamed":     {"site", map[string]any{"configRef": map[string]any{}}, ""},
		"no pod":                  {"site", map[string]any{"size": int64(0)}, "spec.size"},
		"six pods":                {"site", map[string]any{"size": int64(6)}, "spec.size"},
		"port 0":                  {"site", map[string]any{"containerPort": int64(0)}, "spec.containerPort"},
		"port 65536":              {"site", map[string]any{"containerPort": int64(65536)}, "spec.containerPort"},
		"an empty image":          {"site", map[string]any{"image": ""}, "spec.image"},
		"an empty ConfigMap name": {"site", map[string]any{"configRef": map[string]any{"name": ""}}, "spec.configRef.name"},
		"a name of 64 characters": {strings.Repeat("a", 64), nil, "metadata.name must have at most 63 characters"},
		"a name with a dot":       {"a.b", nil, "metadata.name must have at most 63 characters"},
		"a name with a digit":     {"1a", nil, "start with a letter"},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if test.spec != nil {
				u.Object["spec"] = test.spec
			}
			u.SetGroupVersionKind(Kind)
			u.SetNamespace(b.key.Namespace)
			u.SetName(test.name)
			err := b.Create(t.Context(), u, client.DryRunAll)
			if (err == nil) != (test.wrong == "") || err != nil &&
				(!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.wrong)) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
			if spec, _, _ := unstructured.NestedMap(u.Object, "spec"); err == nil &&
				(spec["size"] == nil || spec["containerPort"] == nil) {
				t.Errorf("defaults are missing: %v", spec)
			}
		})
	}
}

func TestTheSamplesApply(t *testing.T) {
	b := newFixture(t)
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "cache_*.yaml"))
	b.must(err)
	applied := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		b.must(err)
		for documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
			u := &unstructured.Unstructured{}
			if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(file, err)
			}
			u.SetNamespace(b.key.Namespace)
			err := client.WithFieldValidation(b.Client, "Strict").Create(t.Context(), u, client.DryRunAll)
			if client.IgnoreAlreadyExists(err) != nil { // the bench has the first one
				t.Errorf("%s: %v", file, err)
			}
			if data, found, _ := unstructured.NestedStringMap(u.Object, "data"); found {
				if _, err := ParseConfig(data); err != nil {
					t.Errorf("%s: %v", file, err)
				}
			}
			applied++
		}
	}
	if applied != 3 {
		t.Errorf("%d objects in %v, want 2 Memcacheds and a ConfigMap", applied, files)
	}
}

func TestScaleIsBoundBySchema(t *testing.T) {
	b := newFixture(t)
	for size, taken := range map[string]bool{"1": true, "5": true, "6": false, "0": false} {
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":`+size+`}}`))
		err := b.SubResource("scale").Patch(t.Context(),
			&cachev1alpha1.Memcached{ObjectMeta: b.memcached().ObjectMeta}, patch)
		if (err == nil) != taken {
			t.Errorf("scaled to %s: %v", size, err)
		}
	}
}
