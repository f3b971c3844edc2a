package crd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/01-crd/internal/testenv"
)

const (
	contract = "config/crd/operator.k8s-summit.org_mywebs.yaml"
	original = "samples/myweb.yaml"
)

// newClient returns a client that asks the API server to refuse unknown fields, as kubectl does.
func newClient(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{FieldValidation: metav1.FieldValidationStrict})
	testenv.Must(t, err)
	return c
}

// readObject reads the one object of a YAML file.
func readObject(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	data, err := os.ReadFile(path)
	testenv.Must(t, err)
	obj := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, obj); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return obj
}

// readMyWeb reads a MyWeb and puts it into namespace default, as kubectl would.
func readMyWeb(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	web := readObject(t, path)
	web.SetNamespace("default")
	return web
}

// newMyWeb makes a MyWeb with the given spec.
func newMyWeb(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.k8s-summit.org/v1",
		"kind":       "MyWeb",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       spec,
	}}
}

// mergePatch makes a patch that sets the given fields; null removes one.
func mergePatch(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// create creates the MyWeb and deletes it when the test ends.
func create(t *testing.T, c client.Client, web *unstructured.Unstructured) {
	t.Helper()
	testenv.Must(t, c.Create(t.Context(), web))
	ctx := context.WithoutCancel(t.Context()) // t.Context() ends before cleanup begins
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(ctx, web)); err != nil {
			t.Error(err)
		}
	})
}

// get reads the MyWeb of that name from the API server.
func get(t *testing.T, c client.Client, name string) *unstructured.Unstructured {
	t.Helper()
	web := newMyWeb(name, nil)
	testenv.Must(t, c.Get(t.Context(), client.ObjectKeyFromObject(web), web))
	return web
}

// checkRefused returns nil when err is the API server's refusal of the field at path and its
// message contains the given sentence.
func checkRefused(err error, path, sentence string) error {
	if err == nil {
		return fmt.Errorf("accepted, want a refusal of %s: %s", path, sentence)
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return fmt.Errorf("not an answer of the API server: %w", err)
	}
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Field == path && strings.Contains(cause.Message, sentence) {
				return nil
			}
		}
	}
	// A field that is not in the schema is refused before validation: its path is in the message.
	if strings.Contains(err.Error(), fmt.Sprintf("strict decoding error: %s %q", sentence, path)) {
		return nil
	}
	return fmt.Errorf("refused otherwise, want %s: %s\n got %w", path, sentence, err)
}

// readRefusal reads the first line of a bad sample, "# refused: <field path>: <sentence>".
func readRefusal(t *testing.T, path string) (field, sentence string) {
	t.Helper()
	f, err := os.Open(path)
	testenv.Must(t, err)
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	testenv.Must(t, err)
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "# refused: ")
	field, sentence, found := strings.Cut(rest, ": ")
	if !ok || !found {
		t.Fatalf("%s starts with %q, want \"# refused: <field path>: <sentence>\"", path, line)
	}
	return field, sentence
}

// files returns the files that match the pattern. The test fails when no file matches.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files match %s (%v)", pattern, err)
	}
	return paths
}

// eventually repeats check until it returns nil. The API server takes a moment to serve a changed
// CRD, although it has stored it.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	last := errors.New("never checked")
	if err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true,
		func(ctx context.Context) (bool, error) {
			last = check()
			return last == nil, nil
		}); err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}
