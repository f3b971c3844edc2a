package myweb

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/test/mywebtest"
)

func TestThePageIsStoredAsItIs(t *testing.T) {
	for name, html := range map[string]string{
		"plain": "<h1>Hello</h1>", "empty": "", "template marks": "{{ .Values }} ${HOME}", "quotes": `"'\`,
		"Unicode": "Grüße, 世界 🌍", "line ends": "a\r\nb\n\n", "a tab": "\t",
	} {
		t.Run(name, func(t *testing.T) {
			got := DesiredConfigMap(mywebtest.New(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = &html })).Data
			if diff := cmp.Diff(map[string]string{"index.html": html}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := DesiredConfigMap(mywebtest.New(func(w *webv1.MyWeb) {
		w.Spec.PageContentHTML = nil
	})).Data; got["index.html"] != "" || len(got) != 1 {
		t.Errorf("no page is given, the ConfigMap holds %q", got)
	}
}

func TestWhatRollsThePods(t *testing.T) {
	template := func(change func(*webv1.MyWeb)) string {
		data, err := json.Marshal(DesiredDeployment(mywebtest.New(change)).Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := template(func(*webv1.MyWeb) {})
	for name, test := range map[string]struct {
		change func(*webv1.MyWeb)
		rolls  bool
	}{
		"another page":         {func(w *webv1.MyWeb) { w.Spec.PageContentHTML = new("x") }, true},
		"no page":              {func(w *webv1.MyWeb) { w.Spec.PageContentHTML = nil }, true},
		"another image":        {func(w *webv1.MyWeb) { w.Spec.Image = "nginx:1.29-alpine" }, true},
		"another port":         {func(w *webv1.MyWeb) { w.Spec.NodePortNumber = nil }, false},
		"another replica":      {func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(2)) }, false},
		"another generation":   {func(w *webv1.MyWeb) { w.Generation = 9 }, false},
		"nothing, once more":   {func(*webv1.MyWeb) {}, false},
		"a label of the MyWeb": {func(w *webv1.MyWeb) { w.Labels = map[string]string{"a": "b"} }, false},
		"another status":       {func(w *webv1.MyWeb) { w.Status.ReadyReplicas = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if rolls := template(test.change) != before; rolls != test.rolls {
				t.Errorf("rolls: %v, want %v", rolls, test.rolls)
			}
		})
	}
}

func TestNoPageAndAnEmptyPageAreTheSame(t *testing.T) {
	none := DesiredDeployment(mywebtest.New(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = nil }))
	empty := DesiredDeployment(mywebtest.New(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = new("") }))
	if diff := cmp.Diff(none, empty); diff != "" {
		t.Error("pods would roll for the same page:", diff)
	}
}

func TestEachChildIsLabelledAndControlled(t *testing.T) {
	web := mywebtest.New()
	owner := []metav1ac.OwnerReferenceApplyConfiguration{*metav1ac.OwnerReference().
		WithAPIVersion("operator.k8s-summit.org/v1").WithKind("MyWeb").WithName("site").WithUID("u-1").WithController(true)}
	labels := map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "site",
		"app.kubernetes.io/part-of": "operator-workshop", "app.kubernetes.io/managed-by": "myweb-operator"}
	var kinds []string
	for _, child := range DesiredChildren(web) {
		kinds = append(kinds, child.Kind)
		if *child.Meta.Name != "site" || *child.Meta.Namespace != "default" {
			t.Errorf("%s is %s/%s", child.Kind, *child.Meta.Namespace, *child.Meta.Name)
		}
		if diff := cmp.Diff(owner, child.Meta.OwnerReferences); diff != "" {
			t.Error(child.Kind, diff)
		}
		if diff := cmp.Diff(labels, child.Meta.Labels); diff != "" {
			t.Error(child.Kind, diff)
		}
	}
	if want := []string{"ConfigMap", "Deployment", "Service"}; !slices.Equal(kinds, want) {
		t.Errorf("the children are %v, want %v: pods need their page", kinds, want)
	}
}

func TestThePodMeetsTheRestrictedStandard(t *testing.T) {
	pod := desiredPod(mywebtest.New())
	if c := pod.SecurityContext; !*c.RunAsNonRoot || *c.RunAsUser == 0 ||
		*c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v", c)
	}
	if *pod.AutomountServiceAccountToken {
		t.Error("the pod gets a token that it has no use for")
	}
	for _, c := range pod.Containers {
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("the security context of %s is %+v", *c.Name, s)
		}
	}
	for _, v := range pod.Volumes {
		if v.HostPath != nil || v.ConfigMap == nil && v.EmptyDir == nil {
			t.Errorf("volume %s is %+v", *v.Name, v)
		}
	}
}

func TestTheMyWebItselfIsNotChanged(t *testing.T) {
	web := mywebtest.New()
	before := web.DeepCopy()
	all := DesiredChildren(web)
	*all[2].Desired.(interface{ GetName() *string }).GetName() = "changed" // a pointer into the MyWeb would show
	if diff := cmp.Diff(before, web); diff != "" {
		t.Error(diff)
	}
}
