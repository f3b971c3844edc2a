package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

func TestContained(t *testing.T) {
	type object = map[string]any
	type list = []any
	shared := func(elements ...any) object { return object{"volumes": elements} }
	for name, test := range map[string]struct {
		want, have any
		ok         bool
	}{
		"equal":                         {object{"a": "1"}, object{"a": "1"}, true},
		"a field more":                  {object{"a": "1"}, object{"a": "1", "b": "2"}, true},
		"another value":                 {object{"a": "1"}, object{"a": "2"}, false},
		"an empty value is a value":     {object{"a": ""}, object{"a": "x"}, false},
		"an empty value that is there":  {object{"a": ""}, object{"a": ""}, true},
		"a missing field":               {object{"a": "1"}, object{}, false},
		"a missing empty object":        {object{"a": object{}}, object{}, false},
		"an empty object that is there": {object{"a": object{}}, object{"a": object{"b": "1"}}, true},
		"an element more, before":       {shared(object{"name": "x"}), shared(object{"name": "y"}, object{"name": "x", "z": "1"}), true},
		"an element changed":            {shared(object{"name": "x", "v": "1"}), shared(object{"name": "x", "v": "2"}), false},
		"an element missing":            {shared(object{"name": "x"}), shared(), false},
		"an element more, in our list":  {object{"sysctls": list{object{"name": "x"}}}, object{"sysctls": list{object{"name": "x"}, object{"name": "y"}}}, false},
		"a default in our list":         {object{"sysctls": list{object{"name": "x"}}}, object{"sysctls": list{object{"name": "x", "z": "1"}}}, true},
		"a list of strings":             {list{"ALL"}, list{"ALL"}, true},
		"a list of strings, longer":     {list{"ALL"}, list{"ALL", "CHOWN"}, false},
		"a number":                      {object{"a": int64(1)}, object{"a": int64(2)}, false},
		"a list that is none":           {object{"ports": list{"a"}}, object{"ports": "a"}, false},
		"an object that is none":        {object{"a": "1"}, "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			if ok := contained("", test.want, test.have); ok != test.ok {
				t.Errorf("got %v, want %v", ok, test.ok)
			}
		})
	}
}

func TestSigningIsStableAndShowsALostField(t *testing.T) {
	signature := func(change func(*corev1ac.ConfigMapApplyConfiguration)) string {
		want := desiredPage(myWeb())
		change(want)
		if err := sign(child{want: want, meta: want.ObjectMetaApplyConfiguration, live: &corev1.ConfigMap{}}); err != nil {
			t.Fatal(err)
		}
		return want.Annotations[annotationApplied]
	}
	same := func(*corev1ac.ConfigMapApplyConfiguration) {}
	if signature(same) != signature(same) {
		t.Error("the same child has two signatures")
	}
	if signature(same) == signature(func(c *corev1ac.ConfigMapApplyConfiguration) { delete(c.Labels, labelPartOf) }) {
		t.Error("a child without a label has the signature of the one with it")
	}
}

func TestTheSameMyWebGivesTheSameChildren(t *testing.T) {
	hashes := func() (all []string) {
		c := desiredChildren(myWeb(func(w *webv1.MyWeb) { w.Spec.Replicas = new(int32(3)) }))
		for _, child := range c.list {
			if err := sign(child); err != nil {
				t.Fatal(err)
			}
			all = append(all, child.meta.Annotations[annotationApplied])
		}
		return all
	}
	first := hashes()
	for range 50 { // a map in the wrong place would show as another order
		for i, h := range hashes() {
			if h != first[i] {
				t.Fatalf("child %d has another signature", i)
			}
		}
	}
}
