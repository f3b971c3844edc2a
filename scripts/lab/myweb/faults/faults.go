// Package faults holds the fault catalogue: faults around a MyWeb operator, as experiments from outside. Each
// experiment checks the behaviour of a correct operator.
package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// poisoned is for mutants, which panic when they handle a MyWeb of that name.
func poisoned(t *suite.T) {
	t.Create("poisoned", suite.Sample())
	for n := range 3 {
		t.Create(fmt.Sprintf("web-%d", n), suite.Sample())
	}
	for n := range 3 {
		converged(t, fmt.Sprintf("web-%d", n))
	}
	wantAlive(t)
}

// kinds are the resources of the children.
var kinds = []string{"configmaps", "deployments.apps", "services"}

// status is the resource of the operator's status writes.
const status = suite.Resource + "/status"

// kindOf maps a resource to its kind.
var kindOf = map[string]string{"configmaps": "ConfigMap", "deployments.apps": "Deployment", "services": "Service"}

// short is a resource as part of an ID: "deployment".
func short(resource string) string {
	name, _, _ := strings.Cut(resource, ".")
	return strings.TrimSuffix(name, "s")
}

// toWrite matches the writes to resources.
func toWrite(resources ...string) ledger.Match {
	return ledger.Match{Verbs: wire.Writes, Resources: resources}
}

// patience is the time limit for an expected event: a retry may be some seconds away, and the machine busy.
const patience = 45 * time.Second

// converged returns the MyWeb and its children when the MyWeb is served and the operator is in steady state. The
// children must match the spec. A status may be from before a child was recreated, so the pods count, too.
func converged(t *suite.T, name string) (*suite.Web, *suite.Children) {
	t.Served(name, "is completed", patience)
	t.Eventually("the pods of "+name+" run", patience, func() error {
		d, err := t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && (d.Status.ObservedGeneration < d.Generation || d.Status.Replicas != *d.Spec.Replicas ||
			d.Status.UpdatedReplicas != *d.Spec.Replicas || d.Status.AvailableReplicas != *d.Spec.Replicas) {
			err = fmt.Errorf("the Deployment, of generation %d, has status %+v", d.Generation, d.Status)
		}
		return err
	})
	t.AwaitQuiet(500 * time.Millisecond)
	web := t.Served(name, "is completed", patience)
	c := t.Children(web)
	page := ""
	if web.Spec.PageContentHTML != nil {
		page = *web.Spec.PageContentHTML
	}
	if got := c.ConfigMap.Data["index.html"]; got != page {
		t.Errorf("completed, but the page is %q, wanted %q", cut(got), cut(page))
	}
	if got, want := *c.Deployment.Spec.Replicas, replicas(web); got != want {
		t.Errorf("completed, but the Deployment has replicas %d, wanted %d", got, want)
	}
	if got := c.Deployment.Spec.Template.Spec.Containers[0].Image; got != web.Spec.Image {
		t.Errorf("completed, but the pods run image %q, wanted %q", got, web.Spec.Image)
	}
	if got, want := c.Service.Spec.Ports[0].NodePort, web.Spec.NodePortNumber; want != nil && got != *want {
		t.Errorf("completed, but the node port is %d, wanted %d", got, *want)
	}
	return web, c
}

func replicas(web *suite.Web) int32 {
	if web.Spec.Replicas == nil {
		return 1
	}
	return *web.Spec.Replicas
}

// cut shortens a text for a message.
func cut(text string) string {
	if len(text) > 60 {
		return text[:60] + "…"
	}
	return text
}

// made counts the objects of a resource that the operator created since a mark.
func made(t *suite.T, after int, resource string) int { return madeOf(t, after, resource, "") }

// madeOf counts those with one name.
func madeOf(t *suite.T, after int, resource, name string) (n int) {
	for _, e := range t.Writes(after) {
		if e.FullResource() == resource && (name == "" || e.Name == name) {
			n += len(slices.DeleteFunc(slices.Clone(e.Served), func(code int) bool { return code != 201 }))
		}
	}
	return n
}

// wantMade fails when the operator has not created exactly n objects of each resource since a mark, or has deleted an
// object.
func wantMade(t *suite.T, after, n int, resources ...string) {
	for _, resource := range resources {
		if got := made(t, after, resource); got != n {
			t.Errorf("%s: %d made, wanted %d:\n%s", resource, got, n, suite.Lines(t.Writes(after)))
		}
	}
	wantNoDelete(t, after)
}

// wantNoDelete fails when the operator has deleted an object since a mark.
func wantNoDelete(t *suite.T, after int) {
	if deletes := t.Requests(after, wire.Delete, wire.DeleteCollection); len(deletes) > 0 {
		t.Errorf("the operator deleted, which it need not:\n%s", suite.Lines(deletes))
	}
}

// wantSame fails when a child was replaced.
func wantSame(t *suite.T, before, after *suite.Children, but ...string) {
	now := after.Objects()
	for kind, was := range before.Objects() {
		if now[kind].GetUID() != was.GetUID() && !slices.Contains(but, kind) {
			t.Errorf("the %s was replaced: UID %s, before %s", kind, now[kind].GetUID(), was.GetUID())
		}
	}
}

// wantNoPanic fails when the operator has printed a panic: in lines about the check's namespace, or in any line when
// the check has the operator alone.
func wantNoPanic(t *suite.T, alone bool) {
	for _, line := range strings.Split(t.Operator.Process().Output(), "\n") {
		if strings.Contains(strings.ToLower(line), "panic") && (alone || strings.Contains(line, t.Namespace)) {
			t.Errorf("a panic: %s", line)
			return
		}
	}
}

// wantAlive fails when the operator's process has ended.
func wantAlive(t *suite.T) {
	if !t.Operator.Running() {
		t.Fatalf("the operator is gone: it %v", t.Operator.Process().Exit())
	}
}

// A statusHistory holds every status of the MyWebs in the check's namespace.
type statusHistory struct {
	mu       sync.Mutex
	version  map[types.UID]string
	degraded []string
	all      []*suite.Web
}

// observe begins to watch, past the proxy.
func observe(t *suite.T) *statusHistory {
	w := &statusHistory{version: map[types.UID]string{}}
	stream, err := t.Fixture.Dynamic.Resource(myweb.MyWebs).Namespace(t.Namespace).Watch(t.Context(), metav1.ListOptions{})
	t.Must(err, "watch the MyWebs")
	t.Cleanup(func(context.Context) { stream.Stop() })
	go func() {
		for e := range stream.ResultChan() {
			if u, ok := e.Object.(*unstructured.Unstructured); ok {
				w.see(u)
			}
		}
	}()
	return w
}

func (w *statusHistory) see(u *unstructured.Unstructured) {
	web := &suite.Web{}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, web) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version[web.UID] = web.ResourceVersion
	w.all = append(w.all, web)
	if c := web.Condition("Degraded"); c.Status == metav1.ConditionTrue {
		w.degraded = append(w.degraded, fmt.Sprintf("%s: %s: %s", web.Name, c.Reason, c.Message))
	}
}

// wantWell fails when a status ever showed a failure of a MyWeb: a transient condition is not an error.
func (w *statusHistory) wantWell(t *suite.T, names ...string) {
	for _, name := range names {
		web := get(t, name)
		t.Eventually("the lab sees the newest status of "+name, 0, func() error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if got := w.version[web.UID]; got != web.ResourceVersion {
				return fmt.Errorf("resourceVersion %s, not %s", got, web.ResourceVersion)
			}
			return nil
		})
		for _, e := range t.Events(name) {
			if e.Type == corev1.EventTypeWarning {
				t.Errorf("a Warning about %s for what passes by itself: %s: %s", name, e.Reason, e.Note)
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.degraded) > 0 {
		t.Errorf("%d times shown as Degraded for what passes by itself: %s", len(w.degraded), w.degraded[0])
	}
}

// wantNeverCompleted fails when a status showed a MyWeb as completed for a generation.
func (w *statusHistory) wantNeverCompleted(t *suite.T, generation int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, web := range w.all {
		if web.Status.Completed && web.Status.ObservedGeneration == generation {
			t.Errorf("for a time completed for generation %d: %v", generation, web.Status)
			return
		}
	}
}

// Limits of retries in a window in which every try is refused. client-go's backoff from 5 ms on makes 10 tries in the
// window, 1 of them in its second half; the limits are three times that, because an operator may also try its other
// children.
const (
	window    = 4 * time.Second
	mostTries = 60
	mostLate  = 12
)

// wantBackoff checks that the pauses between the operator's tries in the namespace grow during a window. Meanwhile
// all tries must fail.
func wantBackoff(t *suite.T) {
	mark := t.Mark()
	t.Pause(window / 2)
	middle := t.Mark()
	t.Pause(window / 2)
	all, late := t.Writes(mark), t.Writes(middle)
	if len(all) > mostTries || len(late) > mostLate {
		t.Errorf("%d tries in %v, %d of them in the second half; with backoff at most %d and %d: %s",
			len(all), window, len(late), mostTries, mostLate, suite.Lines(all))
	}
}

// hold keeps the first write to a resource until the rule is released.
func hold(t *suite.T, resources ...string) *proxy.Fault {
	return t.Rule(proxy.Rule{Match: toWrite(resources...), Times: 1, Do: proxy.Hold()})
}

// child is an administrator's client for the objects of a resource.
func child(t *suite.T, resource string) dynamic.ResourceInterface {
	name, group, _ := strings.Cut(resource, ".")
	return t.Fixture.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}).
		Namespace(t.Namespace)
}

// read returns a child.
func read(t *suite.T, resource, name string) *unstructured.Unstructured {
	u, err := child(t, resource).Get(t.Context(), name, metav1.GetOptions{})
	t.Must(err, "read the "+kindOf[resource])
	return u
}

// edit changes a child by a JSON merge patch.
func edit(t *suite.T, resource, name, patch string) {
	_, err := child(t, resource).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	t.Must(err, "edit the "+kindOf[resource])
}

// remove deletes a child.
func remove(t *suite.T, resource, name string) {
	t.Must(child(t, resource).Delete(t.Context(), name, metav1.DeleteOptions{}), "delete the "+kindOf[resource])
}
