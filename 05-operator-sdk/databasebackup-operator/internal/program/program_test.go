package program

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

func TestWhatTheCacheHolds(t *testing.T) {
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}},
			Data:       map[string]string{"key": "much"}}
	}
	for name, test := range map[string]struct {
		namespaces []string
		transform  func(any) (any, error)
		data       int
	}{
		"all namespaces, nothing cut": {nil, nil, 1},
		"two, and cut": {
			[]string{"a", "b"}, func(obj any) (any, error) { obj.(*corev1.ConfigMap).Data = nil; return obj, nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := CacheOptions(test.namespaces, test.transform)
			if got := slices.Sorted(maps.Keys(options.DefaultNamespaces)); !slices.Equal(got, test.namespaces) {
				t.Errorf("it is of %v", got)
			}
			kept, err := options.DefaultTransform(object())
			if got := kept.(*corev1.ConfigMap); err != nil || len(got.Data) != test.data || got.ManagedFields != nil {
				t.Errorf("it keeps %+v, %v", got, err)
			}
		})
	}
}

func TestAnAPIServerThatCannotBeReached(t *testing.T) {
	given := &rest.Config{Host: "https://127.0.0.1:1"}
	_, err := newManager(given, *options(t),
		Operator{Name: "test", Scheme: runtime.NewScheme(), Kind: corev1.SchemeGroupVersion.WithKind("Pod")})
	if err == nil || !strings.Contains(err.Error(), "https://127.0.0.1:1") ||
		!strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	if given.UserAgent != "" || given.QPS != 0 {
		t.Errorf("the given configuration was changed: %+v", given)
	}
}
