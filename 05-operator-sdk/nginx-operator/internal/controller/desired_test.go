package controller

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
)

func anNginx(change ...func(*proxyv1alpha1.Nginx)) *proxyv1alpha1.Nginx {
	nginx := &proxyv1alpha1.Nginx{
		ObjectMeta: metav1.ObjectMeta{Name: site, Namespace: "default", UID: "u-1", Generation: 3},
		Spec:       proxyv1alpha1.NginxSpec{Count: 3},
	}
	for _, f := range change {
		f(nginx)
	}
	return nginx
}

func serving(content string) func(*proxyv1alpha1.Nginx) {
	return func(n *proxyv1alpha1.Nginx) {
		n.Spec.ContentRef = &proxyv1alpha1.ContentReference{Name: content}
	}
}

func TestWhatRollsThePods(t *testing.T) {
	template := func(change func(*proxyv1alpha1.Nginx), hash string) string {
		data, err := json.Marshal(desiredDeployment(anNginx(serving("page"), change), DefaultImage, hash).Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	same := func(*proxyv1alpha1.Nginx) {}
	before := template(same, "1")
	for name, test := range map[string]struct {
		change func(*proxyv1alpha1.Nginx)
		hash   string
		rolls  bool
	}{
		"other content in the ConfigMap": {same, "2", true},
		"another ConfigMap":              {serving("other"), "1", true},
		"no content":                     {func(n *proxyv1alpha1.Nginx) { n.Spec.ContentRef = nil }, "", true},
		"another image":                  {func(n *proxyv1alpha1.Nginx) { n.Spec.Image = "nginx:1.28" }, "1", true},
		"the default image, said":        {func(n *proxyv1alpha1.Nginx) { n.Spec.Image = DefaultImage }, "1", false},
		"another count":                  {func(n *proxyv1alpha1.Nginx) { n.Spec.Count = 9 }, "1", false},
		"another type of Service":        {func(n *proxyv1alpha1.Nginx) { n.Spec.Service.Type = "NodePort" }, "1", false},
		"another generation":             {func(n *proxyv1alpha1.Nginx) { n.Generation = 9 }, "1", false},
		"a label of the Nginx": {
			func(n *proxyv1alpha1.Nginx) { n.Labels = map[string]string{"a": "b"} }, "1", false},
		"another status": {func(n *proxyv1alpha1.Nginx) { n.Status.ReadyReplicas = 1 }, "1", false},
	} {
		t.Run(name, func(t *testing.T) {
			if rolls := template(test.change, test.hash) != before; rolls != test.rolls {
				t.Errorf("rolls: %v, want %v", rolls, test.rolls)
			}
		})
	}
}

// The original gave the pods of every Nginx the same label app: nginx, and listed pods by this label.
func TestOneLabelForAllDoesNotComeBack(t *testing.T) {
	all := []*proxyv1alpha1.Nginx{anNginx(), anNginx(func(n *proxyv1alpha1.Nginx) { n.Name = "other" })}
	for _, mine := range all {
		for _, other := range all {
			pods := apilabels.Set(desiredDeployment(other, DefaultImage, "").Spec.Template.Labels)
			if pods["app"] != "" {
				t.Errorf("the pods of %s have the label app: %s", other.Name, pods["app"])
			}
			for kind, selector := range map[string]map[string]string{
				"Deployment": desiredDeployment(mine, DefaultImage, "").Spec.Selector.MatchLabels,
				"Service":    desiredService(mine).Spec.Selector,
			} {
				if found := apilabels.SelectorFromSet(selector).Matches(pods); found != (mine == other) {
					t.Errorf("%s %s finds the pods of %s: %v", kind, mine.Name, other.Name, found)
				}
			}
		}
	}
}

// The test does not compare fields: the API server itself checks the pods against the standard.
func TestThePodsMeetTheRestrictedPodSecurityStandard(t *testing.T) {
	c := newCluster(t)
	namespace := &corev1.Namespace{}
	c.must(c.Get(t.Context(), client.ObjectKey{Name: c.namespace}, namespace))
	namespace.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	c.must(c.Update(t.Context(), namespace))
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		ok     bool
	}{
		"as they are":                        {func(*corev1.PodSpec) {}, true},
		"without the promise not to be root": {func(p *corev1.PodSpec) { p.SecurityContext.RunAsNonRoot = nil }, false},
	} {
		nginx := anNginx(serving("page"))
		data, err := json.Marshal(desiredDeployment(nginx, DefaultImage, "1").Spec.Template)
		c.must(err)
		pod := &corev1.Pod{}
		c.must(json.Unmarshal(data, pod))
		pod.Namespace, pod.GenerateName = c.namespace, "pod-"
		test.change(&pod.Spec)
		if err := c.Create(t.Context(), pod); (err == nil) != test.ok {
			t.Errorf("%s: got %v, want it accepted: %v", name, err, test.ok)
		}
		if !*pod.Spec.Containers[0].SecurityContext.ReadOnlyRootFilesystem {
			t.Error("the pods can write to their image")
		}
	}
}

func TestTheSampleIsTheOriginal(t *testing.T) {
	sample, err := os.ReadFile("../../config/samples/proxy_v1alpha1_nginx.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: proxy.example.com/v1alpha1
kind: Nginx
metadata:
  name: nginx-sample
spec:
  count: 3
`
	if diff := cmp.Diff(strings.TrimSpace(want), strings.TrimSpace(string(sample))); diff != "" {
		t.Error(diff)
	}
}
