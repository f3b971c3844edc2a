package benchmark

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/operator-workshop/scripts/internal/outcome"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

func TestQuantile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	for q, want := range map[float64]int{0: 1, 0.005: 1, 0.5: 50, 0.99: 99, 0.995: 100, 1: 100} {
		if got := quantile(hundred, q); got != want {
			t.Errorf("quantile %v of 1 … 100 is %d, not %d", q, got, want)
		}
	}
	if got := quantile([]int(nil), 0.5); got != 0 {
		t.Errorf("quantile of nothing is %d", got)
	}
}

func TestMedianOf(t *testing.T) {
	tests := map[string]struct {
		values []float64
		want   Interval
	}{
		"nothing":              {nil, Interval{}},
		"one value":            {[]float64{2}, Interval{Value: 2}},
		"five values":          {[]float64{5, 1, 4, 2, 3}, Interval{Value: 3}},
		"six values":           {[]float64{6, 1, 5, 2, 4, 3}, Interval{3.5, 1, 6}},
		"the same value again": {slices.Repeat([]float64{3}, 6), Interval{3, 3, 3}},
		"one that is far off":  {[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 9}, Interval{1, 1, 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := medianOf(tt.values); got != tt.want {
				t.Errorf("medianOf(%v) = %+v, want %+v", tt.values, got, tt.want)
			}
		})
	}
	values := []float64{0.8, 1.3, 0.9, 1.1, 1.0, 1.2, 0.7, 1.05, 0.95, 1.15}
	got := medianOf(values)
	if got != medianOf(slices.Clone(values)) {
		t.Error("the interval is another one for the same values")
	}
	if math.Abs(got.Value-1.025) > 1e-9 || got.Low >= got.Value || got.High <= got.Value || got.Low < 0.7 ||
		got.High > 1.3 {
		t.Errorf("the interval of %v is %+v", values, got)
	}
}

func TestCompare(t *testing.T) {
	s := func(values ...int) (d []time.Duration) {
		for _, v := range values {
			d = append(d, time.Duration(v)*time.Second)
		}
		return d
	}
	quiet := compare("m", "a", "b", s(10, 10, 10), s(20, 20, 20), s(10, 10, 10))
	if quiet.TooNoisy || quiet.Ratio.Value != 0.5 || quiet.Pairs != 3 {
		t.Errorf("half the time on a quiet machine: %+v", quiet)
	}
	if noisy := compare("m", "a", "b", s(10, 10, 10), s(20, 20, 20), s(11, 11, 11)); !noisy.TooNoisy {
		t.Errorf("the control is 10 %% off: %+v", noisy)
	}
}

func TestTurnsAreABBA(t *testing.T) {
	var order []string
	for pair := range 4 {
		order = append(order, turns(pair, true)...)
	}
	compared := slices.DeleteFunc(slices.Clone(order), func(s string) bool { return s == "control" })
	if got := strings.Join(compared, ""); got != "abbaabba" {
		t.Errorf("the runs that are compared are in the order %s", got)
	}
	for i, turn := range order {
		if turn == "control" && order[max(0, i-1)] != "a" && order[min(len(order)-1, i+1)] != "a" {
			t.Errorf("the control at %d has no run of a beside it: %v", i, order)
		}
	}
}

func TestBacklog(t *testing.T) {
	rising := make([]time.Duration, 100)
	for i := range rising {
		rising[i] = time.Duration(i) * 100 * time.Millisecond
	}
	if first, last, grew := backlog(rising); !grew || first >= last {
		t.Errorf("latencies that rise to 10 s: from %v to %v, %v", first, last, grew)
	}
	if _, _, grew := backlog(slices.Repeat([]time.Duration{2 * time.Second}, 100)); grew {
		t.Error("latencies that are long but stay so are no backlog")
	}
	if _, _, grew := backlog(rising[:3]); grew {
		t.Error("three samples tell nothing")
	}
}

func TestCount(t *testing.T) {
	entry := func(verb, group, resource, subresource string, code int, effect ledger.Effect) ledger.Entry {
		return ledger.Entry{Request: wire.Request{Verb: verb, Group: group, Resource: resource, Subresource: subresource},
			Code: code, Served: []int{code}, Effect: effect}
	}
	got := count([]ledger.Entry{
		entry(wire.Apply, "", "configmaps", "", 201, ledger.Moved),
		entry(wire.Apply, "", "configmaps", "", 200, ledger.Same),
		entry(wire.Update, "g", "webs", "status", 409, ledger.None),
	})
	want := Count{Requests: map[string]int{"apply configmaps": 2, "update webs.g/status": 1}, NoOps: 1, Conflicts: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
}

// TestFollow checks that follow continues after a watch has ended.
func TestFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opened, seen := make(chan *watch.FakeWatcher, 1), make(chan string)
	var group sync.WaitGroup
	err := follow(ctx, &group, func() (watch.Interface, error) {
		w := watch.NewFakeWithChanSize(1, false)
		context.AfterFunc(ctx, w.Stop)
		opened <- w
		return w, nil
	}, func(e watch.Event) { seen <- e.Object.(*corev1.Pod).Name })
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		w := <-opened
		w.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if got := <-seen; got != name {
			t.Errorf("the watch reported %s, not of %s", got, name)
		}
		w.Stop()
	}
	<-opened
	cancel()
	group.Wait()
}

func TestBoard(t *testing.T) {
	web := func(generation, observed int64, completed bool) watch.Event {
		return watch.Event{Type: watch.Modified, Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "a", "generation": generation},
			"status":   map[string]any{"observedGeneration": observed, "completed": completed}}}}
	}
	child := func(kind watch.EventType) watch.Event {
		return watch.Event{Type: kind, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	}
	b := &board{goal: converged, standings: map[string]*standing{}, reached: map[string]time.Time{},
		changed: make(chan struct{})}
	b.web(web(1, 1, false))
	b.child("configmaps", child(watch.Added))
	b.child("services", child(watch.Added))
	b.child("services", child(watch.Deleted))
	b.child("deployments", child(watch.Added))
	if err := b.await(t.Context(), 1, time.Millisecond, nil); err == nil {
		t.Error("it has no Service, and has converged")
	}
	b.child("services", child(watch.Added))
	if err := b.await(t.Context(), 1, time.Minute, nil); err != nil {
		t.Error(err)
	}
	if took := b.took(time.Now().Add(-time.Second)); took <= 0 || took > time.Second {
		t.Errorf("it took %v", took)
	}

	b = &board{goal: served(2), standings: map[string]*standing{}, reached: map[string]time.Time{},
		changed: make(chan struct{})}
	for _, e := range []watch.Event{web(1, 1, true), web(2, 1, true), web(2, 2, false)} {
		if b.web(e); len(b.reached) > 0 {
			t.Errorf("generation 2 is not served: %v", e.Object)
		}
	}
	if b.web(web(2, 2, true)); len(b.reached) != 1 {
		t.Error("generation 2 is served")
	}
}

func TestParallel(t *testing.T) {
	done := make([]bool, 20)
	if err := parallel(3, len(done), func(i int) error {
		done[i] = true
		return nil
	}); err != nil || slices.Contains(done, false) {
		t.Errorf("%v, done %v", err, done)
	}
	if err := parallel(3, 20, func(i int) error { return fmt.Errorf("%d", i) }); err == nil {
		t.Error("the errors are lost")
	}
	if err := parallel(3, 0, func(int) error { return fmt.Errorf("called") }); err != nil {
		t.Error("it was called for nothing")
	}
}

// TestPrintFits checks that Print fits a terminal with any result, and leaves out empty values.
func TestPrintFits(t *testing.T) {
	long := strings.Repeat("w", 20)
	measured := func(name string) Measured {
		count := Count{Phase: "creation", Objects: 10, Requests: map[string]int{
			"update mywebs.operator.k8s-summit.org/status": 123456, "apply deployments.apps": 12,
			"get /apis/operator.k8s-summit.org/v1/and/a/path/that/is/longer/than/any/that/an/operator/asks/for/in/earnest": 1}}
		return Measured{Name: name, Counts: []Count{count, {Phase: "rest", Objects: 10}},
			Convergence: &Convergence{Objects: 10000, Took: 123456 * time.Millisecond, Efficiency: Interval{0.123456, 0.1, 0.2},
				Operator: 123456 * time.Microsecond, APIServer: 123 * time.Second, Bare: 20 * time.Millisecond},
			Latency: &Latency{Rate: 25, P50: 12345 * time.Microsecond, P99: 123 * time.Second},
			Memory:  []Memory{{MyWebs: 10000, RSS: 123456 << 20}},
			Static:  Static{BinaryBytes: 1 << 30, Written: 123456, Files: 1234, Permissions: "1234"}}
	}
	r := &Result{Notes: []string{strings.Repeat("a note of many words ", 20) + "and an end"}}
	for n := range 3 {
		r.Implementations = append(r.Implementations, measured(fmt.Sprint(long[:19], n)))
	}
	r.Comparisons = []Comparison{
		{Metric: "converge 10000", A: long, B: long, Pairs: 10, Ratio: Interval{10, 9, 11}, Control: Interval{1, 0.99, 1.01}},
		{Metric: "converge 1", A: "a", B: "b", Pairs: 5, TooNoisy: true, Ratio: Interval{7, 7, 7},
			Control: Interval{1.2, 1.1, 1.3}}}
	var out strings.Builder
	r.Print(&out)
	for line := range strings.Lines(out.String()) {
		line = strings.TrimRight(line, "\n")
		if n := utf8.RuneCountInString(line); strings.HasSuffix(line, " ") || n > outcome.Columns {
			t.Errorf("%d columns, or spaces at the end: %q", n, line)
		}
	}
	for _, words := range []string{"update mywebs/status", "too noisy", "10.00 [9.00, 11.00]", "123456"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("there is no %q in\n%s", words, &out)
		}
	}
	if strings.Contains(out.String(), "7.00") {
		t.Error("a ratio that is too noisy is printed")
	}

	t.Log(out.String())
	out.Reset()
	(&Result{Implementations: []Measured{{Name: "a"}}}).Print(&out)
	if out.Len() > 0 {
		t.Errorf("nothing was measured, and yet:\n%s", &out)
	}
}

func TestOptions(t *testing.T) {
	_, err := Run(t.Context(), Options{})
	if err == nil {
		t.Error("there is nothing to measure, and that is not an error")
	}
	for name, o := range map[string]Options{
		"there are static": {Parts: []string{"speed"}},
		"0 pairs":          {Objects: 1, Parts: []string{Converging}},
		"0 a second":       {Samples: 1, Parts: []string{Arrivals}},
	} {
		o.Implementations = make([]impl.Implementation, 1)
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
