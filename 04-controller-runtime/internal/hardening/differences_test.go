package hardening

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

func TestIsSubset(t *testing.T) {
	type tree = map[string]any
	type list = []any
	shared := func(elements ...any) tree { return tree{"volumes": elements} }
	for name, test := range map[string]struct {
		want, have any
		ok         bool
	}{
		"equal":         {tree{"a": "1"}, tree{"a": "1"}, true},
		"a field more":  {tree{"a": "1"}, tree{"a": "1", "b": "2"}, true},
		"another value": {tree{"a": "1"}, tree{"a": "2"}, false},
		"another value, deep": {
			tree{"a": tree{"b": tree{"c": true}}}, tree{"a": tree{"b": tree{"c": false}}}, false},
		"an empty value is a value":     {tree{"a": ""}, tree{"a": "x"}, false},
		"an empty value that is there":  {tree{"a": ""}, tree{"a": ""}, true},
		"a missing field":               {tree{"a": "1"}, tree{}, false},
		"a missing empty object":        {tree{"a": tree{}}, tree{}, false},
		"an empty object that is there": {tree{"a": tree{}}, tree{"a": tree{"b": "1"}}, true},
		"an element more, before": {
			shared(tree{"name": "x"}), shared(tree{"name": "y"}, tree{"name": "x", "z": "1"}), true},
		"an element changed": {shared(tree{"name": "x", "v": "1"}), shared(tree{"name": "x", "v": "2"}), false},
		"an element missing": {shared(tree{"name": "x"}), shared(), false},
		"elements in another order": {
			shared(tree{"name": "x"}, tree{"name": "y"}), shared(tree{"name": "y"}, tree{"name": "x"}), true},
		"an element more, in our list": {
			tree{"sysctls": list{tree{"name": "x"}}}, tree{"sysctls": list{tree{"name": "x"}, tree{"name": "y"}}}, false},
		"another order, in our list": {tree{"drop": list{"A", "B"}}, tree{"drop": list{"B", "A"}}, false},
		"a default in our list": {
			tree{"sysctls": list{tree{"name": "x"}}}, tree{"sysctls": list{tree{"name": "x", "z": "1"}}}, true},
		"a list of strings":         {list{"ALL"}, list{"ALL"}, true},
		"a list of strings, longer": {list{"ALL"}, list{"ALL", "CHOWN"}, false},
		"a number":                  {tree{"a": int64(1)}, tree{"a": int64(2)}, false},
		"a list that is none":       {shared(tree{"name": "x"}), tree{"volumes": "x"}, false},
		"an object that is none":    {tree{"a": "1"}, "a", false},
		"nothing at all":            {tree{"a": "1"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if ok := isSubset(test.want, test.have); ok != test.ok {
				t.Errorf("got %v, want %v", ok, test.ok)
			}
		})
	}
}

// stored returns the desired fields of a child of a MyWeb, and the child as the API server would store it,
// with defaults.
func stored[T runtime.Object](t *testing.T, kind int, obj T) (map[string]any, T) {
	t.Helper()
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "u-1"},
		Spec: webv1.MyWebSpec{Image: "nginx"}}
	desired := myweb.DesiredChildren(web)[kind].Fields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired, obj); err != nil {
		t.Fatal(err)
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // a typed cache has none
	switch o := any(obj).(type) {
	case *appsv1.Deployment:
		o.ResourceVersion = "7"
		o.Spec.RevisionHistoryLimit, o.Spec.ProgressDeadlineSeconds = new(int32(10)), new(int32(600))
		pod := &o.Spec.Template.Spec
		pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst,
			"default-scheduler"
		pod.Containers[0].Ports[0].Protocol = corev1.ProtocolTCP
		pod.Containers[0].ReadinessProbe.FailureThreshold = 3
		pod.Volumes[0].ConfigMap.DefaultMode = new(int32(0o644))
	case *corev1.Service:
		o.ResourceVersion = "7"
		o.Spec.ClusterIP, o.Spec.Ports[0].NodePort = "10.0.0.1", 30100
	}
	return desired, obj
}

func TestDifferencesOfADeployment(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*appsv1.Deployment)
		want   string
	}{
		"defaults of the API server": {func(*appsv1.Deployment) {}, ""},
		"labels and annotations of others": {func(d *appsv1.Deployment) {
			d.Labels["team"], d.Annotations["note"], d.Spec.Template.Annotations["restarted-at"] = "blue", "mine", "noon"
		}, ""},
		"a sidecar, first": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Containers = append([]corev1.Container{{Name: "sidecar", Image: "proxy"}}, pod.Containers...)
		}, ""},
		"a volume and a mount of others": {func(d *appsv1.Deployment) {
			pod := &d.Spec.Template.Spec
			pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "token"})
			pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "token"})
		}, ""},
		"a second owner": {func(d *appsv1.Deployment) {
			d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{UID: "x"})
		}, ""},
		"another status": {func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 9 }, ""},
		"another image": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil" },
			"spec.template.spec.containers[nginx].image"},
		"other replicas": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) }, "spec.replicas"},
		"no replicas":    {func(d *appsv1.Deployment) { d.Spec.Replicas = nil }, "spec.replicas"},
		"no owner":       {func(d *appsv1.Deployment) { d.OwnerReferences = nil }, "metadata.ownerReferences"},
		"a label gone": {func(d *appsv1.Deployment) { delete(d.Labels, "app.kubernetes.io/part-of") },
			"metadata.labels[app.kubernetes.io/part-of]"},
		"another hash": {func(d *appsv1.Deployment) { d.Annotations[myweb.AnnotationApplied] = "u-1/x" },
			"metadata.annotations[operator.k8s-summit.org/applied]"},
		"a capability": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].SecurityContext.Capabilities.Drop = nil },
			"spec.template.spec.containers[nginx].securityContext.capabilities.drop"},
		"another page": {
			func(d *appsv1.Deployment) { d.Spec.Template.Annotations["operator.k8s-summit.org/page-hash"] = "x" },
			"spec.template.metadata.annotations[operator.k8s-summit.org/page-hash]"},
		"a writable mount": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].VolumeMounts[0].ReadOnly = false },
			"spec.template.spec.containers[nginx].volumeMounts[/usr/share/nginx/html].readOnly"},
		"the port of the container": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Ports[0].ContainerPort = 81 },
			"spec.template.spec.containers[nginx].ports[http].containerPort"},
		"a container gone, and the replicas": {
			func(d *appsv1.Deployment) { d.Spec.Replicas = nil; d.Spec.Template.Spec.Containers = nil },
			"spec.replicas, spec.template.spec.containers"},
		"a container renamed": {func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Name = "x" },
			"spec.template.spec.containers[nginx]"},
	} {
		t.Run(name, func(t *testing.T) {
			desired, live := stored(t, 1, &appsv1.Deployment{})
			test.change(live)
			got, err := Differences(desired, live)
			if Paths(got) != test.want || err != nil {
				t.Errorf("got %v, %v; want %q", Paths(got), err, test.want)
			}
		})
	}
}
