package controller

import (
	"unicode/utf8"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// An event reports a transition; kubectl describe shows it.
type event struct {
	kind, action string
	explanation
}

// maxNote is the longest note of an event, in bytes. The API server refuses a longer one, and the event would be lost:
// https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/apis/core/validation/events.go.
const maxNote = 1024

// recordEvent records an event. It shortens a note that is too long.
func (r *Base) recordEvent(about client.Object, e event) {
	r.Events.Eventf(about, nil, e.kind, e.reason, e.action, "%s", shorten(e.message, maxNote))
}

// shorten cuts a text to a number of bytes, between two runes, and marks the cut.
func shorten(text string, most int) string {
	const mark = "…"
	if len(text) <= most {
		return text
	}
	end := most - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
