package testenv

import (
	"context"
	"sync"
)

// Warnings collects what an API server warns a client of, as the WarningHandlerWithContext of its configuration.
type Warnings struct {
	mu  sync.Mutex
	all []string
}

// HandleWarningHeaderWithContext collects a warning.
func (w *Warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

// Take returns the warnings since the last call.
func (w *Warnings) Take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := w.all
	w.all = nil
	return all
}
