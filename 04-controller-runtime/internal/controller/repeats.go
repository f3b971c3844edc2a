package controller

import "sync"

// repeats remembers what was said last about something, so that a fault that lasts is told once and not
// at every try.
type repeats struct {
	mu   sync.Mutex
	last map[string]string
}

func newRepeats() *repeats { return &repeats{last: map[string]string{}} }

// isNew reports whether text differs from what was said last about subject.
func (r *repeats) isNew(subject, text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last[subject] == text {
		return false
	}
	r.last[subject] = text
	return true
}

// forget lets the next text about subject be new.
func (r *repeats) forget(subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, subject)
}
