package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
)

// service is an object with fields of every number, so that a reader of metadata has fields to skip.
func service(name, version string) *corev1.Service {
	return &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: "uid-of-" + "b", ResourceVersion: version,
			Labels: map[string]string{"x": "y"}},
		Spec:   corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, NodePort: 30100}}, ClusterIP: "10.0.0.1"},
		Status: corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: "Ready"}}},
	}
}

func encodeAs(t *testing.T, contentType string, object runtime.Object) []byte {
	t.Helper()
	var out bytes.Buffer
	err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &out)
	if contentType == asJSON {
		out.Reset()
		err = json.NewEncoder(&out).Encode(object)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestObjectsOfAnAnswer(t *testing.T) {
	list := &corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "99"}, Items: []corev1.Service{*service("b", "7"), *service("c", "8")}}
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success",
		Details: &metav1.StatusDetails{Name: "b", UID: "u"}}
	for _, contentType := range []string{asJSON, asProtobuf} {
		for name, test := range map[string]struct {
			object runtime.Object
			want   []Object
			isList bool
		}{
			"one":    {service("b", "7"), []Object{{"Service", "a", "b", "uid-of-b", "7"}}, false},
			"list":   {list, []Object{{"", "a", "b", "uid-of-b", "7"}, {"", "a", "c", "uid-of-b", "8"}}, true},
			"status": {status, []Object{{Kind: "Status"}}, false},
		} {
			t.Run(name+" as "+contentType, func(t *testing.T) {
				body := encodeAs(t, contentType, test.object)
				got, isList, err := Objects(http.Header{"Content-Type": {contentType + "; charset=utf-8"}}, body)
				for i := range got { // items may leave their kind out
					if isList {
						got[i].Kind = ""
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" || isList != test.isList || err != nil {
					t.Errorf("list %v, error %v\n%s", isList, err, diff)
				}
			})
		}
	}
}

// TestTheContentOfAnObject has the same content in both encodings, alone, in a list and in an event.
func TestTheContentOfAnObject(t *testing.T) {
	same := func(t *testing.T, content []byte) {
		t.Helper()
		var got corev1.Service
		if err := json.Unmarshal(content, &got); err != nil {
			t.Fatal(err)
		}
		got.TypeMeta = metav1.TypeMeta{}
		want := *service("b", "7")
		want.TypeMeta = metav1.TypeMeta{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	list := &corev1.ServiceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceList"},
		Items: []corev1.Service{*service("b", "7")}}
	status := &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"}
	for framing, contentType := range map[Framing]string{Values: asJSON, Lengths: asProtobuf} {
		header := http.Header{"Content-Type": {contentType}}
		for _, object := range []runtime.Object{service("b", "7"), list} {
			all := Contents(header, encodeAs(t, contentType, object))
			if len(all) != 1 {
				t.Fatalf("%s: %d objects", contentType, len(all))
			}
			same(t, all[0])
		}
		if all := Contents(header, encodeAs(t, contentType, status)); len(all) > 0 {
			t.Errorf("%s: a Status has a content: %s", contentType, all)
		}
		frame, err := framing.Encode("MODIFIED", service("b", "7"))
		if err != nil {
			t.Fatal(err)
		}
		same(t, framing.Content(frame))
	}
	if all := Contents(nil, []byte(`{"kind":"Table","metadata":{"uid":"u"},"rows":[]}`)); len(all) > 0 {
		t.Errorf("a table has a content: %s", all)
	}
}

func TestObjectsOfAPackedAnswer(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(encodeAs(t, asJSON, service("b", "7")))
	_ = w.Close()
	got, _, err := Objects(http.Header{"Content-Type": {asJSON}, "Content-Encoding": {"gzip"}}, packed.Bytes())
	if err != nil || len(got) != 1 || got[0].ResourceVersion != "7" {
		t.Errorf("%v, %v", got, err)
	}
	if _, _, err := Objects(http.Header{"Content-Type": {"application/cbor"}}, nil); !errors.Is(err, ErrEncoding) {
		t.Errorf("CBOR is said to be readable: %v", err)
	}
	got, _, err = Objects(http.Header{"Content-Type": {asJSON}},
		[]byte(`{"kind":"Shop","items":{"a":1},"metadata":{"uid":"u"}}`))
	if err != nil || len(got) != 1 || got[0].UID != "u" {
		t.Errorf("an object with a field items: %v, %v", got, err)
	}
}

func TestEventsOfAStream(t *testing.T) {
	custom := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "g.io/v1", "kind": "Web",
		"metadata": map[string]any{"name": "w", "uid": "u", "resourceVersion": "3"}, "text": "two\nlines"}}
	for framing, contentType := range map[Framing]string{
		Values: asJSON + ";stream=watch", Lengths: asProtobuf + ";stream=watch"} {
		if got := FramingOf(http.Header{"Content-Type": {contentType}}); got != framing {
			t.Fatalf("%s: framing %v", contentType, got)
		}
		var stream []byte
		var want []Event
		add := func(kind string, object runtime.Object, o Object) {
			frame, err := framing.Encode(kind, object)
			if err != nil {
				t.Fatal(err)
			}
			stream, want = append(stream, frame...), append(want, Event{kind, o})
		}
		add("ADDED", service("b", "7"), Object{"Service", "a", "b", "uid-of-b", "7"})
		add("ERROR", &metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: 410},
			Object{Kind: "Status"})
		add("DELETED", &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: "s"}}, Object{"Secret", "", "s", "", ""})
		if framing == Values {
			add("ADDED", custom, Object{"Web", "", "w", "u", "3"})
			add("MODIFIED", &metav1.Table{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"},
				Rows: []metav1.TableRow{{Object: runtime.RawExtension{Object: custom}}}}, Object{"", "", "w", "u", "3"})
		}
		var got []Event
		for next := framing.Frames(iotest.OneByteReader(bytes.NewReader(stream))); ; {
			frame, err := next()
			if errors.Is(err, io.EOF) {
				break
			}
			event, invalid := framing.Event(frame)
			if err := errors.Join(err, invalid); err != nil {
				t.Fatal(err)
			}
			got = append(got, event)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", contentType, diff)
		}
		if _, err := framing.Frames(bytes.NewReader(stream[:10]))(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: half an event ends with %v", contentType, err)
		}
	}
}
