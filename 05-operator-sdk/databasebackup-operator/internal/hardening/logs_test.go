package hardening

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/go-logr/logr/funcr"
)

func TestAnErrorThatRepeatsIsLoggedOnce(t *testing.T) {
	var lines []string
	ctx, stop := context.WithCancel(t.Context())
	logger := Deduplicate(ctx,
		funcr.New(func(prefix, args string) { lines = append(lines, prefix+" "+args) }, funcr.Options{}))
	for try := range 3 {
		one := logger.WithName("controller").WithValues("name", "a", "reconcileID", try)
		one.Error(errors.New("no"), "Reconciler error", "stacktrace", try)
		one.Error(errors.New("no, again"), "Reconciler error")
		one.Error(fmt.Errorf("get: %w", context.Canceled), "Could not get")
		logger.WithName("controller").WithValues("name", "b", "reconcileID", try).Error(errors.New("no"), "Reconciler error")
		logger.Error(nil, "Could not list", "kind", "ConfigMap")
		logger.Error(nil, "Could not list", "kind", "Service")
		one.Info("Applied child")
	}
	stop()
	logger.Error(fmt.Errorf("get: %w", context.Canceled), "Could not stop")
	if len(lines) != 9 {
		t.Errorf("%d lines, want six errors and three others:\n%q", len(lines), lines)
	}
	if want := `controller "level"=0 "msg"="Applied child" "name"="a" "reconcileID"=2`; !slices.Contains(lines, want) {
		t.Errorf("names and values are passed on: want %s in\n%q", want, lines)
	}
}
