package controller

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2/ktesting"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
)

func TestWhatIsLogged(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "services"}, "site", errors.New("uid"))
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a failure":              {errors.New("no route to host"), true},
		"what status reports":    {&myweb.ConditionError{Reason: "A", Message: "a"}, false},
		"a conflict":             {fmt.Errorf("apply: %w", conflict), false},
		"a port that gets freed": {fmt.Errorf("%w: apply", errNodePortNotFree), false},
	} {
		t.Run(name, func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
			logSyncError(logger, test.err)
			text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if logged := text != ""; logged != test.want {
				t.Errorf("logged: %v, want %v:\n%s", logged, test.want, text)
			}
		})
	}
}

// held stops a controller while one of its writes waits for its answer. It returns when the controller begins no more
// work. The function that it returns lets the answer pass and waits until the controller has ended.
func (f *fixture) held(kind, name string) (release func()) {
	f.Helper()
	arrived, answered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	f.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == kind && r.name == name {
			once.Do(func() { close(arrived); <-answered })
		}
		return pass()
	})
	f.create(name)
	f.Eventually(arrived).Should(BeClosed())
	ended := make(chan struct{})
	go func() { defer close(ended); f.stop() }()
	f.Eventually(f.controller.workqueue.ShuttingDown).Should(BeTrue())
	return func() {
		f.Helper()
		f.Consistently(ended, "300ms").ShouldNot(BeClosed(), "it ended while a write was under way")
		close(answered)
		f.Eventually(ended).Should(BeClosed())
	}
}

func TestRunEndsWhenWhatIsBegunIsDone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	release := f.held("PATCH deployments", "site")
	f.create("late")
	release()
	want := maps.Clone(fewest)
	want["PUT mywebs/status"] = 1
	f.sentExactly(want)
	if !f.exists("Service", "site")() || f.web("site").Status.ObservedGeneration != 1 {
		t.Error("the MyWeb that was begun is not done")
	}
	if f.exists("ConfigMap", "late")() {
		t.Error("another one was begun")
	}
	f.Consistently(f.requests, "300ms").Should(Equal(want))
}
