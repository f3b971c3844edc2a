package nginx

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// meta names an object, and its controller by its UID.
func meta(name, controller string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid of " + name)}
	if controller != "" {
		uid := types.UID("uid of " + controller)
		m.OwnerReferences = []metav1.OwnerReference{{Name: controller, UID: uid, Controller: new(true)}}
	}
	return m
}

func pod(name, controller string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{ObjectMeta: meta(name, controller), Status: corev1.PodStatus{Phase: phase}}
}

func TestNodes(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: meta("web", "")}
	sets := []appsv1.ReplicaSet{{ObjectMeta: meta("web-1", "web")}, {ObjectMeta: meta("web-2", "web")},
		{ObjectMeta: meta("strange", "else")}}
	ending := pod("web-1-z", "web-1", corev1.PodRunning)
	ending.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	pods := []corev1.Pod{pod("web-2-c", "web-2", corev1.PodRunning), pod("web-1-b", "web-1", corev1.PodRunning),
		pod("web-2-a", "web-2", corev1.PodRunning), ending}
	for name, p := range map[string]corev1.Pod{
		"that is pending": pod("web-1-pending", "web-1", corev1.PodPending),
		"that failed":     pod("web-1-failed", "web-1", corev1.PodFailed),
		"that another user made with the same labels":  pod("web-debug", "", corev1.PodRunning),
		"of a ReplicaSet that is not the Deployment's": pod("strange-a", "strange", corev1.PodRunning),
		"that is being deleted":                        ending,
	} {
		if slices.Contains(Nodes(deployment, sets, append(slices.Clone(pods), p)), p.Name) {
			t.Errorf("status.nodes has a pod %s", name)
		}
	}
	got := Nodes(deployment, sets, pods)
	for _, name := range []string{"web-1-b", "web-2-a", "web-2-c"} {
		if !slices.Contains(got, name) {
			t.Errorf("status.nodes lacks the running pod %s of one of the Deployment's ReplicaSets", name)
		}
	}
	slices.Reverse(pods)
	if second := Nodes(deployment, sets, pods); !slices.Equal(got, second) {
		t.Errorf("the cache gave the same pods in another order, and status.nodes is another: %v, %v", got, second)
	}
	for n := range 2 * MaxNodes {
		pods = append(pods, pod(fmt.Sprintf("web-1-%03d", n), "web-1", corev1.PodRunning))
	}
	many := Nodes(deployment, sets, pods)
	if len(many) > MaxNodes {
		t.Errorf("status.nodes has %d names, at most %d are allowed", len(many), MaxNodes)
	}
	slices.Reverse(pods)
	if second := Nodes(deployment, sets, pods); !slices.Equal(many, second) {
		t.Errorf("the cache gave more than %d pods in another order, and status.nodes has other pods: first %s, then %s",
			2*MaxNodes, many[0], second[0])
	}
}
