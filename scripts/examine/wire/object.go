package wire

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

// An Object has the fields of an object in an answer that the lab needs.
type Object struct {
	Kind, Namespace, Name, UID, ResourceVersion string
}

// ErrEncoding means that an answer is neither JSON nor protobuf.
var ErrEncoding = errors.New("neither JSON nor protobuf")

// protobufMagic begins every object in protobuf; a runtime.Unknown follows, whose Raw is the object.
var protobufMagic = []byte("k8s\x00")

// Objects returns the objects of an answer: one, or the items of a list. It decodes only their metadata. For JSON it
// decodes the whole text into a small struct. In protobuf every kind has its metadata in field 1, and every list has
// its items in field 2, so that PartialObjectMetadata, which has only these fields, decodes all kinds and skips the
// other fields.
func Objects(header http.Header, body []byte) (objects []Object, isList bool, err error) {
	if body, err = unpacked(header, body); err != nil {
		return nil, false, err
	}
	switch kind, _, _ := mime.ParseMediaType(header.Get("Content-Type")); kind {
	case "application/json":
		return fromJSON(body)
	case "application/vnd.kubernetes.protobuf":
		return fromProtobuf(body)
	default:
		return nil, false, fmt.Errorf("%w: %q", ErrEncoding, kind)
	}
}

func unpacked(header http.Header, body []byte) ([]byte, error) {
	if header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// Message is the message of an answer that refuses a request; empty when the answer is not a Status.
func Message(header http.Header, body []byte) string {
	body, err := unpacked(header, body)
	if err != nil {
		return ""
	}
	var status metav1.Status
	if rest, ok := bytes.CutPrefix(body, protobufMagic); ok {
		var envelope runtime.Unknown
		if err := envelope.Unmarshal(rest); err != nil || status.Unmarshal(envelope.Raw) != nil {
			return ""
		}
	} else if json.Unmarshal(body, &status) != nil {
		return ""
	}
	return status.Message
}

type jsonObject struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Namespace       string `json:"namespace"`
		Name            string `json:"name"`
		UID             string `json:"uid"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
}

func (o jsonObject) object() Object {
	return Object{o.Kind, o.Metadata.Namespace, o.Metadata.Name, o.Metadata.UID, o.Metadata.ResourceVersion}
}

func fromJSON(body []byte) ([]Object, bool, error) {
	var one struct {
		jsonObject
		Items json.RawMessage `json:"items"` // a custom resource may have a field of this name
	}
	if err := json.Unmarshal(body, &one); err != nil {
		return nil, false, err
	}
	if !isListKind(one.Kind) {
		return []Object{one.object()}, false, nil
	}
	var items []jsonObject
	if err := json.Unmarshal(one.Items, &items); err != nil {
		return nil, true, err
	}
	var all []Object
	for _, item := range items {
		all = append(all, item.object())
	}
	return all, true, nil
}

func fromProtobuf(body []byte) ([]Object, bool, error) {
	rest, ok := bytes.CutPrefix(body, protobufMagic)
	if !ok {
		return nil, false, fmt.Errorf("%w: protobuf without its first four bytes", ErrEncoding)
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(rest); err != nil {
		return nil, false, err
	}
	if envelope.Kind == "Status" { // it has list metadata in field 1, and no identity
		return []Object{{Kind: envelope.Kind}}, false, nil
	}
	if !isListKind(envelope.Kind) {
		var one metav1.PartialObjectMetadata
		if err := one.Unmarshal(envelope.Raw); err != nil {
			return nil, false, err
		}
		return []Object{fromMeta(envelope.Kind, &one)}, false, nil
	}
	var list metav1.PartialObjectMetadataList
	if err := list.Unmarshal(envelope.Raw); err != nil {
		return nil, false, err
	}
	var all []Object
	for i := range list.Items {
		all = append(all, fromMeta("", &list.Items[i]))
	}
	return all, true, nil
}

func fromMeta(kind string, o *metav1.PartialObjectMetadata) Object {
	return Object{kind, o.Namespace, o.Name, string(o.UID), o.ResourceVersion}
}

// isListKind recognizes a list by the name of its kind, as the API conventions require.
func isListKind(kind string) bool { return strings.HasSuffix(kind, "List") }

// Contents returns the objects of an answer as JSON. It leaves out the objects of which the answer has only a part.
func Contents(header http.Header, body []byte) [][]byte {
	body, err := unpacked(header, body)
	if err != nil {
		return nil
	}
	return contents(body)
}

func contents(body []byte) (all [][]byte) {
	if bytes.HasPrefix(body, protobufMagic) {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err == nil {
			body, err = json.Marshal(object)
		}
		if err != nil {
			return nil // it is of a kind that client-go does not know
		}
	}
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	switch err := json.Unmarshal(body, &list); {
	case list.Kind == "Status", list.Kind == "Table", strings.HasPrefix(list.Kind, "PartialObjectMetadata"):
		return nil
	case !isListKind(list.Kind): // it may have a field items
		return [][]byte{body}
	case err != nil:
		return nil
	}
	for _, item := range list.Items {
		all = append(all, item)
	}
	return all
}

// Content returns the object of an event as JSON, or nothing when the event has only a part of the object.
func (f Framing) Content(frame []byte) []byte {
	var raw []byte
	switch f {
	case Values:
		var event struct{ Object json.RawMessage }
		if json.Unmarshal(frame, &event) == nil {
			raw = event.Object
		}
	case Lengths:
		var event metav1.WatchEvent
		if event.Unmarshal(frame[4:]) == nil {
			raw = event.Object.Raw
		}
	}
	if all := contents(raw); len(all) == 1 {
		return all[0]
	}
	return nil
}
