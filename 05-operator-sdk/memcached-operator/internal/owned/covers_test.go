package owned

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
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

// asStored returns a child as the API server would store it, with defaults.
func asStored(t *testing.T, child *Child) *appsv1.Deployment {
	t.Helper()
	tree, err := keeper().sign(budget(), child)
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
	return d
}

func TestWhatCoversAWantedChild(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		covers bool
	}{
		"defaults of the API server": {func(*appsv1.Deployment) {}, true},
		"labels and annotations of others": {func(d *appsv1.Deployment) {
			d.Labels["team"], d.Annotations["note"], d.Spec.Template.Annotations = "blue", "mine", map[string]string{"restarted-at": "noon"}
		}, true},
		"a sidecar, first": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "proxy"}}, pod.Containers...)
		}, true},
		"a second owner": {func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{UID: "x"})
		}, true},
		"another status": {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 9 }, true},
		"another image":  {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" }, false},
		"a flag more":    {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = []string{"-a", "-b"} }, false},
		"no flags":       {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Args = nil }, false},
		"other replicas": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }, false},
		"no replicas":    {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, false},
		"no owner":       {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, false},
		"a label gone":   {func(d *appsv1.Deployment) { delete(d.Labels, "app") }, false},
		"another hash":   {func(d *appsv1.Deployment) { d.Annotations["policy/applied"] = "u-1/x" }, false},
		"no pod":         {func(d *appsv1.Deployment) { d.Spec.Template.Spec = corev1.PodSpec{} }, false},
		"another port":   {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 81 }, false},
		"a port of other": {func(d *appsv1.Deployment) {
			c := &d.Spec.Template.Spec.Containers[0]
			c.Ports = append(c.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: 9090})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			have := asStored(t, pods())
			test.change(have)
			wanted, err := keeper().sign(budget(), pods())
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
	signature := func(change func(*appsv1ac.DeploymentApplyConfiguration)) string {
		child := pods(change)
		if _, err := keeper().sign(budget(), child); err != nil {
			t.Fatal(err)
		}
		return child.meta.Annotations["policy/applied"]
	}
	first := signature(func(*appsv1ac.DeploymentApplyConfiguration) {})
	if lost := signature(func(d *appsv1ac.DeploymentApplyConfiguration) { delete(d.Labels, "app") }); lost == first {
		t.Error("a child without a label has the signature of the one with it")
	}
	if !strings.HasPrefix(first, "u-1/") {
		t.Errorf("the signature %q does not say whose child it is", first)
	}
	for range 50 { // a map in the wrong place would show as another order
		if signature(func(*appsv1ac.DeploymentApplyConfiguration) {}) != first {
			t.Fatal("the same child has two signatures")
		}
	}
	child := pods()
	for range 2 { // a child that is kept twice
		if _, err := keeper().sign(budget(), child); err != nil {
			t.Fatal(err)
		}
	}
	if child.meta.Annotations["policy/applied"] != first || len(child.meta.OwnerReferences) != 1 {
		t.Errorf("signed twice: %v, %v", child.meta.Annotations, child.meta.OwnerReferences)
	}
}

func TestWhatRestores(t *testing.T) {
	for name, test := range map[string]struct {
		settled bool
		applied *Child // what the existing child was made from, nil when there is none
		want    bool
	}{
		"the first time":           {false, nil, false},
		"a child that was there":   {true, nil, true},
		"a child that was changed": {true, pods(), true},
		"the same, a new spec":     {false, pods(), true},
		"another spec":             {true, pods(replicas(9)), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := pods()
			if test.applied != nil {
				c.Live = asStored(t, test.applied)
			}
			if _, err := keeper().sign(budget(), c); err != nil {
				t.Fatal(err)
			}
			if got := keeper().restores(test.settled, c); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
