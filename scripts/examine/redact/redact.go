// Package redact replaces the data of Secrets in texts with hashes. Reports are uploaded, and read by people who must
// not read the Secrets. The hashes are keyed with random bytes that are never stored: equal values have equal hashes
// within one run, and a dictionary of hashes does not reveal a value.
package redact

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// shortest is the least length of a value that is replaced in texts, because shorter values occur in any text. In the
// data of a Secret itself each value is hashed, however short it is.
const shortest = 4

// Secrets holds the data of Secrets. It is safe for use by many goroutines.
type Secrets struct {
	key []byte

	mu     sync.Mutex
	learnt map[string]bool
	forms  map[string]string // hashes by the forms of a value in a text
	public map[string]bool
}

// New returns Secrets without data.
func New() *Secrets {
	s := &Secrets{key: make([]byte, sha256.Size), learnt: map[string]bool{}, forms: map[string]string{},
		public: map[string]bool{}}
	_, _ = rand.Read(s.key) // it never fails
	return s
}

// Hash is the text that replaces a value in a report.
func (s *Secrets) Hash(value []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(value)
	return fmt.Sprintf("hash:%x", mac.Sum(nil)[:6])
}

// Publish registers names that each report shows. When a Secret contains such a name, or a part of it, a report that
// shows the name does not reveal the Secret.
func (s *Secrets) Publish(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.public[name] = true
	}
}

// Learn adds the data of a Secret, and the strings in it, because a report may contain only a line of a long text, or
// only the password of a URL.
func (s *Secrets) Learn(secret *corev1.Secret) {
	for _, value := range secret.Data {
		s.add(string(value))
		s.add(strings.TrimSpace(string(value)))
		embedded(string(value), 0, s.add)
	}
}

func (s *Secrets) add(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(value) < shortest || s.learnt[value] {
		return
	}
	s.learnt[value] = true
	for _, form := range formsOf(value) {
		if _, known := s.forms[form]; !known {
			s.forms[form] = s.Hash([]byte(value))
		}
	}
}

// A span is a part of a text that contains a value.
type span struct {
	from, to int
	hash     string
}

// Text replaces each known value in a text with its hash. Values that overlap are replaced together, so that no part
// of a value is left.
func (s *Secrets) Text(text string) string {
	var b strings.Builder
	end := 0
	for _, found := range s.spans(text) {
		if found.from >= end {
			b.WriteString(text[end:found.from])
			b.WriteString(found.hash)
		}
		end = max(end, found.to)
	}
	b.WriteString(text[end:])
	return b.String()
}

// isPublished reports whether a form is a part of a published name in a text.
func (s *Secrets) isPublished(text string, from int, form string) bool {
	for name := range s.public {
		for at := range name {
			begin := from - at
			if strings.HasPrefix(name[at:], form) && begin >= 0 && strings.HasPrefix(text[begin:], name) {
				return true
			}
		}
	}
	return false
}

// spans are sorted by their beginning, the longest at each position first.
func (s *Secrets) spans(text string) (all []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for form, hash := range s.forms {
		for from := 0; ; from++ {
			i := strings.Index(text[from:], form)
			if i < 0 {
				break
			}
			from += i
			if s.isPublished(text, from, form) {
				continue
			}
			all = append(all, span{from, from + len(form), hash})
		}
	}
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.hash, b.hash))
	})
	return all
}
