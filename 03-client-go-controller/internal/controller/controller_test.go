package controller

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2/ktesting"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

func TestWhatIsLogged(t *testing.T) {
	site := cache.NewObjectName("default", "site")
	broken := errors.New("no route to host")
	for name, test := range map[string]struct {
		errs []error
		want int
	}{
		"a failure":                        {[]error{broken}, 1},
		"the same failure again":           {[]error{broken, broken, broken}, 1},
		"another one, and the first again": {[]error{broken, errors.New("no answer"), broken}, 3},
		"a panic, each with another stack": {[]error{fmt.Errorf("%w: x\ngoroutine 1", errPanic), fmt.Errorf("%w: x\ngoroutine 2", errPanic)}, 1},
		"what status tells":                {[]error{obstacle{reason: "A", message: "a"}}, 0},
		"somebody was faster":              {[]error{fmt.Errorf("apply: %w", apierrors.NewConflict(serviceResource, "site", errors.New("uid")))}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
			c := &Controller{failed: newRepeats()}
			for _, err := range test.errs {
				c.report(logger, site, err)
			}
			text := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
			if got := strings.Count(text, "Could not serve"); got != test.want || test.want == 0 && text != "" {
				t.Errorf("logged %d times, want %d:\n%s", got, test.want, text)
			}
		})
	}
}

func TestAPanicDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	panics := 0
	b.start(Options{}, func(c *Controller) {
		desired := c.desired
		c.desired = func(web *webv1.MyWeb) children {
			if web.Name == "broken" {
				mu.Lock()
				defer mu.Unlock()
				panics++
				panic("no such thing")
			}
			return desired(web)
		}
	})
	before := counted(t)["panic"]
	b.create("broken")
	for _, name := range []string{"a", "b", "c", "d", "e"} { // more than the workers
		b.create(name)
		b.complete(name)
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return panics
	}
	b.Eventually(count).Should(BeNumerically(">", 3))
	b.Consistently(count, 2*time.Second).Should(BeNumerically("<=", 14)) // 5 ms, doubled each time
	if b.exists("ConfigMap", "broken")() {
		t.Error("the broken one has a child")
	}
	if counted(t)["panic"] == before {
		t.Error("no panic was counted")
	}
}

// held stops a controller while one of its writes waits for its answer. It returns when no more work is
// begun, with a function that lets the answer come and waits for the end.
func (b *bench) held(kind, name string) (release func()) {
	b.Helper()
	arrived, answered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == kind && r.name == name {
			once.Do(func() { close(arrived); <-answered })
		}
		return pass()
	})
	b.create(name)
	b.Eventually(arrived).Should(BeClosed())
	ended := make(chan struct{})
	go func() { defer close(ended); b.stop() }()
	b.Eventually(b.controller.queue.ShuttingDown).Should(BeTrue())
	return func() {
		b.Helper()
		b.Consistently(ended, "300ms").ShouldNot(BeClosed(), "it ended while a write was under way")
		close(answered)
		b.Eventually(ended).Should(BeClosed())
	}
}

func TestRunEndsWhenWhatIsBegunIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{})
	release := b.held("PATCH deployments", "site")
	b.create("late")
	release()
	want := maps.Clone(fewest)
	want["PUT mywebs/status"] = 1
	b.sentExactly(want)
	if !b.exists("Service", "site")() || b.web("site").Status.ObservedGeneration != 1 {
		t.Error("the MyWeb that was begun is not done")
	}
	if b.exists("ConfigMap", "late")() {
		t.Error("another one was begun")
	}
	b.Consistently(b.requests, "300ms").Should(Equal(want))
}

func TestRunDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{})
	b.between(func(r request, _ func() (*http.Response, error)) (*http.Response, error) {
		<-r.Context().Done() // a server that never answers
		return nil, r.Context().Err()
	})
	b.create("site")
	b.Eventually(b.total).Should(Equal(1))
	began := time.Now()
	b.stop()
	if took := time.Since(began); took < drainTimeout || took > drainTimeout+atOnce {
		t.Errorf("it took %s to end, want %s", took, drainTimeout)
	}
	b.sentExactly(map[string]int{"PATCH configmaps": 1})
}

func TestWhatIsQueuedAtTheEndIsLeftToTheNext(t *testing.T) {
	t.Parallel()
	const webs = 2 * workers
	b := newBench(t)
	b.start(Options{})
	answered := make(chan struct{})
	b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		if r.kind == "PATCH configmaps" {
			<-answered
		}
		return pass()
	})
	for i := range webs {
		b.create(fmt.Sprint("site-", i))
	}
	b.Eventually(b.controller.queue.Len).Should(Equal(webs - workers))
	time.AfterFunc(300*time.Millisecond, func() { close(answered) })
	b.stop()
	b.sentExactly(map[string]int{"PATCH configmaps": workers, "PATCH deployments": workers, "PATCH services": workers, "PUT mywebs/status": workers})
	b.start(Options{})
	for i := range webs {
		b.complete(fmt.Sprint("site-", i))
	}
	b.sentExactly(map[string]int{"PATCH configmaps": workers, "PATCH deployments": workers, "PATCH services": workers, "PUT mywebs/status": webs + workers})
}

func TestOnlySomeKindsOfChildren(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.start(Options{Only: []string{"ConfigMap", "Service"}})
	b.create("site")
	want := map[string]int{"PATCH configmaps": 1, "PATCH services": 1}
	b.Eventually(b.requests).Should(Equal(want))
	b.look("site")
	b.Consistently(b.requests).Should(Equal(want))
	b.edit("site", func(s *webv1.MyWebSpec) { s.PageContentHTML = new("new") })
	want["PATCH configmaps"]++
	b.Eventually(b.requests).Should(Equal(want))
	if s := b.web("site").Status; len(s.Conditions) > 0 || s.ObservedGeneration != 0 {
		t.Errorf("status was told: %+v", s)
	}
}

func TestNoMyWebIsHandledByTwoWorkersAtOnce(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c", "d"}
	b := newBench(t)
	var mu sync.Mutex
	active, most := map[string]int{}, 0
	b.start(Options{})
	b.between(func(r request, pass func() (*http.Response, error)) (*http.Response, error) {
		mu.Lock()
		active[r.name]++
		if active[r.name] > 1 {
			b.Errorf("two workers write for %s", r.name)
		}
		most = max(most, len(active))
		mu.Unlock()
		for range 20 { // meanwhile everything wakes them
			for _, name := range names {
				b.controller.queue.Add(cache.NewObjectName(b.namespace, name))
			}
			time.Sleep(time.Millisecond)
		}
		response, err := pass()
		mu.Lock()
		defer mu.Unlock()
		delete(active, r.name)
		return response, err
	})
	for _, name := range names {
		b.create(name)
	}
	for _, name := range names {
		b.complete(name)
	}
	b.between(nil)
	if n := b.total(); n != 5*len(names) {
		t.Errorf("%d requests, want 5 for each MyWeb: %v", n, b.requests())
	}
	if mu.Lock(); most < 2 {
		t.Error("the MyWebs were handled one after the other")
	}
	mu.Unlock()
}

func TestTheQueueHoldsANameOnce(t *testing.T) {
	q := NewQueue()
	defer q.ShutDown()
	site, other := cache.NewObjectName("default", "site"), cache.NewObjectName("default", "other")
	q.Add(site)
	q.Add(other)
	q.Add(site)
	var got []string
	for q.Len() > 0 {
		name, _ := q.Get()
		got = append(got, name.Name)
	}
	if !slices.Equal(got, []string{"site", "other"}) {
		t.Errorf("the queue gave %v", got)
	}
	q.Add(site)
	if q.Len() != 0 {
		t.Error("a MyWeb that is being handled is given out again")
	}
	if q.Done(site); q.Len() != 1 {
		t.Error("what woke a MyWeb while it was handled is forgotten")
	}
}

func TestPausesGrowUpToABound(t *testing.T) {
	q := NewQueue()
	defer q.ShutDown()
	site := cache.NewObjectName("default", "site")
	q.AddRateLimited(site)
	if q.NumRequeues(site) != 1 {
		t.Errorf("%d failures are counted, want 1", q.NumRequeues(site))
	}
	if q.Forget(site); q.NumRequeues(site) != 0 {
		t.Error("failures are counted after a success")
	}
}
