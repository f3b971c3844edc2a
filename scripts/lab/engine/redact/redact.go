// Package redact replaces the data of Secrets in texts by hashes. Reports are uploaded, and read by people who may not
// read the Secrets. The hashes are keyed with random bytes that are never written down: equal values have equal hashes
// within one run, and nobody finds a value by the hashes of a dictionary.
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

// shortest is how long a value must be to be looked for in texts: shorter ones are in any text. In the data of a
// Secret itself each value is hashed, however short it is.
const shortest = 4

// Secrets knows the data of Secrets. It is safe for use by many goroutines.
type Secrets struct {
	key []byte

	mu     sync.Mutex
	forms  map[string]string // hashes by what stands for a value in a text
	public map[string]bool
}

// New knows no Secret.
func New() *Secrets {
	s := &Secrets{key: make([]byte, sha256.Size), forms: map[string]string{}, public: map[string]bool{}}
	_, _ = rand.Read(s.key) // it never fails
	return s
}

// Hash stands for a value in a report.
func (s *Secrets) Hash(value []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(value)
	return fmt.Sprintf("hash:%x", mac.Sum(nil)[:6])
}

// Publish says which names of objects are in each report. Where a Secret holds such a name, a report that shows the
// name does not show that it is in the Secret.
func (s *Secrets) Publish(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		s.public[name] = true
	}
}

// Learn adds the data of a Secret, and each line of it: of a text with many lines, a report may hold some.
func (s *Secrets) Learn(secret *corev1.Secret) {
	for _, value := range secret.Data {
		s.add(string(value))
		for line := range strings.Lines(string(value)) {
			s.add(strings.TrimSpace(line))
		}
	}
}

func (s *Secrets) add(value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(value) < shortest {
		return
	}
	for _, form := range formsOf(value) {
		if _, known := s.forms[form]; !known {
			s.forms[form] = s.Hash([]byte(value))
		}
	}
}

// A span is a part of a text that stands for a value.
type span struct {
	from, to int
	hash     string
}

// Text is a text in which each value that is known by now is replaced by its hash. Values that overlap are replaced
// together, so that no part of one is left.
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

// spans are in the order in which they begin, the longest of each place first.
func (s *Secrets) spans(text string) (all []span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for form, hash := range s.forms {
		if s.public[form] {
			continue
		}
		for from := 0; ; from++ {
			i := strings.Index(text[from:], form)
			if i < 0 {
				break
			}
			from += i
			all = append(all, span{from, from + len(form), hash})
		}
	}
	slices.SortFunc(all, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to), cmp.Compare(a.hash, b.hash))
	})
	return all
}
