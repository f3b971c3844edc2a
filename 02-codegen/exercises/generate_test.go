// Package v1_test judges the types that a reader writes: it runs generators on a copy of them, and reads the results.
package v1_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// generate copies the reader's package into a module that looks like the chapter, and runs a generator on it.
func generate(t *testing.T, generator string, args ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	chapter := filepath.Join(os.Getenv("WORKSHOP_ROOT"), "02-codegen")
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, filepath.Join(chapter, name), filepath.Join(dir, name))
	}
	written, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range written {
		copyFile(t, name, filepath.Join(dir, "pkg/apis/myweb/v1", name))
	}
	cmd := exec.CommandContext(t.Context(), generator, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", generator, err, strings.ReplaceAll(string(out), dir+"/pkg/apis/myweb/v1/", ""))
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	must(t, err)
	must(t, os.MkdirAll(filepath.Dir(to), 0o755))
	must(t, os.WriteFile(to, data, 0o644))
}

// A document is a part of a manifest.
type document map[string]any

// at returns the value at a path; nil when there is none.
func (d document) at(path ...string) document {
	for _, name := range path {
		next, _ := d[name].(map[string]any)
		d = next
	}
	return d
}

// generateCRD returns the only version of the CRD of MyWeb, and its spec.
func generateCRD(t *testing.T) (version, spec document) {
	t.Helper()
	dir := generate(t, "controller-gen", "crd", "paths=./pkg/apis/...", "output:crd:dir=config/crd")
	made, err := filepath.Glob(filepath.Join(dir, "config/crd/*.yaml"))
	must(t, err)
	if len(made) != 1 {
		t.Fatalf("controller-gen found no kind: it made %d CRDs", len(made))
	}
	if name := filepath.Base(made[0]); name != "operator.k8s-summit.org_mywebs.yaml" {
		t.Fatalf("controller-gen made %s: the group must be operator.k8s-summit.org and the kind MyWeb", name)
	}
	data, err := os.ReadFile(made[0])
	must(t, err)
	var crd document
	must(t, yaml.Unmarshal(data, &crd))
	versions, _ := crd.at("spec")["versions"].([]any)
	version, _ = versions[0].(map[string]any)
	return version, version.at("schema", "openAPIV3Schema", "properties", "spec")
}

// required reports whether an object lists a field as required.
func (d document) required(field string) bool {
	for _, name := range d.list("required") {
		if name == field {
			return true
		}
	}
	return false
}

func (d document) list(name string) []any {
	all, _ := d[name].([]any)
	return all
}

func TestPackage(t *testing.T) {
	generateCRD(t)
	dir := generate(t, "deepcopy-gen", "--output-file", "zz_generated.deepcopy.go", "./pkg/apis/...")
	data, err := os.ReadFile(filepath.Join(dir, "pkg/apis/myweb/v1/zz_generated.deepcopy.go"))
	if err != nil || !strings.Contains(string(data), "func (in *MyWebSpec) DeepCopy() ") {
		t.Error("deepcopy-gen made no copies: nothing asks for those of the package")
	}
}

func TestKind(t *testing.T) {
	version, spec := generateCRD(t)
	schema := version.at("schema", "openAPIV3Schema")
	if !schema.required("spec") || !spec.required("image") {
		t.Error("the CRD must require spec, and image in it")
	}
	if schema.at("properties", "metadata") == nil || schema.at("properties", "kind") == nil {
		t.Error("a MyWeb must have apiVersion, kind and metadata, as every object")
	}
	dir := generate(t, "deepcopy-gen", "--output-file", "zz_generated.deepcopy.go", "./pkg/apis/...")
	data, err := os.ReadFile(filepath.Join(dir, "pkg/apis/myweb/v1/zz_generated.deepcopy.go"))
	must(t, err)
	for _, kind := range []string{"MyWeb", "MyWebList"} {
		if !strings.Contains(string(data), "func (in *"+kind+") DeepCopyObject() runtime.Object") {
			t.Errorf("%s is not a runtime.Object: it has no DeepCopyObject", kind)
		}
	}
}

func TestReplicas(t *testing.T) {
	_, spec := generateCRD(t)
	replicas := spec.at("properties", "replicas")
	if replicas == nil {
		t.Fatal("the CRD has no field spec.replicas")
	}
	if spec.required("replicas") {
		t.Error("spec.replicas is required, but a user may leave it out")
	}
	for name, want := range map[string]any{"type": "integer", "default": 1.0, "minimum": 0.0, "maximum": 10.0} {
		if got := replicas[name]; got != want {
			t.Errorf("spec.replicas: %s is %v, must be %v", name, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	version, _ := generateCRD(t)
	schema := version.at("schema", "openAPIV3Schema")
	if schema.at("properties", "status", "properties", "readyReplicas") == nil {
		t.Fatal("the CRD has no field status.readyReplicas")
	}
	if schema.required("status") {
		t.Error("status is required, but a user who creates a MyWeb has none to give")
	}
	if version.at("subresources", "status") == nil {
		t.Error("the CRD has no subresource status: a user could write what the operator reports")
	}
}

func TestColumns(t *testing.T) {
	version, _ := generateCRD(t)
	want := [][3]string{{"Image", "string", ".spec.image"}, {"Ready", "integer", ".status.readyReplicas"},
		{"Age", "date", ".metadata.creationTimestamp"}}
	columns := version.list("additionalPrinterColumns")
	if len(columns) != len(want) {
		t.Fatalf("the CRD has %d columns, must have Image, Ready and Age", len(columns))
	}
	for n, column := range columns {
		c, _ := column.(map[string]any)
		if c["name"] != want[n][0] || c["type"] != want[n][1] || c["jsonPath"] != want[n][2] {
			t.Errorf("column %d is %v %v %v, must be %v", n+1, c["name"], c["type"], c["jsonPath"], want[n])
		}
	}
}

func TestClient(t *testing.T) {
	dir := generate(t, "client-gen", "--output-dir", "clients", "--clientset-name", "versioned",
		"--output-pkg", "example.com/operator-workshop/02-codegen/clients",
		"--input-base", "example.com/operator-workshop/02-codegen/pkg/apis", "--input", "myweb/v1")
	data, err := os.ReadFile(filepath.Join(dir, "clients/versioned/typed/myweb/v1/myweb.go"))
	if err != nil {
		t.Fatal("client-gen made no client of MyWebs")
	}
	if !strings.Contains(string(data), "UpdateStatus(ctx context.Context") {
		t.Error("the client has no UpdateStatus: an operator could not report anything")
	}
	if !strings.Contains(string(data), "MyWebs(namespace string) MyWebInterface") {
		t.Error("the client asks for no namespace, but a MyWeb is in one")
	}
}
