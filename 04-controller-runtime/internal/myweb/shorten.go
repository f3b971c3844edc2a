package myweb

import "unicode/utf8"

// Demanded by fault/36-long-message: the API server can return a message that is longer than the note of an
// event or the message of a condition may be. It would refuse both, so the event would be lost and the status
// never written.
const (
	maxNote    = 1024
	maxMessage = 32768
)

// Shorten returns at most limit bytes of a text, of whole characters, and marks what it leaves out by "…".
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
