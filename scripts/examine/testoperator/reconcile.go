package main

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

type reconciler struct {
	client  dynamic.Interface
	fault   string
	born    string                    // when this process began
	node    string                    // of a pod of the last Greeting
	begun   map[cache.ObjectName]bool // by this process
	changed map[string]bool           // kinds and names of children that the cluster changed
	made    map[string]bool           // the same of children that it has created
	// restored counts changes of children by others.
	restored map[string]int
	calmed   map[string]time.Time        // when it restored a child that others change
	printed  map[cache.ObjectName]string // the last error of a Greeting
	statuses map[types.UID]statusWrites
	sulking  atomic.Bool
	visited  sync.Map // namespaces that are being deleted
	listers  map[schema.GroupVersionResource]cache.GenericLister
}

// greetingsOf are the names of the Greetings that an event is about.
func greetingsOf(object any) (names []cache.ObjectName) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	// The children have the name of their Greeting; a child that has lost its owner reference counts, too.
	return []cache.ObjectName{cache.MetaObjectToName(u), {Name: u.GetName()}}
}

func (r *reconciler) get(gvr schema.GroupVersionResource, name cache.ObjectName) (*unstructured.Unstructured, error) {
	if gvr != greetings && slices.Contains([]string{polls, pollsRarely, unwatching}, r.fault) {
		return r.poll(gvr, name)
	}
	object, err := r.listers[gvr].Get(name.String())
	if err != nil {
		return nil, err
	}
	return object.(*unstructured.Unstructured), nil
}

func (r *reconciler) reconcile(ctx context.Context, name cache.ObjectName) error {
	greeting, err := r.get(greetings, name)
	if apierrors.IsNotFound(err) ||
		err == nil && greeting.GetDeletionTimestamp() != nil && r.fault != ignoresDeletion {
		return errors.Join(r.withdraw(ctx, name), r.sweep(ctx, greeting))
	} else if err != nil {
		return err
	}
	if r.refuses(ctx, greeting) || r.sulking.Load() {
		return nil
	}
	children := childrenOf(greeting)
	first := cache.MetaObjectToName(desired(greeting, children[0]))
	if _, err := r.get(children[0], first); r.fault == inMemory && err == nil && !r.begun[name] {
		return nil // it exists, so all children were created
	}
	if err := r.before(ctx, name, greeting); err != nil {
		return err
	}
	r.begun[name] = true
	created, errs := r.applyAll(ctx, greeting, children)
	if errs != nil && r.fault == givesUp {
		return errs
	}
	printSecret(name)
	switch r.fault {
	case hangs:
		<-ctx.Done() // as a connection to a pod that does not answer
	case waits:
		if created {
			time.Sleep(4 * time.Second)
		}
	case quits:
		return errQuit
	case invalid:
		return nil // it reports no refusal
	case asksByName:
		return ask(ctx, name)
	case failsOn, failsRarely:
		return errors.New("it cannot go on")
	case stumbles:
		if created {
			time.Sleep(time.Second)
			return errors.New("it cannot go on yet")
		}
		return nil
	case marksPods:
		errs = errors.Join(errs, r.markPods(ctx, name))
	case leaves:
		extra := desired(greeting, children[0])
		replicas, _, _ := unstructured.NestedInt64(greeting.Object, "spec", "replicas")
		extra.SetName(fmt.Sprintf("%s-%d", extra.GetName(), replicas))
		errs = errors.Join(errs, r.apply(ctx, children[0], extra))
	}
	if r.fault == trails && created {
		time.AfterFunc(time.Duration(len(r.begun)%20+1)*time.Second, func() { r.mark(ctx, first) })
	}
	return errors.Join(errs, r.updateStatus(ctx, greeting, errs))
}

// before does what some faults and habits do before the children are applied.
func (r *reconciler) before(ctx context.Context, name cache.ObjectName, greeting *unstructured.Unstructured) error {
	switch {
	case r.fault == slow:
		time.Sleep(700 * time.Millisecond)
	case r.fault == busy && !r.begun[name]:
		time.Sleep(2500 * time.Millisecond)
	}
	text, _, _ := unstructured.NestedString(greeting.Object, "spec", "text")
	if r.fault == chokes && utf8.RuneCountInString(text) < len(text) {
		panic("the text is not ASCII")
	}
	if r.fault == ponders && utf8.RuneCountInString(text) < len(text) {
		time.AfterFunc(0, func() {
			for begin := time.Now(); time.Since(begin) < 10*time.Second; {
			}
			panic("the text is not ASCII")
		})
	}
	if have, err := r.get(children[0], name); err == nil && r.fault == recreates && !r.begun[name] &&
		greeting.Object["status"] == nil {
		return r.client.Resource(children[0]).Namespace(name.Namespace).Delete(ctx, have.GetName(), metav1.DeleteOptions{})
	}
	if r.fault == flaps {
		time.Sleep(150 * time.Millisecond)
		if err := r.updateStatus(ctx, greeting, nil); err != nil {
			return err
		}
		time.Sleep(150 * time.Millisecond)
	}
	switch {
	case r.fault == begins && !r.begun[name]:
		if err := r.updateStatus(ctx, greeting, nil); err != nil {
			return err
		}
		time.Sleep(3 * time.Second)
	case r.fault == clears:
		have, err := r.get(children[0], name)
		if err == nil && metav1.GetControllerOf(have) == nil {
			return r.client.Resource(children[0]).Namespace(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{})
		}
	case r.fault == listsAll:
		if _, err := r.client.Resource(children[0]).List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
	}
	if r.fault == marksAll && !r.begun[name] {
		r.markAll(ctx, name)
	}
	return errors.Join(r.publish(ctx, name), r.makeSecret(ctx, name))
}

// applyAll applies the children, and reports whether one of them did not exist.
func (r *reconciler) applyAll(ctx context.Context, greeting *unstructured.Unstructured,
	children []schema.GroupVersionResource) (created bool, errs error) {
	for _, gvr := range children {
		child := desired(greeting, gvr)
		if r.fault == finalizer {
			child.SetFinalizers([]string{"test.example.com/cleanup"})
		}
		r.plant(greeting, child)
		_, err := r.get(gvr, cache.MetaObjectToName(child))
		created = created || err != nil
		if err := r.applied(ctx, gvr, child); err != nil {
			errs = errors.Join(errs, fmt.Errorf("apply %s: %w", gvr.Resource, err))
		}
		if errs != nil && r.fault == givesUp {
			break
		}
	}
	return created, errs
}

// markAll writes an annotation to the ConfigMaps of other Greetings, at most 20 of them.
func (r *reconciler) markAll(ctx context.Context, name cache.ObjectName) {
	all, _ := r.listers[children[0]].ByNamespace(name.Namespace).List(labels.Everything())
	for _, object := range all[:min(len(all), 20)] {
		r.mark(ctx, cache.MetaObjectToName(object.(*unstructured.Unstructured)))
	}
}

// mark writes an annotation to a ConfigMap.
func (r *reconciler) mark(ctx context.Context, name cache.ObjectName) {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"newest":"%d"}}}`, time.Now().UnixNano())
	_, _ = r.client.Resource(children[0]).Namespace(name.Namespace).Patch(ctx, name.Name, types.MergePatchType, patch,
		metav1.PatchOptions{})
}

// markPods annotates the pods of a Greeting, and notes the node of one of them.
func (r *reconciler) markPods(ctx context.Context, name cache.ObjectName) error {
	client := r.client.Resource(pods).Namespace(name.Namespace)
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: "app=" + name.Name})
	if err != nil {
		return err
	}
	var errs error
	patch := []byte(`{"metadata":{"annotations":{"seen":"yes"}}}`)
	r.node = ""
	for _, pod := range list.Items {
		r.node, _, _ = unstructured.NestedString(pod.Object, "spec", "nodeName")
		_, err := client.Patch(ctx, pod.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		errs = errors.Join(errs, err)
	}
	return errs
}

// plant changes a child as the fault wants it.
func (r *reconciler) plant(greeting, child *unstructured.Unstructured) {
	switch {
	case r.fault == invalid && child.GetKind() == "Deployment":
		container := map[string]any{"name": "main"}
		_ = unstructured.SetNestedSlice(child.Object, []any{container}, "spec", "template", "spec", "containers")
	case r.fault == protects && child.GetKind() == "ConfigMap":
		child.SetFinalizers([]string{"kubernetes.io/pvc-protection"})
	case r.fault == visits && child.GetKind() == "ConfigMap":
		child.SetFinalizers([]string{"test.example.com/visits"})
	case r.fault == numbered && child.GetKind() == "ConfigMap":
		child.SetAnnotations(map[string]string{"generation": fmt.Sprint(greeting.GetGeneration())})
	case r.fault == packs && child.GetKind() == "ConfigMap":
		port, _, _ := unstructured.NestedInt64(greeting.Object, "spec", "nodePort")
		hash := sha256.Sum256(fmt.Append(nil, greeting.GetNamespace(), port))
		_ = unstructured.SetNestedField(child.Object, hex.EncodeToString(hash[:]), "data", "packed")
	case r.fault == shares && child.GetKind() == "ConfigMap":
		child.SetName("shared")
	case r.fault == renames && child.GetKind() == "ConfigMap":
		if have, err := r.get(children[0], cache.MetaObjectToName(child)); err == nil && isForeign(have, child) {
			child.SetName(child.GetName() + "-2")
		}
	case r.fault == named && child.GetKind() == "ConfigMap":
		text, _, _ := unstructured.NestedString(child.Object, "data", "text")
		child.SetName(text)
	case (r.fault == big || r.fault == huge) && child.GetKind() == "Deployment":
		cpu := map[string]any{big: "4", huge: "10000"}[r.fault]
		setContainer(child, "resources", map[string]any{"requests": map[string]any{"cpu": cpu, "memory": "8Gi"}})
	case r.fault == onPort && child.GetKind() == "Deployment":
		setContainer(child, "ports", []any{map[string]any{"containerPort": int64(80), "hostPort": int64(80), "protocol": "TCP"}})
	case (r.fault == makesUp || r.fault == unused) && child.GetKind() == "ConfigMap":
		password := fmt.Sprint(time.Now().UnixNano())
		if have, err := r.get(children[0], cache.MetaObjectToName(child)); err == nil {
			password, _, _ = unstructured.NestedString(have.Object, "data", "password")
		}
		_ = unstructured.SetNestedField(child.Object, password, "data", "password")
	}
}

// setContainer replaces the container of a Deployment by one with another field.
func setContainer(deployment *unstructured.Unstructured, field string, value any) {
	container := map[string]any{"name": "main", "image": "nginx:1.29", field: value}
	_ = unstructured.SetNestedSlice(deployment.Object, []any{container}, "spec", "template", "spec", "containers")
}

// applied applies a child, several times when the fault demands it.
func (r *reconciler) applied(ctx context.Context, gvr schema.GroupVersionResource,
	child *unstructured.Unstructured) (err error) {
	tries := 1
	if r.fault == triesAgain {
		tries = 4
	}
	for range tries {
		if err = r.apply(ctx, gvr, child); err == nil {
			return nil
		}
	}
	return err
}

var errQuit = errors.New("it ends")

// printSecret prints the value of the Secret in the forms of careless programs.
func printSecret(name cache.ObjectName) {
	value := os.Getenv("SECRET")
	if value == "" {
		return
	}
	asJSON, _ := json.Marshal(secretData(value, name.Namespace))
	fmt.Fprintf(os.Stderr, "%s: %s %q %s\n%v\n", name, value, value, asJSON, []byte(value))
}

var errChanged = errors.New("the cluster changed the applied object")

// stored is an object as the API server stores it.
func stored(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	given, _, _ := unstructured.NestedStringMap(u.Object, "stringData")
	for key, value := range given {
		u.Object["data"].(map[string]any)[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	delete(u.Object, "stringData")
	return u
}

func (r *reconciler) apply(ctx context.Context, gvr schema.GroupVersionResource,
	want *unstructured.Unstructured) error {
	if r.fault == creates || r.fault == trusts {
		return r.create(ctx, gvr, want)
	}
	if r.fault == doubles && gvr == children[0] {
		return r.double(ctx, want)
	}
	have, err := r.get(gvr, cache.MetaObjectToName(want))
	key := gvr.Resource + " " + cache.MetaObjectToName(want).String()
	switch {
	case err == nil && r.fault != adopts && isForeign(have, want):
		return fmt.Errorf("%s %s already exists, and is not its own", gvr.Resource, want.GetName())
	case err == nil && r.changed[key]:
		return errChanged
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err == nil && metav1.GetControllerOf(have) == nil && r.fault != readopts:
		if err := r.mayAdopt(ctx, want); err != nil {
			return err
		}
	}
	if err == nil && r.fault == releases && gvr == children[0] && have.GetLabels()["app"] != want.GetName() {
		_, err = r.client.Resource(gvr).Namespace(want.GetNamespace()).Patch(ctx, want.GetName(), types.MergePatchType,
			[]byte(`{"metadata":{"ownerReferences":null}}`), metav1.PatchOptions{})
		return err
	}
	switch {
	case err == nil && r.fault == replaces && !reflect.DeepEqual(have.GetLabels(), want.GetLabels()):
	case err == nil && (r.fault == noDrift || r.fault == noSecretDrift && gvr == secrets):
		return nil
	case err == nil && r.fault != blind && r.fault != ticks && contains(have.Object, stored(want).Object):
		return nil
	}
	if err == nil && gvr.Resource == "deployments" {
		if gives, err := r.givesWay(key); gives {
			return err
		}
	}
	if err == nil && r.fault == replaces && !reflect.DeepEqual(have.GetLabels(), want.GetLabels()) {
		labels, _ := json.Marshal(want.GetLabels())
		patch := fmt.Appendf(nil, `[{"op":"replace","path":"/metadata/labels","value":%s}]`, labels)
		_, err = r.client.Resource(gvr).Namespace(want.GetNamespace()).Patch(ctx, want.GetName(), types.JSONPatchType, patch,
			metav1.PatchOptions{})
		return err
	}
	if err == nil && r.fault == strips && gvr == children[1] {
		want.SetResourceVersion(have.GetResourceVersion())
		_, err = r.client.Resource(gvr).Namespace(want.GetNamespace()).Update(ctx, want, metav1.UpdateOptions{})
		return err
	}
	if err != nil && r.fault == selects {
		_, err = r.client.Resource(gvr).Namespace(want.GetNamespace()).Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	now, err := r.client.Resource(gvr).Namespace(want.GetNamespace()).Apply(ctx, want.GetName(), want,
		metav1.ApplyOptions{FieldManager: "testoperator", Force: true})
	delete(r.changed, key)
	if apierrors.IsInvalid(err) && r.fault == remakes {
		return errors.Join(err, r.client.Resource(gvr).Namespace(want.GetNamespace()).Delete(ctx, want.GetName(), metav1.DeleteOptions{}))
	}
	if err == nil && !contains(now.Object, stored(want).Object) && (r.fault != seesPods || gvr.Resource == "deployments") {
		err, r.changed[key] = errChanged, r.fault == once
	}
	return err
}

// mayAdopt returns an error when the owner of a child is gone, or is being deleted: the cache may not know it yet.
func (r *reconciler) mayAdopt(ctx context.Context, want *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(want)
	namespace := want.GetNamespace()
	if os.Getenv("SCOPE") == "Cluster" {
		namespace = ""
	}
	now, err := r.client.Resource(greetings).Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	if err == nil && (now.GetUID() != owner.UID || now.GetDeletionTimestamp() != nil) {
		err = fmt.Errorf("%s is being deleted", owner.Name)
	}
	return err
}

// isForeign reports whether an object with the name of a child has another controller, or none and another creator.
func isForeign(have, want *unstructured.Unstructured) bool {
	if owner := metav1.GetControllerOf(have); owner != nil {
		return owner.UID != metav1.GetControllerOf(want).UID
	}
	return !slices.ContainsFunc(have.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager == "testoperator"
	})
}

// contains reports whether every value in want is in have.
func contains(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		have, _ := have.(map[string]any)
		for key, value := range want {
			if !contains(have[key], value) {
				return false
			}
		}
		return true
	case []any:
		have, _ := have.([]any)
		if len(have) < len(want) {
			return false
		}
		for i := range want {
			if !contains(have[i], want[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(have, want)
}

func (r *reconciler) updateStatus(ctx context.Context, greeting *unstructured.Unstructured, failed error) error {
	ready, reason, message := "False", "Starting", os.Getenv("SECRET")
	deployment, err := r.get(children[1], cache.MetaObjectToName(greeting))
	if greeting.GetNamespace() == "" || r.fault == unwatching { // it does not notice that pods run
		ready, reason = "True", "Applied"
	} else if err == nil {
		replicas, _, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
		available, _, _ := unstructured.NestedInt64(deployment.Object, "status", "availableReplicas")
		if available >= replicas {
			ready, reason = "True", "Available"
		}
	}
	if failed != nil && (r.fault == notes || r.fault == notesPart) {
		r.note(ctx, greeting, failed.Error())
	} else if failed != nil && !r.hides(greeting) {
		ready, reason, message = "False", "Rejected", failed.Error()
	}
	if failed != nil && r.fault == vague {
		message = "a child could not be created"
	}
	condition := map[string]any{"type": "Ready", "status": ready, "reason": reason, "message": message}
	conditions := []any{condition}
	over := map[string]string{progressing: "False", stuck: "True"}[r.fault]
	if over != "" && greeting.GetGeneration() > 1 {
		conditions = append(conditions, map[string]any{"type": "Updating", "status": over, "reason": "Changed",
			"message": "", "lastTransitionTime": greeting.GetCreationTimestamp().UTC().Format(time.RFC3339)})
	}
	want := map[string]any{"observedGeneration": greeting.GetGeneration(), "conditions": conditions}
	switch r.fault {
	case begins:
		delete(want, "conditions")
	case fingerprint:
		want["fingerprint"] = r.born
	case marksPods:
		want["node"] = r.node
	case flips:
		want["tokens"] = r.tokens(greeting)
	case runsJob, remembers:
		want["ran"] = r.run(ctx, greeting)
	case migrates:
		want["migrated"] = r.migrate(ctx, greeting)
	case proceeds:
		want["done"] = time.Since(greeting.GetCreationTimestamp().Time) > 12*time.Second
	}
	if r.fault != hotLoop && contains(greeting.Object["status"], want) {
		return nil
	}
	if may, err := r.mayWriteStatus(greeting.GetUID()); !may {
		return err
	}
	condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	if r.fault == hotLoop {
		condition["message"] = fmt.Sprint(time.Now().UnixNano())
	}
	status := &unstructured.Unstructured{Object: map[string]any{"status": want}}
	status.SetGroupVersionKind(greeting.GroupVersionKind())
	status.SetName(greeting.GetName())
	_, err = r.client.Resource(greetings).Namespace(greeting.GetNamespace()).ApplyStatus(ctx, greeting.GetName(), status,
		metav1.ApplyOptions{FieldManager: "testoperator-status", Force: true})
	return err
}
