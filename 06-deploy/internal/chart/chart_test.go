// Package chart tests the Helm chart: it renders the same objects as kustomize, and refuses invalid values.
package chart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader"
	release "helm.sh/helm/v4/pkg/release/v1"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/06-deploy/internal/kustomize"
	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

const (
	folder = "../../chart/myweb-operator"
	config = "../../config"
)

type values = map[string]any

// same has the values with which the chart renders the objects of a folder of config/.
var same = map[string]values{
	"03/default":           {"impl": "03"},
	"03/kind":              {"impl": "03", "image": values{"pullPolicy": "Never"}},
	"03/high-availability": {"impl": "03", "replicas": 2},
	"04/default":           {},
	"04/kind":              {"image": values{"pullPolicy": "Never"}},
	"04/high-availability": {"replicas": 2},
	"04/namespaced":        {"watchNamespaces": []any{"websites"}},
	"04/webhooks":          {"webhooks": values{"enabled": true}},
	"04/monitoring":        {"monitoring": values{"enabled": true}},
	"04/production":        {"replicas": 2, "webhooks": values{"enabled": true}, "monitoring": values{"enabled": true}},
	"04/kind-production": {"replicas": 2, "webhooks": values{"enabled": true}, "monitoring": values{"enabled": true},
		"image": values{"pullPolicy": "Never"}},
}

// install renders the chart as `helm install --dry-run=client` does.
func install(namespace, kubernetes string, v values) (*release.Release, error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return nil, err
	}
	i := action.NewInstall(action.NewConfiguration())
	i.DryRunStrategy, i.IncludeCRDs, i.ReleaseName, i.Namespace = action.DryRunClient, true, "web", namespace
	if i.KubeVersion, err = common.ParseKubeVersion(kubernetes); err != nil {
		return nil, err
	}
	made, err := i.Run(chart, v)
	if err != nil {
		return nil, err
	}
	return made.(*release.Release), nil
}

// byName makes objects comparable: by kind and name, without the labels that Helm sets.
func byName(all []*unstructured.Unstructured) map[string]any {
	found := map[string]any{}
	for _, object := range all {
		labels := object.GetLabels()
		delete(labels, "app.kubernetes.io/managed-by")
		delete(labels, "helm.sh/chart")
		object.SetLabels(labels)
		found[fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())] = object.Object
	}
	return found
}

func TestTheChartMakesWhatKustomizeMakes(t *testing.T) {
	crd, err := kustomize.Build(filepath.Join(config, "crd"))
	testenv.Must(t, err)
	folders, err := filepath.Glob(filepath.Join(config, "0[34]", "*", "kustomization.yaml"))
	if err != nil || len(folders) != len(same) {
		t.Fatalf("config/ has %d ways, the test knows %d (%v)", len(folders), len(same), err)
	}
	for way, v := range same {
		t.Run(way, func(t *testing.T) {
			want, err := kustomize.Build(filepath.Join(config, way))
			testenv.Must(t, err)
			// Helm makes the namespace itself (--create-namespace), and does not label it.
			want = slices.DeleteFunc(want, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
			made, err := install("myweb-operator", "v1.37.0", v)
			testenv.Must(t, err)
			got, err := manifests.Read(strings.NewReader(made.Manifest))
			testenv.Must(t, err)
			if diff := cmp.Diff(byName(append(want, crd...)), byName(got)); diff != "" {
				t.Errorf("(-kustomize +chart):\n%s", diff)
			}
		})
	}
}

// The namespace is the release's, wherever it is named.
func TestTheChartGoesIntoAnyNamespace(t *testing.T) {
	made, err := install("elsewhere", "v1.37.0", same["04/production"])
	testenv.Must(t, err)
	if strings.Contains(made.Manifest, "namespace: myweb-operator") ||
		!strings.Contains(made.Info.Notes, "namespace elsewhere") {
		t.Errorf("it names another namespace:\n%s\n%s", made.Info.Notes, made.Manifest)
	}
}

func TestTheChartIsWellFormed(t *testing.T) {
	lint := action.NewLint()
	lint.Strict, lint.Namespace = true, "myweb-operator"
	for way, v := range same {
		result := lint.Run([]string{folder}, v)
		for _, message := range result.Messages {
			t.Errorf("%s: %s", way, message)
		}
		if len(result.Errors) > 0 || result.TotalChartsLinted != 1 {
			t.Errorf("%s: %v", way, result.Errors)
		}
	}
}

func TestBadValuesAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		values     values
		kubernetes string
		want       string
	}{
		"no such operator":  {values{"impl": "07"}, "v1.37.0", "at '/impl': value must be one of '03', '04'"},
		"no replica":        {values{"replicas": 0}, "v1.37.0", "at '/replicas': minimum: got 0, want 1"},
		"replicas in words": {values{"replicas": "two"}, "v1.37.0", "at '/replicas': got string, want integer"},
		"a misspelt value": {
			values{"webhook": values{"enabled": true}}, "v1.37.0", "additional properties 'webhook' not allowed"},
		"a policy that is none": {values{"image": values{"pullPolicy": "Sometimes"}}, "v1.37.0",
			"at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'"},
		"a tag that is none": {
			values{"image": values{"tag": "a b"}}, "v1.37.0", "at '/image/tag': 'a b' does not match pattern"},
		"a namespace that is none": {
			values{"watchNamespaces": []any{"Web"}}, "v1.37.0", "at '/watchNamespaces/0': 'Web' does not match pattern"},
		"webhooks of chapter 03": {
			values{"impl": "03", "webhooks": values{"enabled": true}}, "v1.37.0", "the operator of chapter 03 has no webhooks"},
		"metrics of chapter 03": {
			values{"impl": "03", "monitoring": values{"enabled": true}}, "v1.37.0", "serves its metrics on 127.0.0.1 alone"},
		"one namespace, chapter 03": {
			values{"impl": "03", "watchNamespaces": []any{"web"}}, "v1.37.0", "serves all namespaces"},
		"a cluster too old": {
			values{}, "v1.29.9", "chart requires kubeVersion: >=1.30.0-0 which is incompatible with Kubernetes v1.29.9"},
	} {
		if _, err := install("myweb-operator", test.kubernetes, test.values); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
