// Package crd_test checks the CRD of MyWeb, and each step towards it, on a real API server.
package crd_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/01-crd/internal/testenv"
)

// server is an API server with the final CRD.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { server = cfg; return nil }, contract))
}

func TestEveryFieldIsDescribed(t *testing.T) {
	obj := readObject(t, contract)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	testenv.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, crd))
	described := 0
	var check func(path string, schema *apiextensionsv1.JSONSchemaProps)
	check = func(path string, schema *apiextensionsv1.JSONSchemaProps) {
		if path == ".metadata" { // described by the API server itself
			return
		}
		if schema.Description == "" {
			t.Errorf("%s has no description for kubectl explain", path)
		}
		described++
		for name, property := range schema.Properties {
			check(path+"."+name, &property)
		}
		if schema.Items != nil {
			check(path+"[]", schema.Items.Schema)
		}
	}
	check("", crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
	if described < 20 {
		t.Errorf("saw only %d schemas", described)
	}
}

func TestGoodSamplesAreAcceptedAndStoredAsTheyAre(t *testing.T) {
	c := newClient(t, server)
	for _, path := range append(files(t, "samples/good/*.yaml"), original) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			web := readMyWeb(t, path)
			want := maps.Clone(web.Object["spec"].(map[string]any))
			if want["replicas"] == nil {
				want["replicas"] = int64(1)
			}

			create(t, c, web)

			if diff := cmp.Diff(want, get(t, c, web.GetName()).Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBadSamplesAreRefusedWithPathAndSentence(t *testing.T) {
	c := newClient(t, server)
	for _, path := range files(t, "samples/bad/*.yaml") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			field, sentence := readRefusal(t, path)
			err := c.Create(t.Context(), readMyWeb(t, path), client.DryRunAll)
			if err := checkRefused(err, field, sentence); err != nil {
				t.Error(err)
			}
			if others := causesBesides(err, field, sentence); len(others) > 0 {
				t.Errorf("the refusal also has the causes %q", others)
			}
		})
	}
}

// causesBesides returns the causes of a refusal without the expected cause, and without the causes that the API server
// adds: one for each CRD with the scale subresource, and one for each CRD with a rule in CEL.
func causesBesides(err error, field, sentence string) (others []string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		isExpected := cause.Field == field && strings.Contains(cause.Message, sentence)
		isOfScale := cause.Field == ".spec.replicas"
		isOfRules := cause.Field == "<nil>" && strings.Contains(cause.Message, "some validation rules were not checked")
		if !isExpected && !isOfScale && !isOfRules {
			others = append(others, cause.Field+": "+cause.Message)
		}
	}
	return others
}

// The limit of the page counts characters, and the limits behind it count bytes: kubectl apply keeps a copy of the
// object in an annotation, all annotations of an object have 262144 bytes, etcd takes 1.5 MiB in one request, a
// ConfigMap 1 MiB. JSON of Go writes '<' as the six bytes \u003c, in the copy and in etcd. So the test applies the
// longest page of each sort, applies it with a change, writes a status whose messages are as long as an event's, and
// last creates the ConfigMap that serves the page.
func TestTheLongestPageCanBeAppliedAndServed(t *testing.T) {
	longest := maxLengthOfPage(t)
	c, k := newClient(t, server), newKubectl(t, server)
	for name, char := range map[string]string{
		"letters": "x", "markup": "<", "ampersands": "&", "quotes": `"`, "control-characters": "\x01", "two-bytes": "é",
		"cjk": "世", "four-bytes": "😀", "line-separators": "\u2028",
		"table": "<td>1</td>",
	} {
		t.Run(name, func(t *testing.T) {
			page := strings.Repeat(char, longest)
			page = string([]rune(page)[:longest])
			web := newMyWeb(name, map[string]any{"image": strings.Repeat("i", 1024), "pageContentHtml": page})
			k.applyObject(t, web)
			t.Cleanup(func() { deleteMyWeb(t, name) })
			web.Object["spec"].(map[string]any)["replicas"] = int64(2)
			k.applyObject(t, web)

			if err := c.Status().Update(t.Context(), withLongStatus(get(t, c, name))); err != nil {
				t.Errorf("its status: %.500v", err)
			}
			served := &corev1.ConfigMap{Data: map[string]string{"index.html": page}}
			served.Namespace, served.Name = "default", name
			if err := c.Create(t.Context(), served, client.DryRunAll); err != nil {
				t.Errorf("its ConfigMap: %.500v", err)
			}

			tooLong := newMyWeb("too-long", map[string]any{"image": "nginx", "pageContentHtml": page + "x"})
			err := c.Create(t.Context(), tooLong, client.DryRunAll)
			if err := checkRefused(err, "spec.pageContentHtml", fmt.Sprint("may not be more than ", longest)); err != nil {
				t.Errorf("one character more: %.500v", err)
			}
		})
	}
}

// maxLengthOfPage reads the limit from the contract.
func maxLengthOfPage(t *testing.T) int {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	testenv.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(readObject(t, contract).Object, crd))
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	limit := spec.Properties["pageContentHtml"].MaxLength
	if limit == nil {
		t.Fatal("the page has no limit")
	}
	return int(*limit)
}

// withLongStatus gives a MyWeb three conditions whose messages are as long as an event's note may be.
func withLongStatus(web *unstructured.Unstructured) *unstructured.Unstructured {
	var conditions []any
	for _, kind := range []string{"Available", "Progressing", "Degraded"} {
		conditions = append(conditions, map[string]any{"type": kind, "status": "Unknown", "reason": "Long",
			"message": strings.Repeat("<", 1024), "lastTransitionTime": "2026-01-02T03:04:05Z"})
	}
	web.Object["status"] = map[string]any{"conditions": conditions}
	return web
}

// The rule for images accepts the same references as the library that container runtimes use. That
// library checks two things more: a path has at most 255 characters and is not 64 hex digits.
func TestImagesAreRefusedExactlyWhenRuntimesRefuseThem(t *testing.T) {
	c := newClient(t, server)
	sha256, sha384, sha512 := strings.Repeat("0a", 32), strings.Repeat("0a", 48), strings.Repeat("0a", 64)
	for _, image := range []string{
		"nginx", "nginx:latest", "library/nginx", "docker.io/library/nginx:1.29", "a/b/c/d",
		"localhost/x", "localhost:5000/x", "registry:5000/x:1", "my-registry.example.com:443/team/web",
		"192.0.2.1:5000/x", "[fd00::1]/x", "[fd00::1]:5000/x:y", "Registry.Example.com/web",
		"nginx@sha256:" + sha256, "r:1/x:tag@sha256:" + sha256, "x@sha384:" + sha384, "x@sha512:" + sha512,
		"x:" + strings.Repeat("t", 128), "x:_under.dot-dash", "x:T", "a__b", "a_b", "a.b", "a--b", "a---b/c",
		"registry:5000", "x:5000", "Team/web",
		"Nginx", "docker.io/library/Nginx", "localhost:5000/X", "nginx latest", " nginx", "nginx ", "nginx\n", "\tnginx",
		"nginx:", "nginx@", "nginx:a:b", "nginx:.a", "nginx:-a", "nginx:a/b", "x:" + strings.Repeat("t", 129),
		"nginx@sha256", "nginx@sha256:", "nginx@sha256:" + sha256[1:], "nginx@sha256:" + sha256 + "0",
		"nginx@sha256:" + strings.ToUpper(sha256), "nginx@md5:" + sha256[32:], "nginx@sha512:" + sha256,
		"/nginx", "nginx/", "a//b", "-a", "a-", "_a", "a_", ".a", "a..b", "a___b", "a._b", "a-.b",
		"https://docker.io/nginx", "docker://nginx", "reg:port/x", "-reg/x", "reg-/x", "reg..io/x", "my_reg:5000/x",
		"[fd00::1]", "[fd00::zz]/x", "nginx;id", "$(id)", "nginx{{}}", "nünx", "nginx\u00a0",
	} {
		t.Run(image, func(t *testing.T) {
			_, parseErr := reference.ParseNormalizedNamed(image)
			err := c.Create(t.Context(), newMyWeb("image", map[string]any{"image": image}), client.DryRunAll)
			if parseErr == nil && err != nil {
				t.Errorf("refused a valid image: %v", err)
			}
			if parseErr != nil {
				if err := checkRefused(err, "spec.image", "must be an image reference"); err != nil {
					t.Errorf("%v\n the library says %v", err, parseErr)
				}
			}
		})
	}
}

// The API server never stores a field that is not in the schema. The client chooses whether it gets an error
// or a warning: kubectl asks for Strict, the default of the API server is Warn.
func TestUnknownFields(t *testing.T) {
	spec := map[string]any{"image": "nginx", "colour": "red"}
	for mode, wantWarning := range map[string]bool{
		metav1.FieldValidationIgnore: false,
		metav1.FieldValidationWarn:   true,
		"":                           true,
	} {
		t.Run("are cut off in mode "+mode, func(t *testing.T) {
			warnings := &warningLog{}
			cfg := rest.CopyConfig(server)
			cfg.WarningHandlerWithContext = warnings
			c, err := client.New(cfg, client.Options{FieldValidation: mode})
			testenv.Must(t, err)
			web := newMyWeb("unknown", maps.Clone(spec))
			create(t, c, web)

			want := map[string]any{"image": "nginx", "replicas": int64(1)}
			if diff := cmp.Diff(want, get(t, c, "unknown").Object["spec"]); diff != "" {
				t.Errorf("stored spec (-want +got):\n%s", diff)
			}
			if warned := strings.Contains(warnings.String(), `unknown field "spec.colour"`); warned != wantWarning {
				t.Errorf("warned = %v, want %v: %s", warned, wantWarning, warnings)
			}
		})
	}
	t.Run("are refused in mode Strict", func(t *testing.T) {
		err := newClient(t, server).Create(t.Context(), newMyWeb("unknown", spec))
		if err := checkRefused(err, "spec.colour", "unknown field"); err != nil {
			t.Error(err)
		}
	})
}

// warningLog keeps the warnings that the API server sent.
type warningLog struct{ strings.Builder }

func (w *warningLog) HandleWarningHeaderWithContext(_ context.Context, _ int, _ string, text string) {
	fmt.Fprintln(w, text)
}
