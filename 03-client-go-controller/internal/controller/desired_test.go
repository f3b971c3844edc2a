package controller

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

func myWeb(change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	web := &webv1.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "u-1", Generation: 3},
		Spec:       webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(30100)), PageContentHTML: new("<h1>Hello</h1>")},
	}
	for _, f := range change {
		f(web)
	}
	return web
}

func TestThePageIsStoredAsItIs(t *testing.T) {
	for name, html := range map[string]string{
		"plain": "<h1>Hello</h1>", "empty": "", "template marks": "{{ .Values }} ${HOME}", "quotes": `"'\`,
		"Unicode": "Grüße, 世界 🌍", "line ends": "a\r\nb\n\n", "a tab": "\t",
	} {
		t.Run(name, func(t *testing.T) {
			got := desiredPage(myWeb(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = &html })).Data
			if diff := cmp.Diff(map[string]string{pageFile: html}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := desiredPage(myWeb(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = nil })).Data; got[pageFile] != "" || len(got) != 1 {
		t.Errorf("no page is given, the ConfigMap holds %q", got)
	}
}

func TestWhatRollsThePods(t *testing.T) {
	template := func(change func(*webv1.MyWeb)) string {
		data, err := json.Marshal(desiredPods(myWeb(change)).Spec.Template)
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
	none := pageHash(myWeb(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = nil }))
	empty := pageHash(myWeb(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = new("") }))
	if none != empty {
		t.Errorf("pods would roll from %s to %s for the same page", none, empty)
	}
}

func TestTheSelectorIsOnlyNameAndInstance(t *testing.T) {
	for name, change := range map[string]func(*webv1.MyWeb){
		"the sample":     func(*webv1.MyWeb) {},
		"a digest":       func(w *webv1.MyWeb) { w.Spec.Image = "registry:5000/web@sha256:" + strings.Repeat("a", 64) },
		"other numbers":  func(w *webv1.MyWeb) { w.Spec.Replicas, w.Spec.NodePortNumber = new(int32(3)), nil },
		"another UID":    func(w *webv1.MyWeb) { w.UID = "u-2" },
		"labels of ours": func(w *webv1.MyWeb) { w.Labels = map[string]string{labelName: "x"} },
	} {
		t.Run(name, func(t *testing.T) {
			want := map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "site"}
			web := myWeb(change)
			if diff := cmp.Diff(want, desiredPods(web).Spec.Selector.MatchLabels); diff != "" {
				t.Error("Deployment:", diff)
			}
			if diff := cmp.Diff(want, desiredService(web).Spec.Selector); diff != "" {
				t.Error("Service:", diff)
			}
		})
	}
}

func TestASelectorFindsItsOwnPodsAndNoOthers(t *testing.T) {
	webs := []*webv1.MyWeb{myWeb(), myWeb(func(w *webv1.MyWeb) { w.Name = "other" })}
	for _, mine := range webs {
		for _, other := range webs {
			pods := apilabels.Set(desiredPods(other).Spec.Template.Labels)
			for kind, selector := range map[string]map[string]string{
				"Deployment": desiredPods(mine).Spec.Selector.MatchLabels, "Service": desiredService(mine).Spec.Selector,
			} {
				if found := apilabels.SelectorFromSet(selector).Matches(pods); found != (mine == other) {
					t.Errorf("%s %s finds the pods of %s: %v", kind, mine.Name, other.Name, found)
				}
			}
		}
	}
}

func TestEachChildIsLabelledAndControlled(t *testing.T) {
	web := myWeb()
	owner := []metav1ac.OwnerReferenceApplyConfiguration{*metav1ac.OwnerReference().
		WithAPIVersion("operator.k8s-summit.org/v1").WithKind("MyWeb").WithName("site").WithUID("u-1").WithController(true)}
	labels := map[string]string{"app.kubernetes.io/name": "myweb", "app.kubernetes.io/instance": "site",
		"app.kubernetes.io/part-of": "operator-workshop", "app.kubernetes.io/managed-by": "myweb-operator"}
	var kinds []string
	for _, child := range desiredChildren(web) {
		kinds = append(kinds, child.kind)
		if *child.meta.Name != "site" || *child.meta.Namespace != "default" {
			t.Errorf("%s is %s/%s", child.kind, *child.meta.Namespace, *child.meta.Name)
		}
		if diff := cmp.Diff(owner, child.meta.OwnerReferences); diff != "" {
			t.Error(child.kind, diff)
		}
		if diff := cmp.Diff(labels, child.meta.Labels); diff != "" {
			t.Error(child.kind, diff)
		}
	}
	if want := []string{"ConfigMap", "Deployment", "Service"}; !slices.Equal(kinds, want) {
		t.Errorf("the children are %v, want %v: pods need their page", kinds, want)
	}
}

func TestOnlySomeKinds(t *testing.T) {
	kinds := func(c children) (all []string) {
		for _, child := range c {
			all = append(all, child.kind)
		}
		return all
	}
	if got := kinds(desiredChildren(myWeb()).only([]string{"Service", "ConfigMap"})); !slices.Equal(got, []string{"ConfigMap", "Service"}) {
		t.Errorf("got %v", got)
	}
	if got := desiredChildren(myWeb()).only(nil); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestThePodMeetsTheRestrictedStandard(t *testing.T) {
	pod := desiredPod(myWeb())
	if c := pod.SecurityContext; !*c.RunAsNonRoot || *c.RunAsUser == 0 || *c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("the pod's security context is %+v", c)
	}
	if *pod.AutomountServiceAccountToken {
		t.Error("the pod gets a token that it has no use for")
	}
	for _, c := range pod.Containers {
		if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
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
	pod := desiredPod(myWeb())
	mounted := map[string]bool{}
	for _, m := range pod.Containers[0].VolumeMounts {
		if mounted[*m.Name] {
			t.Errorf("volume %s is mounted twice", *m.Name)
		}
		mounted[*m.Name] = true
		if page := *m.Name == "page"; page != (m.ReadOnly != nil && *m.ReadOnly) || page != (*m.MountPath == "/usr/share/nginx/html") {
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
			got := desiredService(myWeb(func(w *webv1.MyWeb) { w.Spec.NodePortNumber = port })).Spec
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
			if got := *desiredPods(myWeb(func(w *webv1.MyWeb) { w.Spec.Replicas = test.spec })).Spec.Replicas; got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestTheMyWebItselfIsNotChanged(t *testing.T) {
	web := myWeb()
	before := web.DeepCopy()
	all := desiredChildren(web)
	for _, child := range all {
		if _, err := sign(web, child); err != nil {
			t.Fatal(err)
		}
	}
	*all[2].want.(interface{ GetName() *string }).GetName() = "changed" // a pointer into the MyWeb would show
	if diff := cmp.Diff(before, web); diff != "" {
		t.Error(diff)
	}
}
