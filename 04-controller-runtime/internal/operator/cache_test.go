package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// full returns metadata with a value in every field that Trim decides about.
func full(owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "x", ResourceVersion: "7", Generation: 2,
		Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		Finalizers:      []string{"example.com/keep"},
		OwnerReferences: owners, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}}
}

// named returns the metadata that Trim keeps of an object that no MyWeb owns.
func named(owners ...metav1.OwnerReference) metav1.ObjectMeta {
	m := unmanaged(full(owners...))
	m.Labels, m.Annotations = nil, nil
	return m
}

func unmanaged(m metav1.ObjectMeta) metav1.ObjectMeta {
	m.ManagedFields = nil
	return m
}

func TestTrim(t *testing.T) {
	ours := metav1.OwnerReference{APIVersion: webv1.SchemeGroupVersion.String(), Kind: "MyWeb", Name: "site",
		UID: "u-1", Controller: new(true)}
	theirs := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r",
		UID: "r-1", Controller: new(true)}
	byAnnotation := full()
	byAnnotation.Annotations = map[string]string{myweb.Kind.Annotation(): "u-1/0123"}
	data := map[string]string{"key": "much"}
	ports := corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ClusterIP: "10.0.0.1", HealthCheckNodePort: 32000,
		Ports: []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30100}, {Name: "metrics", Port: 9090}}}
	pods := appsv1.DeploymentSpec{Replicas: new(int32(3))}
	pods.Template.Spec.Containers = []corev1.Container{{Name: "nginx", Image: "nginx"}}
	edited := *pods.DeepCopy()
	edited.Template.Spec.Containers[0].TTY = true
	for name, test := range map[string]struct{ obj, want any }{
		"a MyWeb": {&webv1.MyWeb{ObjectMeta: full(), Spec: webv1.MyWebSpec{Image: "nginx"}},
			&webv1.MyWeb{ObjectMeta: unmanaged(full()), Spec: webv1.MyWebSpec{Image: "nginx"}}},
		"a page of ours": {&corev1.ConfigMap{ObjectMeta: full(ours), Data: data},
			&corev1.ConfigMap{ObjectMeta: unmanaged(full(ours)), Data: data}},
		"a page that lost its owner": {&corev1.ConfigMap{ObjectMeta: byAnnotation, Data: data},
			&corev1.ConfigMap{ObjectMeta: unmanaged(byAnnotation), Data: data}},
		"a Service of ours": {&corev1.Service{ObjectMeta: full(ours), Spec: ports},
			&corev1.Service{ObjectMeta: unmanaged(full(ours)), Spec: ports}},
		"a Deployment of ours": {&appsv1.Deployment{ObjectMeta: full(ours), Spec: pods},
			&appsv1.Deployment{ObjectMeta: unmanaged(full(ours)), Spec: pods}},
		"another Deployment of ours": {&appsv1.Deployment{ObjectMeta: full(ours), Spec: *pods.DeepCopy()},
			&appsv1.Deployment{ObjectMeta: unmanaged(full(ours)), Spec: pods}},
		"an edited Deployment of ours": {&appsv1.Deployment{ObjectMeta: full(ours), Spec: *edited.DeepCopy()},
			&appsv1.Deployment{ObjectMeta: unmanaged(full(ours)), Spec: edited}},
		"a ConfigMap of others": {&corev1.ConfigMap{ObjectMeta: full(), Data: data, BinaryData: map[string][]byte{"b": {1}}},
			&corev1.ConfigMap{ObjectMeta: named()}},
		"a Deployment of others": {
			&appsv1.Deployment{ObjectMeta: full(), Spec: pods, Status: appsv1.DeploymentStatus{Replicas: 3}},
			&appsv1.Deployment{ObjectMeta: named()}},
		"a Service of others": {&corev1.Service{ObjectMeta: full(), Spec: ports},
			&corev1.Service{ObjectMeta: named(), Spec: ports}},
		"a ConfigMap with another controller": {&corev1.ConfigMap{ObjectMeta: full(theirs), Data: data},
			&corev1.ConfigMap{ObjectMeta: named(theirs)}},
		"what is no object": {"text", "text"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Trim(test.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			twice, err := Trim(got) // client-go may trim an object twice
			if diff := cmp.Diff(test.want, twice); diff != "" || err != nil {
				t.Error("trimmed twice:", diff, err)
			}
		})
	}
}
