package controller

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	cachev1alpha1 "github.com/example/memcached-operator/api/v1alpha1"
)

func TestWhatTheIndexHolds(t *testing.T) {
	for name, test := range map[string]struct {
		ref  *cachev1alpha1.ConfigReference
		want []string
	}{
		"no ConfigMap":      {nil, nil},
		"one, by its name":  {&cachev1alpha1.ConfigReference{Name: "config"}, []string{"config"}},
		"one, without name": {&cachev1alpha1.ConfigReference{}, []string{"memcached-sample"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			m.Spec.ConfigRef = test.ref
			if got := indexConfigRef(m); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhatTheCacheKeeps(t *testing.T) {
	ours := metav1.OwnerReference{APIVersion: "cache.example.com/v1alpha1", Kind: "Memcached", Name: "site",
		UID: "u-1", Controller: new(true)}
	full := func(owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7",
			Labels: map[string]string{"a": "b"}, OwnerReferences: owners}
	}
	named := metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7"}
	pods := appsv1.DeploymentSpec{Replicas: new(int32(3))}
	for name, test := range map[string]struct{ obj, want any }{
		"a Memcached": {&cachev1alpha1.Memcached{ObjectMeta: full()}, &cachev1alpha1.Memcached{ObjectMeta: full()}},
		"a ConfigMap that may be named": {
			&corev1.ConfigMap{ObjectMeta: full(), Data: map[string]string{"memoryMB": "1", "verbose": "", "x": "much"}},
			&corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"memoryMB": "1", "verbose": ""}}},
		"a ConfigMap of others": {
			&corev1.ConfigMap{ObjectMeta: full(), Data: map[string]string{"x": "much"}, BinaryData: map[string][]byte{"b": {1}}},
			&corev1.ConfigMap{ObjectMeta: named}},
		"a Deployment of ours": {&appsv1.Deployment{ObjectMeta: full(ours), Spec: pods},
			&appsv1.Deployment{ObjectMeta: full(ours), Spec: pods}},
		"a Deployment of others": {&appsv1.Deployment{ObjectMeta: full(), Spec: pods}, &appsv1.Deployment{ObjectMeta: named}},
		"a Service of others": {&corev1.Service{ObjectMeta: full(), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}},
			&corev1.Service{ObjectMeta: named}},
		"what is no object": {"text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Trim(test.obj)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
			twice, err := Trim(got) // client-go may trim an object twice
			if diff := cmp.Diff(test.want, twice); diff != "" || err != nil {
				t.Error("trimmed twice:", diff, err)
			}
		})
	}
}

func TestWhatPassesThePredicates(t *testing.T) {
	owner := func(apiVersion, kind string, controller bool) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{
			APIVersion: apiVersion, Kind: kind, Controller: &controller}}}}
	}
	another := owner("cache.example.com/v1alpha1", "Memcached", true)
	another.Name = "other"
	for name, test := range map[string]struct {
		obj  *corev1.Service
		want bool
	}{
		"of nobody":                         {&corev1.Service{}, true},
		"of a Memcached of another name":    {another, true},
		"of another kind":                   {owner("apps/v1", "Deployment", true), true},
		"of a Memcached of another group":   {owner("example.com/v1", "Memcached", true), true},
		"owned by one, controlled by none":  {owner("cache.example.com/v1alpha1", "Memcached", false), true},
		"of a Memcached, which Owns maps":   {owner("cache.example.com/v1alpha1", "Memcached", true), false},
		"of a Memcached of another version": {owner("cache.example.com/v1", "Memcached", true), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unmanaged.Create(event.CreateEvent{Object: test.obj}); got != test.want {
				t.Errorf("it passes: %v, want %v", got, test.want)
			}
		})
	}
	config := func(value string) *corev1.ConfigMap {
		return &corev1.ConfigMap{Data: map[string]string{"memoryMB": value}}
	}
	for name, test := range map[string]struct {
		was, is *corev1.ConfigMap
		want    bool
	}{
		"another value":  {config("1"), config("2"), true},
		"the same":       {config("1"), config("1"), false},
		"a key was gone": {config("1"), &corev1.ConfigMap{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := dataChanged.Update(event.UpdateEvent{ObjectOld: test.was, ObjectNew: test.is}); got != test.want {
				t.Errorf("it passes: %v, want %v", got, test.want)
			}
		})
	}
	if !dataChanged.Create(event.CreateEvent{}) || !dataChanged.Delete(event.DeleteEvent{}) {
		t.Error("a ConfigMap that comes or goes must enqueue")
	}
}
