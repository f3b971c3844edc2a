// Package api_test judges the types of v2: it runs controller-gen on them and those of v1, and reads the CRD.
package api_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

type schema = apiextensionsv1.JSONSchemaProps

// generate returns the CRD that controller-gen makes of v2/types.go and the v1 of the chapter.
func generate(t *testing.T) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "v2/types.go", nil, parser.PackageClauseOnly)
	must(t, err)
	if file.Name.Name != "v2" {
		t.Fatalf("the package is called %s: controller-gen takes the version from it", file.Name.Name)
	}
	dir := t.TempDir()
	chapter := run(t, "go", "list", "-m", "-f", "{{.Dir}}", "example.com/operator-workshop/04-controller-runtime")
	chapter = strings.TrimSpace(chapter)
	for to, from := range map[string]string{
		"go.mod":      filepath.Join(chapter, "go.mod"),
		"go.sum":      filepath.Join(chapter, "go.sum"),
		"v1/doc.go":   filepath.Join(chapter, "api/v1/doc.go"),
		"v1/types.go": filepath.Join(chapter, "api/v1/types.go"),
		"v2/doc.go":   filepath.Join(chapter, "versions/api/v2/doc.go"),
		"v2/types.go": "v2/types.go",
	} {
		data, err := os.ReadFile(from)
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(to)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, to), data, 0o644))
	}
	root, err := testenv.Root()
	must(t, err)
	run(t, filepath.Join(root, "scripts", "workshop"), "tools", "controller-gen") // builds it when it is missing
	t.Chdir(dir)
	out := run(t, filepath.Join(root, "bin", "controller-gen"), "crd", "paths=./...", "output:stdout")
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must(t, yaml.Unmarshal([]byte(out), crd))
	return crd
}

// run returns the output of a program. Where it fails, paths begin in the working folder.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		here, _ := os.Getwd()
		t.Fatalf("%s: %v\n%s", filepath.Base(program), err, strings.ReplaceAll(stderr.String(), here+"/", ""))
	}
	return string(out)
}

func TestTypes(t *testing.T) {
	crd := generate(t)
	if len(crd.Spec.Versions) != 2 {
		t.Fatalf("the CRD of %s has %d versions, want v1 and v2", crd.Spec.Names.Kind, len(crd.Spec.Versions))
	}
	v1, v2 := crd.Spec.Versions[0], crd.Spec.Versions[1]
	if v1.Storage || !v2.Storage {
		t.Errorf("v2 must be the version that is stored, and not v1")
	}
	old, spec := v1.Schema.OpenAPIV3Schema.Properties["spec"], v2.Schema.OpenAPIV3Schema.Properties["spec"]
	for _, name := range []string{"nodePortNumber", "pageContentHtml"} {
		if _, there := spec.Properties[name]; there {
			t.Errorf("spec.%s is still in v2", name)
		}
	}
	page := spec.Properties["page"]
	same(t, "spec.image", old.Properties["image"], spec.Properties["image"])
	same(t, "spec.replicas", old.Properties["replicas"], spec.Properties["replicas"])
	same(t, "spec.nodePort", old.Properties["nodePortNumber"], spec.Properties["nodePort"])
	same(t, "spec.page.html", old.Properties["pageContentHtml"], page.Properties["html"])
	if !slices.Equal(spec.Required, []string{"image"}) {
		t.Errorf("spec requires %v, want only the image: other objects of v1 would not be valid in v2", spec.Required)
	}
	if !slices.Equal(page.Required, []string{"html"}) {
		t.Errorf("spec.page does not require html: v1 cannot tell an empty page object from none")
	}
	description := spec.Properties["description"]
	if limits(description) != "string, 1 to 200 characters" {
		t.Errorf("spec.description is a %s, want a string, 1 to 200 characters", limits(description))
	}
	same(t, "status", v1.Schema.OpenAPIV3Schema.Properties["status"], v2.Schema.OpenAPIV3Schema.Properties["status"])
	if diff := cmp.Diff(v1.Subresources, v2.Subresources); diff != "" {
		t.Errorf("the subresources of v2 differ (-v1 +v2):\n%s", diff)
	}
}

// same reports the differences between the two versions of a field. Descriptions may differ.
func same(t *testing.T, field string, old, now schema) {
	t.Helper()
	if now.Type == "" {
		t.Errorf("there is no %s in v2", field)
		return
	}
	old.Description, now.Description = "", ""
	if diff := cmp.Diff(old, now); diff != "" {
		t.Errorf("%s: what one version accepts, the other one refuses (-v1 +v2):\n%s", field, diff)
	}
}

// limits returns the limits of a string.
func limits(s schema) string {
	if s.MinLength == nil || s.MaxLength == nil {
		return s.Type + " without limits"
	}
	return fmt.Sprintf("%s, %d to %d characters", s.Type, *s.MinLength, *s.MaxLength)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
