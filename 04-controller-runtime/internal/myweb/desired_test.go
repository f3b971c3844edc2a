package myweb

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
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

func TestTheSelectorIsOnlyNameAndInstance(t *testing.T) {
	for name, change := range map[string]func(*webv1.MyWeb){
		"the sample":     func(*webv1.MyWeb) {},
		"a digest":       func(w *webv1.MyWeb) { w.Spec.Image = "registry:5000/web@sha256:" + strings.Repeat("a", 64) },
		"other numbers":  func(w *webv1.MyWeb) { w.Spec.Replicas, w.Spec.NodePortNumber = new(int32(3)), nil },
		"another UID":    func(w *webv1.MyWeb) { w.UID = "u-2" },
		"labels of ours": func(w *webv1.MyWeb) { w.Labels = map[string]string{"app.kubernetes.io/name": "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "site"}
			web := mywebtest.New(change)
			if diff := cmp.Diff(want, DesiredDeployment(web).Spec.Selector.MatchLabels); diff != "" {
				t.Error("Deployment:", diff)
			}
			if diff := cmp.Diff(want, DesiredService(web).Spec.Selector); diff != "" {
				t.Error("Service:", diff)
			}
		})
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

func TestEveryVolumeIsMountedOnceAndThePageReadOnly(t *testing.T) {
	pod := desiredPod(mywebtest.New())
	mounted := map[string]bool{}
	for _, m := range pod.Containers[0].VolumeMounts {
		if mounted[*m.Name] {
			t.Errorf("volume %s is mounted twice", *m.Name)
		}
		mounted[*m.Name] = true
		if page := *m.Name == "page"; page != (m.ReadOnly != nil && *m.ReadOnly) ||
			page != (*m.MountPath == "/usr/share/nginx/html") {
			t.Errorf("mount %+v", m)
		}
	}
	for _, v := range pod.Volumes {
		if !mounted[*v.Name] {
			t.Errorf("volume %s is not mounted", *v.Name)
		}
		delete(mounted, *v.Name)
	}
	if len(mounted) > 0 {
		t.Errorf("mounted without a volume: %v", slices.Collect(maps.Keys(mounted)))
	}
}

func TestANodePortIsNamedOnlyWhenTheMyWebDoes(t *testing.T) {
	for name, port := range map[string]*int32{"named": new(int32(30100)), "left to the cluster": nil} {
		t.Run(name, func(t *testing.T) {
			got := DesiredService(mywebtest.New(func(w *webv1.MyWeb) { w.Spec.NodePortNumber = port })).Spec
			if diff := cmp.Diff(port, got.Ports[0].NodePort); diff != "" {
				t.Error(diff)
			}
			if *got.Type != corev1.ServiceTypeNodePort || len(got.Ports) != 1 || *got.Ports[0].Port != 80 {
				t.Errorf("the Service is %+v", got)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		spec *int32
		want int32
	}{"not said": {nil, 1}, "zero": {new(int32(0)), 0}, "ten": {new(int32(10)), 10}} {
		t.Run(name, func(t *testing.T) {
			if got := *DesiredDeployment(mywebtest.New(func(w *webv1.MyWeb) {
				w.Spec.Replicas = test.spec
			})).Spec.Replicas; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
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
