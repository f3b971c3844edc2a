package examine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// An operator can read its own pod from the API server: the lab creates the Deployment of the manifests, and Kubernetes'
// controllers create the pods, with owner references and on simulated nodes. A process of the lab then stands for the
// container of one pod.

// placement lists fields of a pod template with which a pod would wait for a node that the lab does not have.
var placement = []string{"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "priorityClassName",
	"runtimeClassName", "schedulingGates", "hostNetwork"}

// deployed returns the workload with a number of replicas, without the fields of its placement.
func (w *workload) deployed(replicas int) (*unstructured.Unstructured, error) {
	u := w.object.DeepCopy()
	for _, field := range placement {
		unstructured.RemoveNestedField(u.Object, "spec", "template", "spec", field)
	}
	if u.GetKind() == "DaemonSet" {
		return u, nil
	}
	return u, unstructured.SetNestedField(u.Object, int64(replicas), "spec", "replicas")
}

// awaitPod makes the cluster create the pods of some replicas, and returns a pod without a process.
func (r *run) awaitPod(ctx context.Context, replicas int) (*corev1.Pod, error) {
	w := r.target.workload
	u, err := w.deployed(replicas)
	if err != nil {
		return nil, err
	}
	if replicas == 1 {
		_, err = r.fixture.Create(ctx, u, w.namespace)
	} else {
		err = r.scale(ctx, replicas)
	}
	if err != nil {
		return nil, err
	}
	var free *corev1.Pod
	err = r.clock.Eventually(ctx, 30*time.Second, func() error {
		pods, err := r.fixture.Kube.CoreV1().Pods(w.namespace).List(ctx,
			metav1.ListOptions{LabelSelector: labels.FormatLabels(w.template.Labels)})
		if err != nil {
			return err
		}
		for _, p := range pods.Items {
			taken := r.operator != nil && r.operator.pod == p.Name
			if !taken && p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
				free = &p
				return nil
			}
		}
		return errors.New("no pod of it runs on the simulated nodes" + r.whyNoPod(ctx))
	})
	return free, err
}

// whyNoPod returns a warning in the namespace, which may have the reason why the workload has no pod.
func (r *run) whyNoPod(ctx context.Context) string {
	w := r.target.workload
	events, err := r.fixture.Kube.CoreV1().Events(w.namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=Warning"})
	if err != nil || len(events.Items) == 0 {
		return ""
	}
	return ": " + events.Items[len(events.Items)-1].Message
}

// scale sets the number of replicas.
func (r *run) scale(ctx context.Context, replicas int) error {
	w := r.target.workload
	if w.object.GetKind() == "DaemonSet" {
		return nil // it has a pod for each node
	}
	resource := appsv1.SchemeGroupVersion.WithResource(map[string]string{"Deployment": "deployments",
		"StatefulSet": "statefulsets"}[w.object.GetKind()])
	_, err := r.fixture.Dynamic.Resource(resource).Namespace(w.namespace).Patch(ctx, w.name, types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	return err
}

// giveBack ends a second replica, and removes its pod from the cluster.
func (r *run) giveBack(ctx context.Context, o *operator) {
	o.Kill()
	if r.target.workload == nil {
		return
	}
	if o.self != nil {
		// The ReplicaSet deletes the pod with the lowest cost. The lab goes on without it when this fails.
		_, _ = r.fixture.Kube.CoreV1().Pods(o.self.Namespace).Patch(ctx, o.pod, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"-1"}}}`), metav1.PatchOptions{})
	}
	_ = r.scale(ctx, 1)
}

// podOf returns the pod of a replica, and whether the API server has this pod. Without manifests, or when the cluster
// creates no pod, only the process knows the pod.
func (r *run) podOf(ctx context.Context, name string, replicas int) (self *corev1.Pod, exists bool, err error) {
	account := r.target.serviceAccount()
	if err := r.fixture.EnsureServiceAccount(ctx, account); err != nil {
		return nil, false, err
	}
	if r.target.workload != nil {
		self, err := r.awaitPod(ctx, replicas)
		if err == nil || ctx.Err() != nil {
			return self, true, err
		}
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("The operator does not find its own pod in the API server: the lab "+
			"could not create %s %s (%v).", r.target.workload.object.GetKind(), r.target.workload.name, err))
	}
	return r.target.unknownPod(name), false, nil
}

// unknownPod returns a pod that the API server does not have.
func (t *target) unknownPod(name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name + "-" + rand.String(5), Namespace: t.home(),
		UID: "00000000-0000-4000-8000-000000000001"}, Spec: corev1.PodSpec{NodeName: "node-0"},
		Status: corev1.PodStatus{PodIP: fixture.PodAddress.String(), HostIP: "127.0.0.1"}}
	if t.workload != nil {
		p.Labels, p.Annotations = t.workload.template.Labels, t.workload.template.Annotations
	}
	return p
}

// address returns the IP address of a pod.
func address(p *corev1.Pod) netip.Addr {
	if a, err := netip.ParseAddr(p.Status.PodIP); err == nil && a.Is4() {
		return a
	}
	return fixture.PodAddress
}

// services returns the names of those Services in the manifests that select the pod.
func (w *workload) services() (names []string) {
	for _, u := range w.ofKinds("Service") {
		var s corev1.Service
		if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &s) != nil ||
			s.Namespace != w.namespace || len(s.Spec.Selector) == 0 ||
			!labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.template.Labels)) {
			continue
		}
		names = slices.Concat(names, fixture.NamesOf(types.NamespacedName{Namespace: w.namespace, Name: s.Name}))
	}
	return names
}
