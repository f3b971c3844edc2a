package testenv

import (
	"bytes"
	"sync"
)

// Output collects what a program prints. It can be read meanwhile.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write collects a text.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

// String returns what was collected so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
