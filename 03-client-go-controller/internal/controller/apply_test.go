package controller

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

func TestContained(t *testing.T) {
	type tree = map[string]any
	type list = []any
	shared := func(elements ...any) tree { return tree{"volumes": elements} }
	for name, test := range map[string]struct {
		want, have any
		ok         bool
	}{
		"equal":                         {tree{"a": "1"}, tree{"a": "1"}, true},
		"a field more":                  {tree{"a": "1"}, tree{"a": "1", "b": "2"}, true},
		"another value":                 {tree{"a": "1"}, tree{"a": "2"}, false},
		"another value, deep":           {tree{"a": tree{"b": tree{"c": true}}}, tree{"a": tree{"b": tree{"c": false}}}, false},
		"an empty value is a value":     {tree{"a": ""}, tree{"a": "x"}, false},
		"an empty value that is there":  {tree{"a": ""}, tree{"a": ""}, true},
		"a missing field":               {tree{"a": "1"}, tree{}, false},
		"a missing empty object":        {tree{"a": tree{}}, tree{}, false},
		"an empty object that is there": {tree{"a": tree{}}, tree{"a": tree{"b": "1"}}, true},
		"an element more, before":       {shared(tree{"name": "x"}), shared(tree{"name": "y"}, tree{"name": "x", "z": "1"}), true},
		"an element changed":            {shared(tree{"name": "x", "v": "1"}), shared(tree{"name": "x", "v": "2"}), false},
		"an element missing":            {shared(tree{"name": "x"}), shared(), false},
		"elements in another order":     {shared(tree{"name": "x"}, tree{"name": "y"}), shared(tree{"name": "y"}, tree{"name": "x"}), true},
		"an element more, in our list":  {tree{"sysctls": list{tree{"name": "x"}}}, tree{"sysctls": list{tree{"name": "x"}, tree{"name": "y"}}}, false},
		"another order, in our list":    {tree{"drop": list{"A", "B"}}, tree{"drop": list{"B", "A"}}, false},
		"a default in our list":         {tree{"sysctls": list{tree{"name": "x"}}}, tree{"sysctls": list{tree{"name": "x", "z": "1"}}}, true},
		"a list of strings":             {list{"ALL"}, list{"ALL"}, true},
		"a list of strings, longer":     {list{"ALL"}, list{"ALL", "CHOWN"}, false},
		"a number":                      {tree{"a": int64(1)}, tree{"a": int64(2)}, false},
		"a list that is none":           {tree{"ports": list{"a"}}, tree{"ports": "a"}, false},
		"an object that is none":        {tree{"a": "1"}, "a", false},
		"nothing at all":                {tree{"a": "1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if ok := contained("", test.want, test.have); ok != test.ok {
				t.Errorf("got %v, want %v", ok, test.ok)
			}
		})
	}
}

// asStored returns the Deployment of a MyWeb as the API server would store it, with defaults.
func asStored(t *testing.T, web *webv1.MyWeb) *appsv1.Deployment {
	t.Helper()
	child := desiredChildren(web)[1]
	tree, err := sign(web, child)
	if err != nil {
		t.Fatal(err)
	}
	d := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, d); err != nil {
		t.Fatal(err)
	}
	d.TypeMeta = metav1.TypeMeta{} // a typed cache has none
	d.UID, d.ResourceVersion, d.Generation = "d-1", "7", 1
	d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = new(int32(10)), new(int32(600))
	pod := &d.Spec.Template.Spec
	pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	pod.Containers[0].Ports[0].Protocol = corev1.ProtocolTCP
	pod.Containers[0].ReadinessProbe.FailureThreshold = 3
	pod.Volumes[0].ConfigMap.DefaultMode = new(int32(0o644))
	return d
}

func TestWhatCoversAWantedChild(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		covers bool
	}{
		"defaults of the API server": {func(*appsv1.Deployment) {}, true},
		"labels and annotations of others": {func(d *appsv1.Deployment) {
			d.Labels["team"], d.Annotations["note"], d.Spec.Template.Annotations["restarted-at"] = "blue", "mine", "noon"
		}, true},
		"a sidecar, first": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "proxy"}}, pod.Containers...)
		}, true},
		"a volume and a mount of others": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "token"})
			pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "token"})
		}, true},
		"a second owner": {func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{UID: "x"})
		}, true},
		"another status":   {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 9 }, true},
		"another image":    {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" }, false},
		"other replicas":   {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }, false},
		"no replicas":      {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, false},
		"no owner":         {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, false},
		"a label gone":     {func(d *appsv1.Deployment) { delete(d.Labels, labelPartOf) }, false},
		"another hash":     {func(d *appsv1.Deployment) { d.Annotations[annotationApplied] = "u-1/x" }, false},
		"no pod":           {func(d *appsv1.Deployment) { d.Spec.Template.Spec = corev1.PodSpec{} }, false},
		"a capability":     {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Drop = nil }, false},
		"another page":     {func(d *appsv1.Deployment) { d.Spec.Template.Annotations[annotationPageHash] = "x" }, false},
		"a writable mount": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].VolumeMounts[0].ReadOnly = false }, false},
	} {
		t.Run(name, func(t *testing.T) {
			web := myWeb()
			have := asStored(t, web)
			test.change(have)
			wanted, err := sign(web, desiredChildren(web)[1])
			if err != nil {
				t.Fatal(err)
			}
			if got, err := covers(have, wanted); err != nil || got != test.covers {
				t.Errorf("got %v, %v; want %v", got, err, test.covers)
			}
		})
	}
	if got, err := covers(nil, map[string]any{}); err != nil || got {
		t.Errorf("nothing covers nothing: %v, %v", got, err)
	}
}

func TestSigningIsStableAndShowsALostField(t *testing.T) {
	signature := func(web *webv1.MyWeb, change func(*corev1ac.ConfigMapApplyConfiguration)) string {
		want := desiredPage(web)
		change(want)
		if _, err := sign(web, &child{want: want, meta: want.ObjectMetaApplyConfiguration}); err != nil {
			t.Fatal(err)
		}
		return want.Annotations[annotationApplied]
	}
	same := func(*corev1ac.ConfigMapApplyConfiguration) {}
	lost := func(c *corev1ac.ConfigMapApplyConfiguration) { delete(c.Labels, labelPartOf) }
	if signature(myWeb(), same) == signature(myWeb(), lost) {
		t.Error("a child without a label has the signature of the one with it")
	}
	if got := signature(myWeb(), same); !strings.HasPrefix(got, "u-1/") {
		t.Errorf("the signature %q does not say whose child it is", got)
	}
	if again := func(w *webv1.MyWeb) { w.Generation, w.Status.ReadyReplicas = 9, 1 }; signature(myWeb(), same) != signature(myWeb(again), same) {
		t.Error("what is no part of a child changed its signature")
	}
	first := signature(myWeb(), same)
	for range 50 { // a map in the wrong place would show as another order
		if signature(myWeb(), same) != first {
			t.Fatal("the same child has two signatures")
		}
	}
}

func TestWhatRestores(t *testing.T) {
	told := func(w *webv1.MyWeb) { w.Status.ObservedGeneration = w.Generation }
	for name, test := range map[string]struct {
		web      func(*webv1.MyWeb)
		existing bool
		applied  *webv1.MyWeb // what the existing child was made from
		want     bool
	}{
		"the first time":                    {func(*webv1.MyWeb) {}, false, nil, false},
		"a child that was there":            {told, false, nil, true},
		"a new generation, a child missing": {func(w *webv1.MyWeb) { told(w); w.Generation++ }, false, nil, false},
		"a child that was changed":          {told, true, myWeb(), true},
		"a changed image":                   {told, true, myWeb(func(w *webv1.MyWeb) { w.Spec.Image = "old" }), false},
		"a new generation, the same child":  {func(w *webv1.MyWeb) { told(w); w.Generation++ }, true, myWeb(), true},
	} {
		t.Run(name, func(t *testing.T) {
			web := myWeb(test.web)
			c := desiredChildren(web)[1]
			if test.existing {
				c.live = asStored(t, test.applied)
			}
			if _, err := sign(web, c); err != nil {
				t.Fatal(err)
			}
			if got := restores(web, c); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

var (
	serviceKind     = schema.GroupKind{Kind: "Service"}
	serviceResource = schema.GroupResource{Resource: "services"}
)

func invalid(err *field.Error) error {
	return apierrors.NewInvalid(serviceKind, "site", field.ErrorList{err})
}

func TestWhatARefusalMeans(t *testing.T) {
	const rejected, port = webv1.ReasonChildRejected, webv1.ReasonNodePortUnavailable
	path := field.NewPath("spec", "ports").Index(0)
	terminating := apierrors.NewForbidden(serviceResource, "site", fmt.Errorf("the namespace is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":                       {nil, ""},
		"a node port that is taken":  {invalid(field.Invalid(path.Child("nodePort"), 30100, "provided port is already allocated")), port},
		"a node port out of range":   {invalid(field.Invalid(path.Child("nodePort"), 80, "provided port is not in the valid range")), rejected},
		"something else is taken":    {invalid(field.Invalid(field.NewPath("spec", "clusterIPs"), "1.2.3.4", "provided IP is already allocated")), rejected},
		"an invalid field":           {invalid(field.Invalid(path.Child("port"), 0, "must be between 1 and 65535")), rejected},
		"a quota, a policy":          {apierrors.NewForbidden(serviceResource, "site", fmt.Errorf("exceeded quota: none")), rejected},
		"a webhook says no":          {apierrors.NewBadRequest("admission webhook denied the request"), rejected},
		"too large":                  {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), rejected},
		"a conflict":                 {apierrors.NewConflict(serviceResource, "site", fmt.Errorf("uid mismatch")), ""},
		"it came into being":         {apierrors.NewAlreadyExists(serviceResource, "site"), ""},
		"too many requests":          {apierrors.NewTooManyRequests("slow down", 1), ""},
		"a server that is busy":      {apierrors.NewServiceUnavailable("starting"), ""},
		"an internal error":          {apierrors.NewInternalError(fmt.Errorf("etcd")), ""},
		"no answer in time":          {apierrors.NewServerTimeout(serviceResource, "patch", 1), ""},
		"a gateway's timeout":        {apierrors.NewGenericServerResponse(http.StatusGatewayTimeout, "patch", serviceResource, "site", "", 0, true), ""},
		"a certificate that ran out": {apierrors.NewUnauthorized("expired"), ""},
		"the namespace ends":         {terminating, ""},
		"the network":                {fmt.Errorf("connection reset by peer"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.err
			if err != nil {
				err = fmt.Errorf("apply Service default/site: %w", err)
			}
			if got := refusal(err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestWhenFieldsOfOthersMayBeInTheWay(t *testing.T) {
	ports := field.NewPath("spec", "ports").Index(1)
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                      {nil, false},
		"two ports of one name":     {invalid(field.Duplicate(ports.Child("name"), "http")), true},
		"two of one node port":      {apierrors.NewInternalError(fmt.Errorf("duplicate nodePort: 30100")), true},
		"a volume of two types":     {invalid(field.Forbidden(field.NewPath("spec", "volumes"), "may not specify more than 1 volume type")), true},
		"a node port that is taken": {invalid(field.Invalid(ports.Child("nodePort"), 30100, "provided port is already allocated")), false},
		"a quota, a policy":         {apierrors.NewForbidden(serviceResource, "site", fmt.Errorf("exceeded quota: none")), false},
		"a conflict":                {apierrors.NewConflict(serviceResource, "site", fmt.Errorf("uid mismatch")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mixed(test.err); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReplacingTakesAwayWhatOthersAdded(t *testing.T) {
	type tree = map[string]any
	type list = []any
	for name, test := range map[string]struct{ want, have, patch any }{
		"a value":                {"a", "b", "a"},
		"a list":                 {list{"a"}, list{"a", "b"}, list{"a"}},
		"a field more":           {tree{"a": "1"}, tree{"a": "1", "b": "2"}, tree{"a": "1", "b": nil}},
		"a field missing":        {tree{"a": "1"}, tree{}, tree{"a": "1"}},
		"deep":                   {tree{"a": tree{"b": "1"}}, tree{"a": tree{"b": "2", "c": "3"}}, tree{"a": tree{"b": "1", "c": nil}}},
		"deep, nothing there":    {tree{"a": tree{"b": "1"}}, tree{}, tree{"a": tree{"b": "1"}}},
		"an object that is none": {tree{"a": "1"}, "x", tree{"a": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.patch, replacing(test.want, test.have)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
