package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

// A Framing defines where an event of a watch ends.
type Framing int

const (
	// Unframed streams are passed on unchanged: logs, and encodings that cannot be read.
	Unframed Framing = iota
	// Values is the framing of JSON: each event is one value, with white space between values and inside them.
	Values
	// Lengths is the framing of protobuf: four bytes, big endian, hold the length of the event.
	Lengths
)

// FramingOf is the framing of a watch with these headers.
func FramingOf(header http.Header) Framing {
	switch kind, _, _ := mime.ParseMediaType(header.Get("Content-Type")); kind {
	case "application/json":
		return Values
	case "application/vnd.kubernetes.protobuf":
		return Lengths
	default:
		return Unframed
	}
}

// Frames returns a function that reads the next frame of a stream. Behind each JSON value it puts a new line, as the
// API server does. At the end, the function returns the error of the stream, perhaps with a last frame.
func (f Framing) Frames(stream io.Reader) (next func() ([]byte, error)) {
	switch f {
	case Values:
		values := json.NewDecoder(stream)
		return func() ([]byte, error) {
			var value json.RawMessage
			if err := values.Decode(&value); err != nil {
				return nil, err
			}
			return append(value, '\n'), nil
		}
	case Lengths:
		return func() ([]byte, error) {
			length := make([]byte, 4)
			if _, err := io.ReadFull(stream, length); err != nil {
				return nil, err
			}
			frame := append(length, make([]byte, binary.BigEndian.Uint32(length))...)
			_, err := io.ReadFull(stream, frame[4:])
			return frame, err
		}
	default:
		buffer := make([]byte, 32<<10)
		return func() ([]byte, error) {
			n, err := stream.Read(buffer)
			return bytes.Clone(buffer[:n]), err
		}
	}
}

// An Event is an event of a watch.
type Event struct {
	// Type is ADDED, MODIFIED, DELETED, BOOKMARK or ERROR.
	Type string
	Object
}

// Event reads a frame. The object of an unframed stream cannot be read.
func (f Framing) Event(frame []byte) (Event, error) {
	switch f {
	case Values:
		var event struct {
			Type   string `json:"type"`
			Object struct {
				jsonObject
				Rows json.RawMessage `json:"rows"` // a custom resource may have a field of this name
			} `json:"object"`
		}
		if err := json.Unmarshal(frame, &event); err != nil {
			return Event{}, err
		}
		if event.Object.Kind == "Table" {
			object, err := inTable(event.Object.Rows)
			return Event{event.Type, object}, err
		}
		return Event{event.Type, event.Object.object()}, nil
	case Lengths:
		var event metav1.WatchEvent
		if err := event.Unmarshal(frame[4:]); err != nil {
			return Event{}, err
		}
		objects, _, err := fromProtobuf(event.Object.Raw)
		if err != nil {
			return Event{}, err
		}
		return Event{event.Type, objects[0]}, nil
	default:
		return Event{}, ErrEncoding
	}
}

// inTable returns the object of a table with one row, which `kubectl get --watch` requests. The table lacks its kind.
func inTable(rows json.RawMessage) (Object, error) {
	var all []struct {
		Object jsonObject `json:"object"`
	}
	if err := json.Unmarshal(rows, &all); err != nil || len(all) != 1 {
		return Object{}, err
	}
	object := all[0].Object.object()
	object.Kind = ""
	return object, nil
}

// Encode makes a frame of an event. The object must have its kind and version; protobuf requires a type that client-go
// knows.
func (f Framing) Encode(kind string, object runtime.Object) ([]byte, error) {
	switch f {
	case Values:
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, err
		}
		frame, err := json.Marshal(metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw}})
		return append(frame, '\n'), err
	case Lengths:
		var raw bytes.Buffer
		if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &raw); err != nil {
			return nil, err
		}
		event := metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: raw.Bytes()}}
		data, err := event.Marshal()
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...), err
	default:
		return nil, fmt.Errorf("put an event into a stream: %w", ErrEncoding)
	}
}
