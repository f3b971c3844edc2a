package controller

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// The faults of the well-known sample of this operator, each with the test that fails when it comes back. The test
// of the last fault, the event filter for all watches, needs a manager: it is in loop_test.go.

func TestFault1OneSelectorForAllResources(t *testing.T) {
	one, other := sample(t), sample(t)
	other.Name = "other"
	if maps.Equal(selector(one), selector(other)) {
		t.Errorf("two Memcacheds have the selector %v: each Service would serve the other's pods", selector(one))
	}
	for _, m := range []*cachev1alpha1.Memcached{one, other} {
		for key, value := range selector(m) {
			if labels(m)[key] != value {
				t.Errorf("the selector of %s asks for %s=%s, its pods have %v", m.Name, key, value, labels(m))
			}
		}
	}
}

func TestFault2TheImagesTagInTheImmutableSelector(t *testing.T) {
	f := newFixture(t)
	f.complete()
	before := f.pods()
	f.update(func(s *cachev1alpha1.MemcachedSpec) { s.Image = "memcached:1.6.39-alpine" })
	f.reconcile()
	f.is(owned.Degraded, "False AsExpected")
	if after := f.pods(); after.UID != before.UID || f.container().Image != "memcached:1.6.39-alpine" {
		t.Errorf("Deployment %s with %s became %s with %s, want it upgraded in place",
			before.UID, before.Spec.Template.Spec.Containers[0].Image, after.UID, f.container().Image)
	}
}

func TestFault3APanicOnAnUntaggedImageOrARegistryWithAPort(t *testing.T) {
	digest := "@sha256:" + strings.Repeat("0123456789abcdef", 4)
	f := newFixture(t)
	for name, image := range map[string]string{
		"no tag":                       "memcached",
		"a registry with a port":       "registry:5000/memcached",
		"that, and a tag":              "registry:5000/team/memcached:1.6-alpine",
		"a digest":                     "memcached" + digest,
		"a registry, a tag, a digest":  "registry.example.com:5000/a/b:1.6" + digest,
		"a registry by its address":    "[::1]:5000/memcached:1.6",
		"what the grammar refuses too": "Memcached::",
	} {
		t.Run(name, func(t *testing.T) {
			f.update(func(s *cachev1alpha1.MemcachedSpec) { s.Image = image })
			f.reconcile()
			if got := f.container().Image; got != image {
				t.Errorf("the container has the image %q", got)
			}
			if n := f.reconcile(); n != 0 {
				t.Errorf("in steady state %d writes were sent", n)
			}
		})
	}
}

// A leaf is a field that contains no other fields, or an element of a list, by its path.
type leaf []any

func (l leaf) String() string {
	text := ""
	for _, step := range l {
		text += fmt.Sprintf(".%v", step)
	}
	return text[1:]
}

// leaves returns all leaves that an apply would own.
func leaves(tree any, path ...any) (all []leaf) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			all = append(all, leaves(tree[key], append(slices.Clone(path), key)...)...)
		}
	case []any:
		for i := range tree {
			all = append(all, leaves(tree[i], append(slices.Clone(path), i)...)...)
		}
	}
	if len(all) == 0 {
		return []leaf{path}
	}
	return all
}

// damaged returns a copy of an object with another value of a leaf, or without the leaf. ok is false when the
// object has no such leaf.
func damaged(obj map[string]any, at leaf, value any) (spoiled map[string]any, ok bool) {
	spoiled = runtime.DeepCopyJSON(obj)
	var here any = spoiled
	for _, step := range at[:len(at)-1] {
		switch step := step.(type) {
		case string:
			here = here.(map[string]any)[step]
		case int:
			here = here.([]any)[step]
		}
	}
	switch last := at[len(at)-1].(type) {
	case string:
		fields := here.(map[string]any)
		if _, ok = fields[last]; ok && value == nil {
			delete(fields, last)
		} else if ok {
			fields[last] = value
		}
	case int:
		list := here.([]any)
		if ok = value != nil; ok { // the list without the element is the damage of another leaf
			list[last] = value
		}
	}
	return spoiled, ok
}

// others returns other values for a leaf. The API server refuses most words that it does not know.
func others(value any) []any {
	switch value := value.(type) {
	case bool:
		return []any{!value}
	case int64:
		return []any{value + 1}
	case string:
		return []any{value + "x", "Always", "UDP", "NodePort", "Unconfined", "1", "200Mi", "1Gi"}
	}
	return []any{"x"}
}

// owner is the path of the owner's UID: a child with another UID has another owner, and is not restored.
const owner = "metadata.ownerReferences.0.uid"

// containerName is the path of the name, which identifies a container: a client that changes the name removes our
// container and adds another one.
const containerName = "spec.template.spec.containers.0.name"

// immutable matches the leaves that the API server lets no client change.
var immutable = regexp.MustCompile(`^(apiVersion|kind|metadata\.(name|namespace)|` +
	`spec\.selector\.matchLabels\.app\.kubernetes\.io/.*|` +
	`spec\.template\.metadata\.labels\.app\.kubernetes\.io/(name|instance))$`)

func TestFault4OnlyTheSizeReconciled(t *testing.T) {
	// with all optional fields
	f := newFixture(t, named, func(m *cachev1alpha1.Memcached) { m.Spec.ContainerPort = 80 })
	f.configure(map[string]string{KeyVerbose: "3"})
	f.complete()
	config, err := f.core.config(t.Context(), f.memcached())
	f.must(err)
	total := 0
	for name, test := range map[string]struct {
		wanted any
		live   client.Object
	}{
		"Deployment": {desiredDeployment(f.memcached(), config, defaultImage), &appsv1.Deployment{}},
		"Service":    {desiredService(f.memcached()), &corev1.Service{}},
	} {
		wanted, err := runtime.DefaultUnstructuredConverter.ToUnstructured(test.wanted)
		f.must(err)
		wanted["metadata"].(map[string]any)["annotations"] = map[string]any{"cache.example.com/applied": ""}
		wanted["metadata"].(map[string]any)["ownerReferences"] = []any{map[string]any{
			"apiVersion": "", "kind": "", "name": "", "controller": true, "uid": ""}}
		before := tree(f, test.live)
		for _, at := range leaves(wanted) {
			if at.String() == owner {
				continue
			}
			done := 0
			for _, value := range others(valueAt(before, at)) { // the first value that the API server accepts
				if done == 0 {
					done = f.spoil(t, name, test.live, at, value)
				}
			}
			done += f.spoil(t, name, test.live, at, nil) // and without the leaf
			if done == 0 && !immutable.MatchString(at.String()) {
				t.Errorf("%s: %s could not be changed at all: the test is blind there", name, at)
			}
			total += done
		}
	}
	t.Logf("%d kinds of damage, all restored", total)
}

func valueAt(tree any, at leaf) any {
	for _, step := range at {
		switch step := step.(type) {
		case string:
			tree = tree.(map[string]any)[step]
		case int:
			tree = tree.([]any)[step]
		}
	}
	return tree
}

// tree reads an object as fields, without those that change by themselves.
func tree(f *fixture, obj client.Object) map[string]any {
	f.t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(get(f, obj))
	f.must(err)
	delete(fields, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(fields["metadata"].(map[string]any), field)
	}
	return fields
}

// spoil damages one leaf, as another client would, and checks that the operator restores it. It returns 0 when it
// could not damage the leaf: the API server refused the change, or set a default for a removed field.
func (f *fixture) spoil(t *testing.T, kind string, obj client.Object, at leaf, value any) int {
	t.Helper()
	before := tree(f, obj)
	spoiled, ok := damaged(before, at, value)
	if !ok {
		return 0
	}
	u := &unstructured.Unstructured{Object: spoiled}
	gvk, err := f.GroupVersionKindFor(obj)
	f.must(err)
	u.SetGroupVersionKind(gvk)
	if err := f.Update(t.Context(), u, client.FieldOwner("somebody")); err != nil {
		return 0
	}
	if fmt.Sprint(tree(f, obj)) == fmt.Sprint(before) {
		return 0
	}
	what := fmt.Sprintf("%s: %s, %v instead of %v", kind, at, value, valueAt(before, at))
	if n := f.reconcile(); n == 0 {
		t.Fatalf("%s: nothing was written", what)
	}
	if at.String() == containerName { // our container comes back beside the renamed one, which the operator now ignores
		if len(f.pods().Spec.Template.Spec.Containers) != 2 {
			t.Fatalf("%s: it was not made again", what)
		}
		f.must(f.Delete(t.Context(), obj))
		f.reconcile()
	} else if fields := tree(f, obj); fmt.Sprint(valueAt(fields, at)) != fmt.Sprint(valueAt(before, at)) {
		t.Fatalf("%s: it is now %v", what, valueAt(fields, at))
	}
	if n := f.reconcile(); n != 0 {
		t.Fatalf("%s: restored, and %d writes more", what, n)
	}
	return 1
}

func TestFault5AvailableWithoutLookingAtReadyReplicas(t *testing.T) {
	f := newFixture(t)
	f.reconcile()
	f.is(owned.Available, "False NoReadyPod")
	f.deploy(0)
	f.reconcile()
	f.is(owned.Available, "False NoReadyPod")
	f.deploy(1)
	f.reconcile()
	f.is(owned.Available, "True Serving")
	f.is(owned.Progressing, "True RollingOut")
	f.deploy(0)
	f.reconcile()
	f.is(owned.Available, "False NoReadyPod")
}

func TestFault6DeprecatedWords(t *testing.T) {
	deprecated := regexp.MustCompile(`\bRequeue:\s*true|GetEventRecorderFor\(|scheme\.Builder\{|client\.Apply,`)
	files := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "faults_test.go") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if found := deprecated.Find(text); found != nil {
			t.Errorf("%s has %q", path, found)
		}
		return err
	})
	if err != nil || files < 10 {
		t.Errorf("%d files were read: %v", files, err)
	}
}
