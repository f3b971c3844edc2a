package controller

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

func podOf(name string, phase corev1.PodPhase, change ...func(*corev1.Pod)) corev1.Pod {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{Phase: phase}}
	for _, f := range change {
		f(&pod)
	}
	return pod
}

func going(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }

func evicted(p *corev1.Pod) { p.Status.Reason = "Evicted" }

func TestRunning(t *testing.T) {
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want []string
	}{
		"no pods": {nil, nil},
		"in any order": {
			[]corev1.Pod{podOf("b", "Running"), podOf("c", "Running"), podOf("a", "Running")}, []string{"a", "b", "c"}},
		"not yet":                      {[]corev1.Pod{podOf("a", "Pending"), podOf("b", "Running")}, []string{"b"}},
		"deleted, in its grace period": {[]corev1.Pod{podOf("a", "Running", going), podOf("b", "Running")}, []string{"b"}},
		"evicted by its node": {
			[]corev1.Pod{podOf("a", "Failed", evicted), podOf("b", "Running")}, []string{"b"}},
		"ended":                           {[]corev1.Pod{podOf("a", "Succeeded")}, nil},
		"unknown":                         {[]corev1.Pod{podOf("a", "Unknown"), podOf("b", "")}, nil},
		"on a lost node, not given up":    {[]corev1.Pod{podOf("a", "Running")}, []string{"a"}},
		"on a lost node that is given up": {[]corev1.Pod{podOf("a", "Running", going)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(test.pods)
			if diff := cmp.Diff(test.want, running(test.pods)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, test.pods); diff != "" {
				t.Error("what the cache holds was changed:", diff)
			}
		})
	}
}

// The original wrote the names in the order of the list, so each list changed the status.
func TestUnsortedNodesDoNotComeBack(t *testing.T) {
	var pods []corev1.Pod
	for i := range 50 {
		pods = append(pods, podOf(fmt.Sprintf("site-%03d", i), corev1.PodRunning))
	}
	want := running(pods)
	if !slices.IsSorted(want) {
		t.Errorf("not sorted: %v", want)
	}
	for range 20 {
		rand.Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, running(pods)); diff != "" {
			t.Fatal("another order gives another list:", diff)
		}
	}
}

func TestAtMostAHundredNodesAndAlwaysTheSame(t *testing.T) {
	var pods []corev1.Pod
	for i := range 250 {
		pods = append(pods, podOf(fmt.Sprintf("site-%03d", (i*7)%250), corev1.PodRunning))
	}
	got := running(pods)
	if len(got) != proxyv1alpha1.MaxNodes || got[0] != "site-000" || got[99] != "site-099" {
		t.Errorf("%d names, from %s to %s", len(got), got[0], got[len(got)-1])
	}
	if got := running(pods[:100]); len(got) != 100 {
		t.Errorf("%d names of 100", len(got))
	}
}

// status.nodes are the Nginx's own pods, whatever labels other clients set on their pods.
func TestOnlyOwnPodsAreNodes(t *testing.T) {
	t.Parallel()
	l := newLoop(t)
	there := l.newNamespace()
	l.namespaces = append(l.namespaces, there)
	l.start()
	l.ask(site)
	l.ask("other")
	mine, others := l.set(site), l.set("other")
	l.pod(newPod(mine, "site-1-b"), corev1.PodRunning)
	l.pod(newPod(mine, "site-1-a"), corev1.PodRunning)
	l.pod(newPod(others, "other-1-a"), corev1.PodRunning)

	bare := newPod(mine, "site-1-bare")
	bare.OwnerReferences = nil
	invented := newPod(mine, "site-1-invented")
	invented.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000000" // the name is right
	owner := newPod(mine, "site-1-owner")
	owner.OwnerReferences[0].Controller = nil // not its controller
	theirs := mine.DeepCopy()
	theirs.ObjectMeta = metav1.ObjectMeta{Namespace: l.namespace, Name: "site-2", Labels: mine.Labels}
	l.must(l.Create(t.Context(), theirs)) // a ReplicaSet with the labels, and no Deployment
	for name, pod := range map[string]*corev1.Pod{
		"no controller": bare, "an invented one": invented, "an owner that does not control it": owner,
		"an unowned ReplicaSet": newPod(theirs, "site-2-a"),
	} {
		t.Logf("%s is of %s", pod.Name, name)
		l.pod(pod, corev1.PodRunning)
	}
	l.namespace, there = there, l.namespace
	l.ask(site)
	l.pod(newPod(l.set(site), "site-1-there"), corev1.PodRunning)
	l.Eventually(l.listed(site)).Should(gomega.Equal([]string{"site-1-there"}))
	l.namespace = there

	l.Eventually(l.listed(site)).Should(gomega.Equal([]string{"site-1-a", "site-1-b"}))
	l.Eventually(l.listed("other")).Should(gomega.Equal([]string{"other-1-a"}))
	l.quiet()
	l.Expect(l.listed(site)()).To(gomega.Equal([]string{"site-1-a", "site-1-b"}))

	// A pod that its ReplicaSet released does not count either, although it has the labels.
	freed := get(l.cluster, "site-1-a", &corev1.Pod{})
	freed.OwnerReferences = nil
	l.must(l.Update(t.Context(), freed))
	l.Eventually(l.listed(site)).Should(gomega.Equal([]string{"site-1-b"}))
}
