package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// beat writes the time into an annotation of a ConfigMap twice in a second, until ctx ends. With isLock it is the
// annotation in which old versions of client-go keep the lock of a leader election.
func beat(ctx context.Context, kube kubernetes.Interface, isLock bool) {
	annotation := "test.example.com/alive"
	if isLock {
		annotation = resourcelock.LeaderElectionRecordAnnotationKey
	}
	for ctx.Err() == nil {
		object := corev1ac.ConfigMap("testoperator", metav1.NamespaceDefault).
			WithAnnotations(map[string]string{annotation: time.Now().Format(time.RFC3339Nano)})
		_, _ = kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Apply(ctx, object,
			metav1.ApplyOptions{FieldManager: "testoperator", Force: true})
		time.Sleep(500 * time.Millisecond)
	}
}

// create creates a child without looking whether it exists.
func (r *reconciler) create(ctx context.Context, gvr schema.GroupVersionResource, want *unstructured.Unstructured) error {
	key := gvr.Resource + " " + cache.MetaObjectToName(want).String()
	if r.fault == trusts && r.made[key] {
		return nil
	}
	_, err := r.client.Resource(gvr).Namespace(want.GetNamespace()).Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	r.made[key] = err == nil
	return err
}

// double creates a ConfigMap under the first name that is free, unless this process has created one for the Greeting, or
// its list has one.
func (r *reconciler) double(ctx context.Context, want *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(want).UID
	all, err := r.listers[children[0]].ByNamespace(want.GetNamespace()).List(labels.Everything())
	isOwned := func(o runtime.Object) bool {
		of := metav1.GetControllerOf(o.(*unstructured.Unstructured))
		return of != nil && of.UID == owner
	}
	if err != nil || r.made[string(owner)] || slices.ContainsFunc(all, isOwned) {
		return err
	}
	name := want.GetName()
	for n := 1; ; n++ {
		want.SetName(fmt.Sprintf("%s-%d", name, n))
		_, err := r.client.Resource(children[0]).Namespace(want.GetNamespace()).Create(ctx, want, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			r.made[string(owner)] = err == nil
			return err
		}
	}
}

// An onceWatched lets one watch of each kind of child pass; later watches get no answer.
type onceWatched struct {
	http.RoundTripper
	watched sync.Map
}

// RoundTrip sends a request.
func (o *onceWatched) RoundTrip(r *http.Request) (*http.Response, error) {
	isWatch := r.URL.Query().Has("watch") && !strings.HasSuffix(r.URL.Path, greetings.Resource)
	if isWatch {
		if _, before := o.watched.LoadOrStore(r.URL.Path, true); before {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
	}
	return o.RoundTripper.RoundTrip(r)
}

// sulk ends all work when a ConfigMap is deleted whose Greeting stays.
func (r *reconciler) sulk(object any) {
	for _, name := range greetingsOf(object) {
		if greeting, err := r.get(greetings, name); err == nil && greeting.GetDeletionTimestamp() == nil {
			r.sulking.Store(true)
		}
	}
}

// poll reads a child past the cache.
func (r *reconciler) poll(gvr schema.GroupVersionResource, name cache.ObjectName) (*unstructured.Unstructured, error) {
	list, err := r.client.Resource(gvr).Namespace(name.Namespace).List(context.Background(),
		metav1.ListOptions{FieldSelector: "metadata.name=" + name.Name})
	if err == nil && len(list.Items) == 0 {
		err = apierrors.NewNotFound(gvr.GroupResource(), name.Name)
	}
	if err != nil {
		return nil, err
	}
	return &list.Items[0], nil
}

// pollGreetings lists the Greetings at intervals, and enqueues each of them, until ctx ends.
func (r *reconciler) pollGreetings(ctx context.Context, listed cache.Store, enqueue func(any)) {
	for tick := time.NewTicker(periods[pollsSamples]); ; {
		if list, err := r.client.Resource(greetings).List(ctx, metav1.ListOptions{}); err == nil {
			var all []any
			for _, greeting := range list.Items {
				all = append(all, &greeting)
			}
			_ = listed.Replace(all, list.GetResourceVersion()) // a store in memory has no errors
			for _, greeting := range all {
				enqueue(greeting)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// visitor visits each namespace that is being deleted.
func (r *reconciler) visitor(ctx context.Context) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, now any) {
		if namespace := now.(*unstructured.Unstructured); namespace.GetDeletionTimestamp() != nil {
			go r.visit(ctx, namespace)
		}
	}}
}

// visit removes the finalizer from the ConfigMap in a namespace that is being deleted, after some seconds with reads.
func (r *reconciler) visit(ctx context.Context, namespace *unstructured.Unstructured) {
	if _, before := r.visited.LoadOrStore(namespace.GetName(), true); before {
		return
	}
	client := r.client.Resource(children[0]).Namespace(namespace.GetName())
	for range 6 {
		time.Sleep(time.Second)
		_, _ = client.List(ctx, metav1.ListOptions{})
	}
	_, _ = client.Patch(ctx, "hello", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
}

// makeSecret makes a Secret for a Greeting with the name more.
func (r *reconciler) makeSecret(ctx context.Context, name cache.ObjectName) error {
	if r.fault != secretive || name.Name != "more" {
		return nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(secrets.GroupVersion().WithKind("Secret"))
	u.SetNamespace(name.Namespace)
	u.SetName(name.Name)
	return r.create(ctx, secrets, u)
}

// refuses reports whether a Greeting is invalid, and records an event about it.
func (r *reconciler) refuses(ctx context.Context, greeting *unstructured.Unstructured) bool {
	aside, _, _ := unstructured.NestedString(greeting.Object, "spec", "aside")
	if r.fault != warns || !strings.HasSuffix(aside, "x") {
		return false
	}
	event := &unstructured.Unstructured{Object: map[string]any{"type": corev1.EventTypeWarning, "reason": "Invalid",
		"message": "spec.aside is invalid", "involvedObject": map[string]any{"kind": greeting.GetKind(),
			"namespace": greeting.GetNamespace(), "name": greeting.GetName(), "uid": string(greeting.GetUID())}}}
	event.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Event"))
	event.SetGenerateName("invalid-")
	_, err := r.client.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(greeting.GetNamespace()).
		Create(ctx, event, metav1.CreateOptions{})
	return err == nil
}

// note records an event about an error, which the API server refuses when its note has more than 1024 bytes.
func (r *reconciler) note(ctx context.Context, greeting *unstructured.Unstructured, text string) {
	if r.fault == notesPart {
		text = text[:min(len(text), 1000)]
	}
	event := &unstructured.Unstructured{Object: map[string]any{"type": corev1.EventTypeWarning, "reason": "Refused",
		"note": text, "action": "Apply", "eventTime": time.Now().UTC().Format(metav1.RFC3339Micro),
		"reportingController": "testoperator", "reportingInstance": "testoperator",
		"regarding": map[string]any{"kind": greeting.GetKind(), "namespace": greeting.GetNamespace(),
			"name": greeting.GetName(), "uid": string(greeting.GetUID())}}}
	event.SetGroupVersionKind(eventsv1.SchemeGroupVersion.WithKind("Event"))
	event.SetNamespace(greeting.GetNamespace())
	event.SetGenerateName("refused-")
	_, _ = r.client.Resource(eventsv1.SchemeGroupVersion.WithResource("events")).Namespace(greeting.GetNamespace()).
		Create(ctx, event, metav1.CreateOptions{})
}

// tokens are two values that the status keeps. Each process changes their order once, as a list made of a map does.
func (r *reconciler) tokens(greeting *unstructured.Unstructured) []any {
	tokens, _, _ := unstructured.NestedSlice(greeting.Object, "status", "tokens")
	key := "tokens " + string(greeting.GetUID())
	if len(tokens) == 0 {
		now := time.Now()
		tokens = []any{now.Format(time.RFC3339Nano), now.Add(1).Format(time.RFC3339Nano)}
	} else if !r.made[key] {
		slices.Reverse(tokens)
	}
	r.made[key] = true
	return tokens
}

// run makes a Job for a Greeting once, and reports whether it has done so. Without a Job it only remembers.
func (r *reconciler) run(ctx context.Context, greeting *unstructured.Unstructured) bool {
	aside, _, _ := unstructured.NestedString(greeting.Object, "spec", "aside")
	ran, _, _ := unstructured.NestedBool(greeting.Object, "status", "ran")
	if ran || r.fault != runsJob && r.fault != remembers || !strings.HasSuffix(aside, "x") {
		return ran
	}
	return r.fault == remembers || r.create(ctx, jobs, jobOf(greeting)) == nil
}

// jobOf is a Job with the name of a Greeting.
func jobOf(greeting *unstructured.Unstructured) *unstructured.Unstructured {
	container := map[string]any{"name": "main", "image": "nginx:1.29"}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{
		"spec": map[string]any{"restartPolicy": "Never", "containers": []any{container}}}}}}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	job.SetNamespace(greeting.GetNamespace())
	job.SetName(greeting.GetName())
	return job
}

// migrate makes a Job for a Greeting, and reports whether the Job has ended.
func (r *reconciler) migrate(ctx context.Context, greeting *unstructured.Unstructured) bool {
	have, err := r.get(jobs, cache.MetaObjectToName(greeting))
	if err != nil {
		job := jobOf(greeting)
		job.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(greeting, greeting.GroupVersionKind())})
		_ = r.create(ctx, jobs, job)
		return false
	}
	_, ended, _ := unstructured.NestedString(have.Object, "status", "completionTime")
	return ended
}

// statusWrites counts the writes of the status of a Greeting.
type statusWrites struct {
	count int
	last  time.Time
}

// calm is the pause of an operator that calms down between two writes of the status of a Greeting.
const calm = 2 * time.Second

var (
	errPostponed = errors.New("the write follows later")
	errFight     = fmt.Errorf("another client changes it again and again: %w", errPostponed)
)

// givesWay reports whether the fault lets a change by another client stay now, and returns an error when only for now.
func (r *reconciler) givesWay(key string) (bool, error) {
	switch r.fault {
	case eases:
		r.restored[key]++
		return r.restored[key] > 3, nil
	case persists, complains:
		if time.Since(r.calmed[key]) < calm {
			return true, errFight
		}
		r.calmed[key] = time.Now()
	}
	return false, nil
}

// hides reports whether the fault keeps the status of a Greeting from reporting an error.
func (r *reconciler) hides(greeting *unstructured.Unstructured) bool {
	return r.fault == overlooks || r.fault == persists || r.fault == seesCreation && greeting.GetGeneration() > 1
}

// mayWriteStatus reports whether the fault allows a write of the status of a Greeting, and counts it.
func (r *reconciler) mayWriteStatus(greeting types.UID) (bool, error) {
	w := r.statuses[greeting]
	switch {
	case r.fault == tires && w.count >= 12:
		return false, nil
	case r.fault == calms && time.Since(w.last) < calm:
		return false, errPostponed
	}
	r.statuses[greeting] = statusWrites{w.count + 1, time.Now()}
	return true, nil
}

// print prints an error, unless it is the last one of a Greeting.
func (r *reconciler) print(name cache.ObjectName, err error) {
	each := slices.Contains([]string{repeats, failsOn, failsRarely}, r.fault)
	if each || r.printed[name] != err.Error() {
		fmt.Fprintf(os.Stderr, "level=error object=%s %v\n", name, err)
	}
	r.printed[name] = err.Error()
}

// nag prints an error again and again.
func nag(name cache.ObjectName, err error) {
	for n := range 100 {
		fmt.Fprintf(os.Stderr, "level=error object=%s waits, look %d: %v\n", name, n, err)
		time.Sleep(100 * time.Millisecond)
	}
}
