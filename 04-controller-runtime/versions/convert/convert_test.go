package convert

import (
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/randfill"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
)

// A round trip must lose nothing, whatever is in the object: a client that reads and writes one version also reads and
// writes objects of the other version. `go test -fuzz=FuzzFromV1 ./versions/convert` looks for more objects than these.
const seeds = 500

// fuzz runs a round trip with objects from random bytes, until a round trip loses something.
func fuzz(f *testing.F, roundTrip func(t *testing.T, data []byte)) {
	random := rand.New(rand.NewSource(1))
	for range seeds {
		data := make([]byte, 2000)
		random.Read(data)
		f.Add(data)
	}
	failed := false
	f.Fuzz(func(t *testing.T, data []byte) {
		if failed {
			t.Skip("one object was lost: it shows enough")
		}
		roundTrip(t, data)
		failed = t.Failed()
	})
}

// fill fills an object from data, with values that JSON can have.
func fill(t *testing.T, data []byte, web any) {
	t.Helper()
	filler := randfill.NewFromGoFuzz(data).NilChance(0.3).NumElements(0, 3).Funcs(
		func(*metav1.FieldsV1, randfill.Continue) {}, // raw bytes, which have to be JSON
		func(*metav1.TypeMeta, randfill.Continue) {}, // not converted, but set by the caller
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			delete(m.Annotations, Description) // v2 does not use it
			if _, isV1 := web.(*webv1.MyWeb); isV1 && m.Annotations != nil {
				m.Annotations[Description] = "for visitors"
			}
		})
	filler.Fill(web)
	asJSON, err := json.Marshal(web)
	if err == nil {
		err = json.Unmarshal(asJSON, web)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// lost reports the differences; an empty map or list counts as none.
func lost(t *testing.T, what string, before, after any) {
	t.Helper()
	if diff := cmp.Diff(before, after, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-before +after):\n%s", what, diff)
	}
}

// TestNames: a round trip alone would also pass if both directions mixed up the same two fields.
func TestNames(t *testing.T) {
	status := webv1.MyWebStatus{Completed: true, NodePort: 30100, ReadyReplicas: 2}
	old := &webv1.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"a": "b"}},
		Spec: webv1.MyWebSpec{Image: "nginx", NodePortNumber: new(int32(30100)), PageContentHTML: new("<p>"),
			Replicas: new(int32(0))},
		Status: status,
	}
	want := &webv2.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"a": "b"}},
		Spec: webv2.MyWebSpec{Image: "nginx", NodePort: new(int32(30100)), Page: &webv2.Page{HTML: "<p>"},
			Replicas: new(int32(0))},
		Status: webv2.MyWebStatus{Completed: true, NodePort: 30100, ReadyReplicas: 2},
	}
	got := &webv2.MyWeb{}
	must(t, ToV2(t.Context(), old, got))
	lost(t, "v1 to v2", want, got)
}

func TestPage(t *testing.T) {
	for name, html := range map[string]*string{"no page": nil, "an empty page": new(""), "a page": new("<p>")} {
		old, hub, back := &webv1.MyWeb{Spec: webv1.MyWebSpec{PageContentHTML: html}}, &webv2.MyWeb{}, &webv1.MyWeb{}
		must(t, ToV2(t.Context(), old, hub))
		must(t, FromV2(t.Context(), hub, back))
		lost(t, name, old, back)
	}
}

// TestDescription: the annotation is how v1 carries a field of v2, so it is in no v2.
func TestDescription(t *testing.T) {
	web, spoke, back := &webv2.MyWeb{}, &webv1.MyWeb{}, &webv2.MyWeb{}
	web.Spec.Description, web.Annotations = "for visitors", map[string]string{"a": "b"}
	must(t, FromV2(t.Context(), web, spoke))
	if spoke.Annotations[Description] != "for visitors" {
		t.Errorf("v1 has the annotations %v: there is no description", spoke.Annotations)
	}
	must(t, ToV2(t.Context(), spoke, back))
	if got, there := back.Annotations[Description]; there {
		t.Errorf("v2 has the annotation %q, too: a description that is changed there has two values", got)
	}
	lost(t, "v2 to v1 and back", web, back)
}

func FuzzFromV1(f *testing.F) {
	fuzz(f, func(t *testing.T, data []byte) {
		before, hub, after := &webv1.MyWeb{}, &webv2.MyWeb{}, &webv1.MyWeb{}
		fill(t, data, before)
		untouched := before.DeepCopy()
		must(t, ToV2(t.Context(), before, hub))
		must(t, FromV2(t.Context(), hub, after))
		lost(t, "v1 to v2 and back", before, after)
		lost(t, "ToV2 changed what it got", untouched, before)
	})
}

func FuzzFromV2(f *testing.F) {
	fuzz(f, func(t *testing.T, data []byte) {
		before, spoke, after := &webv2.MyWeb{}, &webv1.MyWeb{}, &webv2.MyWeb{}
		fill(t, data, before)
		untouched := before.DeepCopy()
		must(t, FromV2(t.Context(), before, spoke))
		must(t, ToV2(t.Context(), spoke, after))
		lost(t, "v2 to v1 and back", before, after)
		lost(t, "FromV2 changed what it got", untouched, before)
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("a conversion must not fail: %v", err)
	}
}
