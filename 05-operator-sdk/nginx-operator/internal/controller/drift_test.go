package controller

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/nginx-operator/internal/owned"
)

// A leaf is a field without fields, at a path of field names; in a list [key] stands for the element whose
// path in the container, name, or whole value, is key.
type leaf struct {
	path  []string
	value any
}

func (l leaf) String() string { return strings.Join(l.path, ".") }

// leaves are all fields of a tree that have no fields.
func leaves(tree any, path ...string) (all []leaf) {
	switch tree := tree.(type) {
	case map[string]any:
		if len(tree) == 0 {
			return []leaf{{path, tree}}
		}
		for _, key := range slices.Sorted(maps.Keys(tree)) {
			all = append(all, leaves(tree[key], append(slices.Clone(path), key)...)...)
		}
	case []any:
		for _, element := range tree {
			all = append(all, leaves(element, append(slices.Clone(path), "["+keyOf(element)+"]")...)...)
		}
	default:
		return []leaf{{path, tree}}
	}
	return all
}

func keyOf(element any) string {
	fields, ok := element.(map[string]any)
	switch {
	case ok && fields["mountPath"] != nil:
		return fmt.Sprint(fields["mountPath"])
	case ok:
		return fmt.Sprint(fields["name"])
	default:
		return fmt.Sprint(element)
	}
}

// find returns what is at a path, nil when nothing is.
func find(tree any, path []string) any {
	for _, step := range path {
		switch at := tree.(type) {
		case map[string]any:
			tree = at[step]
		case []any:
			i := slices.IndexFunc(at, func(e any) bool { return "["+keyOf(e)+"]" == step })
			if i < 0 {
				return nil
			}
			tree = at[i]
		default:
			return nil
		}
	}
	return tree
}

// put sets what is at a path; nil removes it.
func put(tree any, path []string, value any) {
	parent, last := find(tree, path[:len(path)-1]), path[len(path)-1]
	switch at := parent.(type) {
	case map[string]any:
		if at[last] = value; value == nil {
			delete(at, last)
		}
	case []any:
		i := slices.IndexFunc(at, func(e any) bool { return "["+keyOf(e)+"]" == last })
		at[i] = value
	}
}

// others are values that somebody might write instead of one; nil is for none at all.
func others(value any) []any {
	switch value := value.(type) {
	case bool:
		return []any{!value, nil}
	case int64:
		return []any{value + 1, nil}
	case map[string]any: // an empty one: a volume's emptyDir
		return []any{nil}
	case string:
		known := map[string]any{"IfNotPresent": "Always", "TCP": "UDP", "RuntimeDefault": "Unconfined",
			"ClusterIP": "NodePort",
			"ALL":       "NET_RAW", "run": "cache", "cache": "lib", "lib": "run", "content": "run",
			"net.ipv4.ip_unprivileged_port_start": "kernel.shm_rmid_forced"}
		return []any{value + "x", known[value], nil}
	}
	return nil
}

// signed is the tree that the operator wants of a child, with the mark and the owner that it gets.
func signed(t *testing.T, b *fixture, want runtime.ApplyConfiguration, child *owned.Child) map[string]any {
	t.Helper()
	_, err := b.Children.Apply(t.Context(), b.nginx(site), child) // nothing differs, so nothing is written
	b.must(err)
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(want)
	b.must(err)
	for _, unchangeable := range []string{"apiVersion", "kind"} {
		delete(tree, unchangeable)
	}
	for _, unchangeable := range []string{"name", "namespace", "uid"} {
		delete(tree["metadata"].(map[string]any), unchangeable)
	}
	return tree
}

// fixed are the fields that the API server lets nobody change.
var fixed = map[string][]string{"Deployment": {
	"spec.selector.matchLabels.app.kubernetes.io/instance", "spec.selector.matchLabels.app.kubernetes.io/name",
	"spec.template.metadata.labels.app.kubernetes.io/instance", "spec.template.metadata.labels.app.kubernetes.io/name",
	// mounts identify volumes by their names
	"spec.template.spec.volumes.[run].name", "spec.template.spec.volumes.[cache].name",
	"spec.template.spec.volumes.[lib].name", "spec.template.spec.volumes.[content].name",
}}

// Every field that the operator owns is changed, and removed, by somebody else: each time it is restored.
// What nobody can change is listed, so that no field is forgotten.
func TestEveryOwnedFieldIsRestored(t *testing.T) {
	t.Parallel()
	b := newFixture(t, serving("page"))
	b.must(b.cluster.Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "page"},
			Data: map[string]string{"index.html": "x"}}))
	b.reconcile()
	nginx, hash := b.nginx(site), get(b.cluster, site, &appsv1.Deployment{}).Spec.Template.Annotations[contentHash]
	pods, service := desiredDeployment(nginx, DefaultImage, hash), desiredService(nginx)
	own := func(kind string) string { return "metadata.ownerReferences.[" + nginx.Name + "]." + kind }
	changed, unchangeable := 0, map[string][]string{}
	for kind, tree := range map[string]map[string]any{
		"Deployment": signed(t, b, pods, owned.Deployment(pods)), "Service": signed(t, b, service, owned.Service(service)),
	} {
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(map[string]schema.GroupVersionKind{
			"Deployment": appsv1.SchemeGroupVersion.WithKind(kind), "Service": corev1.SchemeGroupVersion.WithKind(kind)}[kind])
		for _, l := range leaves(tree) {
			if l.String() == own("uid") {
				continue // it is somebody else's then, and not touched: see TestAnUnmanagedObjectIsNotChangedAndNoticedByAWatch
			}
			spoiled := 0
			for _, value := range others(l.value) {
				get(b.cluster, site, live)
				put(live.Object, l.path, value)
				if l.path[len(l.path)-1] == "emptyDir" { // a volume needs something
					put(live.Object, append(slices.Clone(l.path[:len(l.path)-1]), "configMap"), map[string]any{"name": "page"})
				}
				err := b.cluster.Update(t.Context(), live)
				if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
					t.Fatal(err)
				}
				if err != nil || reflect.DeepEqual(find(live.Object, l.path), l.value) { // refused, or a default
					continue
				}
				spoiled++
				b.reconcile()
				if got := find(get(b.cluster, site, live).Object, l.path); !reflect.DeepEqual(got, l.value) {
					t.Errorf("%s %s: %v was made %v, and is %v", kind, l, l.value, value, got)
				}
				if n := b.reconcile(); n != 0 {
					t.Errorf("%s %s: restored, and %d more writes were sent", kind, l, n)
				}
			}
			if changed += spoiled; spoiled == 0 {
				unchangeable[kind] = append(unchangeable[kind], l.String())
			}
		}
	}
	t.Logf("%d changes were undone", changed)
	if diff := cmp.Diff(fixed, unchangeable); diff != "" {
		t.Error("nobody can change:", diff)
	}
}
