package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"example.com/operator-workshop/scripts/examine/wire"
)

// A Web is a MyWeb as the lab sees it from outside.
type Web struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              WebSpec   `json:"spec"`
	Status            WebStatus `json:"status"`
}

// WebSpec is the desired website.
type WebSpec struct {
	Image           string  `json:"image"`
	NodePortNumber  *int32  `json:"nodePortNumber,omitempty"`
	PageContentHTML *string `json:"pageContentHtml,omitempty"`
	Replicas        *int32  `json:"replicas,omitempty"`
}

// WebStatus is the status that the operator reports.
type WebStatus struct {
	Completed          bool               `json:"completed,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	ReadyReplicas      int32              `json:"readyReplicas,omitempty"`
	Selector           string             `json:"selector,omitempty"`
	NodePort           *int32             `json:"nodePort,omitempty"`
}

// String formats the status in a line, for evidence.
func (s WebStatus) String() string {
	text := fmt.Sprintf("completed=%v observedGeneration=%d readyReplicas=%d", s.Completed, s.ObservedGeneration,
		s.ReadyReplicas)
	if s.NodePort != nil {
		text += fmt.Sprintf(" nodePort=%d", *s.NodePort)
	}
	for _, c := range s.Conditions {
		text += fmt.Sprintf(" %s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message)
	}
	return text
}

// report formats the status beside the generation. A status of an older generation does not say that the newest is served.
func (w *Web) report() string {
	text, of := fmt.Sprintf("generation=%d %v", w.Generation, w.Status), w.Status.ObservedGeneration
	if w.Status.Completed && 0 < of && of < w.Generation {
		return fmt.Sprintf("the status is still that of generation %d: %s", of, text)
	}
	return text
}

// Is reports whether the web is completed for its newest generation.
func (w *Web) Is() bool { return w.Status.Completed && w.Status.ObservedGeneration == w.Generation }

// Condition returns a condition; an empty one when it is missing.
func (w *Web) Condition(kind string) metav1.Condition {
	if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Degraded reports whether the web is Degraded for that reason and not completed, now and for its newest generation.
func (w *Web) Degraded(reason string) bool {
	c := w.Condition("Degraded")
	return !w.Status.Completed && c.Status == metav1.ConditionTrue && c.Reason == reason &&
		c.ObservedGeneration == w.Generation
}

// Sample is a spec for a check: one replica, without a chosen node port.
func Sample() WebSpec { return WebSpec{Image: "nginx", PageContentHTML: new("<h1>Hello</h1>")} }

// Create creates a MyWeb in the check's namespace.
func (t *T) Create(name string, spec WebSpec) *Web {
	web, err := t.TryCreate(name, spec)
	t.Must(err, "create MyWeb "+name)
	return web
}

// TryCreate is Create that returns the error.
func (t *T) TryCreate(name string, spec WebSpec) (*Web, error) {
	u, err := NewWeb(name, spec)
	if err != nil {
		return nil, err
	}
	made, err := t.asUser("a user created MyWeb "+name, wire.Create, Resource, name,
		func() (*unstructured.Unstructured, error) {
			return t.Objects(Resource).Create(t.Ctx, u, metav1.CreateOptions{})
		})
	if err != nil {
		return nil, err
	}
	return asWeb(made)
}

// NewWeb is a MyWeb as a client sends it.
func NewWeb(name string, spec WebSpec) (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": object}}
	u.SetGroupVersionKind(WebKind)
	u.SetName(name)
	return u, err
}

// Get reads a MyWeb past the proxy.
func (t *T) Get(name string) (*Web, error) {
	u, err := t.Objects(Resource).Get(t.Ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return asWeb(u)
}

// Web is Get that ends the check when there is an error.
func (t *T) Web(name string) *Web {
	web, err := t.Get(name)
	t.Must(err, "read MyWeb "+name)
	return web
}

func (t *T) list(ctx context.Context) (webs []*Web, err error) {
	list, err := t.Objects(Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		web, err := asWeb(&list.Items[i])
		if err != nil {
			return nil, err
		}
		webs = append(webs, web)
	}
	return webs, nil
}

func asWeb(u *unstructured.Unstructured) (*Web, error) {
	web := &Web{}
	return web, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, web)
}

// Patch changes a MyWeb by a JSON merge patch, such as {"spec":{"replicas":2}}.
func (t *T) Patch(name, patch string) *Web {
	u, err := t.asUser(fmt.Sprintf("a user changed MyWeb %s by %s", name, shortened(patch)), wire.Patch, Resource, name,
		func() (*unstructured.Unstructured, error) {
			return t.Objects(Resource).Patch(t.Ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		})
	t.Must(err, "patch MyWeb "+name)
	web, err := asWeb(u)
	t.Must(err, "read MyWeb "+name)
	return web
}

// Falsify writes a status, as any client with the permission can.
func (t *T) Falsify(name, patch string) {
	text := fmt.Sprintf("another client wrote the status of MyWeb %s: %s", name, shortened(patch))
	_, err := t.asUser(text, wire.Patch, StatusResource, name, func() (*unstructured.Unstructured, error) {
		return t.Objects(Resource).Patch(t.Ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	})
	t.Must(err, "falsify the status of "+name)
}

// SetPage changes the page of a MyWeb.
func (t *T) SetPage(name, page string) *Web {
	return t.Patch(name, JSON(map[string]any{"spec": map[string]any{"pageContentHtml": page}}))
}

// Await returns the MyWeb when wanted returns true; what describes the condition. 0 is 20 s.
func (t *T) Await(name, what string, within time.Duration, wanted func(*Web) bool) (web *Web) {
	t.Eventually("MyWeb "+name+" "+what, within, t.is(name, &web, wanted))
	return web
}

// Reacts is Await for a status that the operator reports as soon as it sees a change.
func (t *T) Reacts(name, what string, wanted func(*Web) bool) (web *Web) {
	t.Reaction("MyWeb "+name+" "+what, 0, t.is(name, &web, wanted))
	return web
}

// is reads a MyWeb into web, and returns an error unless wanted returns true.
func (t *T) is(name string, web **Web, wanted func(*Web) bool) func() error {
	return func() (err error) {
		if *web, err = t.Get(name); err == nil && !wanted(*web) {
			err = errors.New((*web).report())
		}
		return err
	}
}

// Completed returns the MyWeb when its newest generation is served.
func (t *T) Completed(name string) *Web { return t.Served(name, "is completed", 0) }

// Serve creates a MyWeb and returns it when it is completed and the operator is in steady state.
func (t *T) Serve(name string, spec WebSpec) *Web {
	t.Create(name, spec)
	return t.Settled(name)
}

// Settled returns the last of some MyWebs when all of them are completed and the operator is in steady state.
func (t *T) Settled(names ...string) (web *Web) {
	for _, name := range names {
		web = t.Completed(name)
	}
	if t.Operator.reports { // without a report, the operator is in steady state already
		t.AwaitQuiet(steady)
	}
	return web
}

// Reported returns the MyWeb when it is Degraded for a reason, for its newest generation, and not completed. It fails
// the check unless the message has some words.
func (t *T) Reported(name, reason string, within time.Duration, words ...string) *Web {
	web := t.Await(name, "is Degraded by "+reason, within, func(w *Web) bool { return w.Degraded(reason) })
	t.Says(web, words...)
	return web
}

// Says fails the check unless the message of Degraded has some words.
func (t *T) Says(web *Web, words ...string) {
	message := web.Condition("Degraded").Message
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("the message of %s does not say %q: %q", web.Name, word, message)
		}
	}
}

// Recovered fails the check unless Degraded is False.
func (t *T) Recovered(web *Web) {
	if c := web.Condition("Degraded"); c.Status != metav1.ConditionFalse {
		t.Errorf("expected that %s is no longer Degraded; but Degraded is %s: %s: %s", web.Name, c.Status,
			c.Reason, c.Message)
	}
}

// Children are the three objects that a MyWeb owns.
type Children struct {
	ConfigMap  *corev1.ConfigMap
	Deployment *appsv1.Deployment
	Service    *corev1.Service
}

// Objects maps the names of kinds to the children.
func (c *Children) Objects() map[string]metav1.Object {
	return map[string]metav1.Object{"ConfigMap": c.ConfigMap, "Deployment": c.Deployment, "Service": c.Service}
}

// Follow returns an error unless the children match the spec. Their status does not count.
func (c *Children) Follow(spec WebSpec) error {
	page, replicas, ports := ptr.Deref(spec.PageContentHTML, ""), ptr.Deref(spec.Replicas, 1), c.Service.Spec.Ports
	image := func(c corev1.Container) bool { return c.Image == spec.Image }
	switch {
	case c.ConfigMap.Data["index.html"] != page:
		return fmt.Errorf("the ConfigMap has the page %.60q, the MyWeb %.60q", c.ConfigMap.Data["index.html"], page)
	case *c.Deployment.Spec.Replicas != replicas:
		return fmt.Errorf("the Deployment has %d replicas, the MyWeb %d", *c.Deployment.Spec.Replicas, replicas)
	case !slices.ContainsFunc(c.Deployment.Spec.Template.Spec.Containers, image):
		return fmt.Errorf("the Deployment has no container with the image %s of the MyWeb", spec.Image)
	case spec.NodePortNumber != nil && (len(ports) == 0 || ports[0].NodePort != *spec.NodePortNumber):
		return fmt.Errorf("the ports of the Service are %s, the MyWeb has nodePortNumber %d", JSON(ports),
			*spec.NodePortNumber)
	}
	return nil
}

// RolledOut returns an error unless exactly the desired pods of a Deployment run.
func RolledOut(d *appsv1.Deployment) error {
	s, want := d.Status, *d.Spec.Replicas
	if s.ObservedGeneration < d.Generation || s.Replicas != want || s.UpdatedReplicas != want ||
		s.AvailableReplicas != want {
		return fmt.Errorf("the Deployment of generation %d wants %d pods, its status is %s", d.Generation, want, JSON(s))
	}
	return nil
}

// Children returns the children of a MyWeb, which must all exist and be controlled by it. The survey detects a
// program that sets no owner references: behaviour/01-children-appear fails.
func (t *T) Children(web *Web) *Children {
	c, err := t.children(web.Name)
	if err == nil && t.Operator.owns {
		err = c.controlledBy(web)
	}
	t.Must(err, "read the children of "+web.Name)
	return c
}

// Controlled returns an error unless all children exist and are controlled by the MyWeb.
func (t *T) Controlled(web *Web) error {
	c, err := t.children(web.Name)
	if err == nil {
		err = c.controlledBy(web)
	}
	return err
}

func (c *Children) controlledBy(web *Web) error {
	for kind, o := range c.Objects() {
		if !metav1.IsControlledBy(o, web) {
			return fmt.Errorf("%s %s is not controlled by the MyWeb: ownerReferences %s, the MyWeb's UID %s",
				kind, web.Name, JSON(o.GetOwnerReferences()), web.UID)
		}
	}
	return nil
}

func (t *T) children(name string) (*Children, error) {
	c := &Children{}
	var errs [3]error
	c.ConfigMap, errs[0] = t.Fixture.Kube.CoreV1().ConfigMaps(t.Namespace).Get(t.Ctx, name, metav1.GetOptions{})
	c.Deployment, errs[1] = t.Fixture.Kube.AppsV1().Deployments(t.Namespace).Get(t.Ctx, name, metav1.GetOptions{})
	c.Service, errs[2] = t.Fixture.Kube.CoreV1().Services(t.Namespace).Get(t.Ctx, name, metav1.GetOptions{})
	return c, errors.Join(errs[:]...)
}

// Gone returns when none of the children of that name exists. The garbage collector deletes a child that has an owner;
// without an owner, only the operator can.
func (t *T) Gone(name string) {
	for _, k := range Kinds {
		o, err := t.Objects(k).Get(t.Ctx, name, metav1.GetOptions{})
		if err == nil && len(o.GetOwnerReferences()) == 0 {
			t.Reaction(KindOf[k]+" "+name+" is gone", 0, t.isGone(k, name))
			continue
		}
		t.AwaitGone(k, name, t.limit(20*time.Second, t.Operator.owns))
	}
}

// Events returns the events about a MyWeb, oldest first.
func (t *T) Events(name string) []eventsv1.Event {
	list, err := t.Fixture.Kube.EventsV1().Events(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	t.Must(err, "list events")
	var about []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.Kind == "MyWeb" && e.Regarding.Name == name {
			about = append(about, e)
		}
	}
	return about
}

// JSON formats a value for a message or a patch.
func JSON(v any) string {
	var text strings.Builder
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false) // a page stays readable
	if err := to.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(text.String(), "\n")
}
