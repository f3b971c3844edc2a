package suite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// Resources, as the ledger names them: of the MyWebs, of their status, and of their children.
const (
	Resource       = "mywebs.operator.k8s-summit.org"
	StatusResource = Resource + "/status"
	ConfigMaps     = "configmaps"
	Deployments    = "deployments.apps"
	Services       = "services"
)

// Kinds are the resources of the children.
var Kinds = []string{ConfigMaps, Deployments, Services}

// KindOf maps the resource of a MyWeb or of a child to its kind.
var KindOf = map[string]string{Resource: "MyWeb", ConfigMaps: "ConfigMap", Deployments: "Deployment", Services: "Service"}

// MyWebs is the resource that every implementation handles, and WebKind its kind.
var (
	MyWebs  = GVR(Resource)
	WebKind = MyWebs.GroupVersion().WithKind("MyWeb")
)

// GVR is a resource as a client names it.
func GVR(resource string) schema.GroupVersionResource {
	name, group, _ := strings.Cut(resource, ".")
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}
}

// Objects is the lab's client, past the proxy, for the objects of a resource in the check's namespace.
func (t *T) Objects(resource string) dynamic.ResourceInterface {
	return t.Fixture.Dynamic.Resource(GVR(resource)).Namespace(t.Namespace)
}

// Read returns an object.
func (t *T) Read(resource, name string) *unstructured.Unstructured {
	u, err := t.Objects(resource).Get(t.Ctx, name, metav1.GetOptions{})
	t.Must(err, "read "+resource+" "+name)
	return u
}

// user is the field manager of a user of the cluster.
const user = "user"

// Make creates a child's kind of object, as a user does.
func (t *T) Make(resource string, o metav1.Object) *unstructured.Unstructured {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	t.Must(err, "encode "+o.GetName())
	u := &unstructured.Unstructured{Object: object}
	u.SetGroupVersionKind(GVR(resource).GroupVersion().WithKind(KindOf[resource]))
	text := fmt.Sprintf("a user created %s %s", KindOf[resource], o.GetName())
	u, err = t.asUser(text, wire.Create, resource, o.GetName(), func() (*unstructured.Unstructured, error) {
		return t.Objects(resource).Create(t.Ctx, u, metav1.CreateOptions{FieldManager: user})
	})
	t.Must(err, "create "+KindOf[resource]+" "+o.GetName())
	return u
}

// Edit changes an object by a JSON merge patch, as a user does.
func (t *T) Edit(resource, name, patch string) {
	t.edit(resource, name, types.MergePatchType, patch)
}

// EditBy changes an object by the operations of a JSON patch, as a user does.
func (t *T) EditBy(resource, name string, operations any) {
	t.edit(resource, name, types.JSONPatchType, JSON(operations))
}

// shortened returns the beginning of a long patch.
func shortened(patch string) string {
	const most = 100
	if letters := []rune(patch); len(letters) > most {
		return string(letters[:most]) + "…"
	}
	return patch
}

func (t *T) edit(resource, name string, how types.PatchType, patch string) {
	text := fmt.Sprintf("a user changed %s %s by %s", KindOf[resource], name, shortened(patch))
	_, err := t.asUser(text, wire.Patch, resource, name, func() (*unstructured.Unstructured, error) {
		return t.Objects(resource).Patch(t.Ctx, name, how, []byte(patch), metav1.PatchOptions{FieldManager: user})
	})
	t.wantThere(resource, name, err)
	t.Must(err, fmt.Sprintf("edit %s %s by %.200s", resource, name, patch))
}

// Set sets a field of an object, by its JSON pointer, as a user does.
func (t *T) Set(resource, name, pointer string, value any) {
	t.EditBy(resource, name, []map[string]any{{"op": "add", "path": pointer, "value": value}})
}

// Remove requests the deletion of an object, with a propagation if one is given.
func (t *T) Remove(resource, name string, how ...metav1.DeletionPropagation) {
	var options metav1.DeleteOptions
	if len(how) > 0 {
		options.PropagationPolicy = &how[0]
	}
	text := fmt.Sprintf("a user deleted %s %s", KindOf[resource], name)
	unowned := t.unowned(resource, name)
	_, err := t.asUser(text, wire.Delete, resource, name, func() (*unstructured.Unstructured, error) {
		return nil, t.Objects(resource).Delete(t.Ctx, name, options)
	})
	t.wantThere(resource, name, err)
	t.Must(err, "delete "+resource+" "+name)
	t.mu.Lock()
	t.act.unowned = unowned
	t.mu.Unlock()
}

// wantThere ends the check when a user's request failed because the object does not exist.
func (t *T) wantThere(resource, name string, err error) {
	if apierrors.IsNotFound(err) {
		t.Fatalf("expected that %s %s exists; but %v", KindOf[resource], name, err)
	}
}

// unowned says which owner a child lacks, or that its owner reference names another kind. An operator that watches its
// children by their controller does not react to the deletion of such a child.
func (t *T) unowned(resource, name string) string {
	child, err := t.Objects(resource).Get(t.Ctx, name, metav1.GetOptions{})
	if err != nil || resource == Resource {
		return ""
	}
	if owner := metav1.GetControllerOf(child); owner != nil {
		if schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == WebKind.GroupKind() {
			return ""
		}
		return fmt.Sprintf("The owner reference of the deleted %s %s names %s %s; the MyWeb is %s %s.", KindOf[resource], name,
			owner.APIVersion, owner.Kind, WebKind.GroupVersion(), WebKind.Kind)
	}
	if len(child.GetOwnerReferences()) == 0 {
		return fmt.Sprintf("The deleted %s %s had no owner reference.", KindOf[resource], name)
	}
	return fmt.Sprintf("The deleted %s %s had an owner reference, but no owner was its controller.", KindOf[resource], name)
}

// AwaitGone returns when an object is gone.
func (t *T) AwaitGone(resource, name string, within time.Duration) {
	t.Eventually(KindOf[resource]+" "+name+" is gone", within, t.isGone(resource, name))
}

// isGone returns an error unless an object is gone. It says what keeps a child: the finalizers of its deleted MyWeb, or that
// no owner reference leads the garbage collector to it.
func (t *T) isGone(resource, name string) func() error {
	return func() error {
		o, err := t.Objects(resource).Get(t.Ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		switch web, err := t.Get(name); {
		case err != nil || web.DeletionTimestamp == nil || len(web.Finalizers) == 0:
		case resource == Resource:
			return fmt.Errorf("it is there, and it has the finalizers %s", strings.Join(web.Finalizers, ", "))
		default:
			return fmt.Errorf("it is there, and its deleted MyWeb has the finalizers %s", strings.Join(web.Finalizers, ", "))
		}
		if resource != Resource && len(o.GetOwnerReferences()) == 0 {
			return errors.New("it is there, and it has no owner reference")
		}
		return errors.New("it is there")
	}
}

// Another returns an error unless there is an object of that name with another UID.
func (t *T) Another(resource, name string, old types.UID) error {
	o, err := t.Objects(resource).Get(t.Ctx, name, metav1.GetOptions{})
	if err == nil && o.GetUID() == old {
		err = fmt.Errorf("the old one is still there")
	}
	return err
}

// About returns the entries about one of the resources, without other subresources.
func About(entries []ledger.Entry, resources ...string) []ledger.Entry {
	m := ledger.Match{Resources: resources}
	return slices.DeleteFunc(slices.Clone(entries), func(e ledger.Entry) bool { return !m.Matches(e) })
}

// Unmanaged is an object of another owner that has the name of a child. It has no field of a child.
func Unmanaged(resource, name string) metav1.Object {
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "legacy"}}
	switch resource {
	case ConfigMaps:
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"index.html": "mine", "other": "key"}}
	case Services:
		return &corev1.Service{ObjectMeta: meta,
			Spec: corev1.ServiceSpec{Selector: meta.Labels, Ports: []corev1.ServicePort{{Port: 8080}}}}
	}
	return &appsv1.Deployment{ObjectMeta: meta,
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "legacy", Image: "example.com/legacy"}}}}}}
}

// SameChildren fails the check when children were replaced, except those of some kinds.
func (t *T) SameChildren(before, after *Children, but ...string) {
	now := after.Objects()
	for kind, was := range before.Objects() {
		if now[kind].GetUID() != was.GetUID() && !slices.Contains(but, kind) {
			t.Errorf("expected the same children; but the %s was replaced: UID %s, before %s", kind, now[kind].GetUID(),
				was.GetUID())
		}
	}
	was, is := before.Service.Spec.ClusterIP, after.Service.Spec.ClusterIP
	if was != is && !slices.Contains(but, "Service") {
		t.Errorf("expected the same children; but the cluster IP of the Service is %s, before %s", is, was)
	}
}
