package controller

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func myWeb(change ...func(*webv1.MyWeb)) *webv1.MyWeb {
	web := &webv1.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Name: "site", Namespace: "default", UID: "u-1", Generation: 3},
		Spec:       webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(30100)), PageContentHTML: new("<h1>Hello</h1>")},
	}
	for _, c := range change {
		c(web)
	}
	return web
}

func TestThePageIsStoredAsItIs(t *testing.T) {
	for name, html := range map[string]string{
		"plain": "<h1>Hello</h1>", "empty": "", "template marks": "{{ .Values }} ${HOME}", "quotes": `"'\`,
		"unicode": "Grüße, 世界 🌍", "line ends": "a\r\nb\n\n", "a NUL would not be JSON, a tab is": "\t",
	} {
		t.Run(name, func(t *testing.T) {
			got := desiredPage(myWeb(func(w *webv1.MyWeb) { w.Spec.PageContentHTML = &html })).Data[pageFile]
			if got != html {
				t.Errorf("got %q, want %q", got, html)
			}
		})
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
		"another image":        {func(w *webv1.MyWeb) { w.Spec.Image = "nginx:1.29-alpine" }, true},
		"another port":         {func(w *webv1.MyWeb) { w.Spec.NodePortNumber = nil }, false},
		"another replica":      {func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(2)) }, false},
		"another generation":   {func(w *webv1.MyWeb) { w.Generation = 9 }, false},
		"nothing, once more":   {func(*webv1.MyWeb) {}, false},
		"a label of the MyWeb": {func(w *webv1.MyWeb) { w.Labels = map[string]string{"a": "b"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if rolls := template(test.change) != before; rolls != test.rolls {
				t.Errorf("rolls: %v, want %v", rolls, test.rolls)
			}
		})
	}
}

func TestTheSelectorNeverChanges(t *testing.T) {
	before := desiredPods(myWeb()).Spec.Selector.MatchLabels
	after := desiredPods(myWeb(func(w *webv1.MyWeb) {
		w.Spec = webv1.MyWebSpec{Image: "registry:5000/web@sha256:" + strings.Repeat("a", 64)}
	})).Spec.Selector.MatchLabels
	if len(before) != 2 || before[labelName] != after[labelName] || before[labelInstance] != after[labelInstance] {
		t.Errorf("before %v, after %v", before, after)
	}
	other := desiredPods(myWeb(func(w *webv1.MyWeb) { w.Name = "other" })).Spec.Selector.MatchLabels
	if other[labelInstance] == before[labelInstance] {
		t.Error("two MyWebs share a selector")
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
