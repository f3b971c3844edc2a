package controller

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
	"github.com/example/memcached-operator/internal/owned"
)

// The faults of the well-known sample of this operator, each with the test that fails when it comes back. The tests of
// two faults are elsewhere: a reconcile of the size only in reconcile_test.go, and the event filter for all watches,
// which needs a manager, in loop_test.go.

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
