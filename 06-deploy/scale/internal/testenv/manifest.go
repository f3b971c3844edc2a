package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// ReadManifest reads the object in a file, which may hold no field that its type does not have.
func ReadManifest[T any](t testing.TB, path ...string) *T {
	t.Helper()
	object := new(T)
	data, err := os.ReadFile(filepath.Join(path...))
	if err == nil {
		err = yaml.UnmarshalStrict(data, object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}
