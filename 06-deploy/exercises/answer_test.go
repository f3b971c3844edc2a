// Package exercises has the checks of this chapter's exercises. Beside a reader's file they judge it; here they judge
// the solution.
package exercises

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/06-deploy/internal/manifests"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

// answer reads the manifests in a reader's file, or in the solution when the reader has no file.
func answer(t *testing.T, name, solution string) []*unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = os.ReadFile(solution)
	}
	testenv.Must(t, err)
	all, err := manifests.Read(bytes.NewReader(data))
	testenv.Must(t, err)
	return all
}

// only returns the one object of a kind.
func only[T any](t *testing.T, all []*unstructured.Unstructured, kind string) T {
	t.Helper()
	some, err := manifests.Only[T](all, kind)
	testenv.Must(t, err)
	if len(some) != 1 {
		t.Fatalf("there are %d objects of kind %s, want one", len(some), kind)
	}
	return some[0]
}
