package controller

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// normal are the reasons of events of the type Normal; all other events are warnings. pgbackup gives the last three.
var normal = map[string]bool{databasesv1.ReasonScheduled: true, databasesv1.ReasonSuspended: true,
	databasesv1.ReasonStarted: true, databasesv1.ReasonReplaced: true, databasesv1.ReasonRestoring: true,
	"BackupSucceeded": true, "AlreadyComplete": true, "RestoreSucceeded": true}

// maxNote is the longest note of an event, in bytes. The API server refuses a longer one, and the event would be lost:
// https://github.com/kubernetes/kubernetes/blob/v1.37.1/pkg/apis/core/validation/events.go.
const maxNote = 1024

// recordEvent records an event, which reports a transition; kubectl describe shows it. A note that is too long is
// shortened.
func (r *Base) recordEvent(about client.Object, action string, e explanation) {
	kind := corev1.EventTypeWarning
	if normal[e.reason] {
		kind = corev1.EventTypeNormal
	}
	r.Events.Eventf(about, nil, kind, e.reason, action, "%s", shorten(e.message, maxNote))
}

// recordTransition records an event about a condition whose status or reason has changed.
func (r *Base) recordTransition(about client.Object, action string, was, is metav1.Condition) {
	if was.Status != is.Status || was.Reason != is.Reason {
		r.recordEvent(about, action, explanation{is.Reason, is.Message})
	}
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
