package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func content(data map[string]string, binary map[string][]byte) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "page"},
		Data: data, BinaryData: binary}
}

func TestOfAConfigMapTheCacheKeepsAHash(t *testing.T) {
	trim := func(c *corev1.ConfigMap) *corev1.ConfigMap {
		t.Helper()
		trimmed, err := Trim(c.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		c = trimmed.(*corev1.ConfigMap)
		if len(c.Data) != 1 || len(c.BinaryData) != 0 || c.Name != "page" {
			t.Errorf("the cache keeps %+v", c)
		}
		return c
	}
	hash := func(c *corev1.ConfigMap) string {
		t.Helper()
		once := trim(c)
		if diff := cmp.Diff(once, trim(once)); diff != "" { // the first list is transformed twice
			t.Error("trimmed twice it is another:", diff)
		}
		return once.Data[contentHash]
	}
	seen := map[string]string{}
	for name, c := range map[string]*corev1.ConfigMap{
		"nothing":                  content(nil, nil),
		"a page":                   content(map[string]string{"index.html": "x"}, nil),
		"another page":             content(map[string]string{"index.html": "y"}, nil),
		"another file":             content(map[string]string{"index.htm": "lx"}, nil),
		"the same page as bytes":   content(nil, map[string][]byte{"index.html": []byte("x")}),
		"two files":                content(map[string]string{"a": "b", "c": "d"}, nil),
		"the same letters in one":  content(map[string]string{"a": "bcd"}, nil),
		"the same letters, parted": content(map[string]string{"a": "", "bcd": ""}, nil),
	} {
		got := hash(c)
		if other, ok := seen[got]; ok || len(got) != 16 {
			t.Errorf("%s has the hash %q, and so has %s", name, got, other)
		}
		seen[got] = name
	}
	one := content(map[string]string{"a": "1", "b": "2"}, nil)
	one.Labels, one.ResourceVersion = map[string]string{"x": "y"}, "7"
	if hash(one) != hash(content(map[string]string{"b": "2", "a": "1"}, nil)) {
		t.Error("a change outside the content changes the hash")
	}
}

func TestWhatTheCachesKeep(t *testing.T) {
	full := metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "u", ResourceVersion: "1",
		Labels: map[string]string{labelInstance: site, "team": "blue"}, Annotations: map[string]string{"note": "long"},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r-1", Controller: new(true)}}}
	ours := *full.DeepCopy()
	ours.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "proxy.example.com/v1alpha1", Kind: "Nginx", Name: site, UID: "u-1", Controller: new(true)}}
	orphan := *full.DeepCopy()
	orphan.OwnerReferences, orphan.Annotations = nil, map[string]string{"proxy.example.com/applied": "u-1/x"}
	named := metav1.ObjectMeta{Namespace: "default", Name: "x", UID: "u", ResourceVersion: "1",
		OwnerReferences: full.OwnerReferences}
	labelled := *named.DeepCopy()
	labelled.Labels = map[string]string{labelInstance: site}
	spec, ports := appsv1.DeploymentSpec{Replicas: new(int32(3))}, corev1.ServiceSpec{ClusterIP: "10.0.0.1"}
	set := replicaSet()
	set.ObjectMeta = full
	wantSet := replicaSet()
	wantSet.ObjectMeta = labelled
	for name, test := range map[string]struct{ obj, want client.Object }{
		"whose a pod is, and its phase": {
			&corev1.Pod{ObjectMeta: full, Spec: corev1.PodSpec{NodeName: "n"},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9"}},
			&corev1.Pod{ObjectMeta: labelled, Status: corev1.PodStatus{Phase: corev1.PodRunning}},
		},
		"whose a ReplicaSet is": {set, wantSet},
		"the name of an unmanaged Deployment": {
			&appsv1.Deployment{ObjectMeta: full, Spec: spec}, &appsv1.Deployment{ObjectMeta: named}},
		"the name of an unmanaged Service": {
			&corev1.Service{ObjectMeta: full, Spec: ports}, &corev1.Service{ObjectMeta: named}},
		"all of our Deployment": {
			&appsv1.Deployment{ObjectMeta: ours, Spec: spec}, &appsv1.Deployment{ObjectMeta: ours, Spec: spec}},
		"all of our Service": {
			&corev1.Service{ObjectMeta: ours, Spec: ports}, &corev1.Service{ObjectMeta: ours, Spec: ports}},
		"all of one that lost its owner": {
			&appsv1.Deployment{ObjectMeta: orphan, Spec: spec}, &appsv1.Deployment{ObjectMeta: orphan, Spec: spec}},
		"all of an Nginx, whatever it is for": {anNginx(serving("page")), anNginx(serving("page"))},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Trim(test.obj.DeepCopyObject())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if twice, err := Trim(got); err != nil || cmp.Diff(test.want, twice) != "" {
				t.Errorf("trimmed twice it is %+v, %v", twice, err)
			}
		})
	}
}

func TestWhichUpdatesOfAPodMatter(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*corev1.Pod)
		matters bool
	}{
		"another version only": {func(p *corev1.Pod) { p.ResourceVersion = "2" }, false},
		"its phase":            {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, true},
		"it is being deleted":  {func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) }, true},
		"another controller":   {func(p *corev1.Pod) { p.OwnerReferences[0].UID = "r-2" }, true},
		"no controller":        {func(p *corev1.Pod) { p.OwnerReferences = nil }, true},
		"another instance":     {func(p *corev1.Pod) { p.Labels[labelInstance] = "other" }, true},
		"made anew":            {func(p *corev1.Pod) { p.UID = "p-2" }, true},
	} {
		old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			UID: "p-1", ResourceVersion: "1", Labels: map[string]string{labelInstance: site},
			OwnerReferences: []metav1.OwnerReference{{UID: "r-1", Controller: new(true)}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		now := old.DeepCopy()
		test.change(now)
		if got := podChanged(event.UpdateEvent{ObjectOld: old, ObjectNew: now}); got != test.matters {
			t.Errorf("%s: got %v, want %v", name, got, test.matters)
		}
	}
}
