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

	"example.com/operator-workshop/scripts/lab/engine/fixture"
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
		"nothing":                  {nil, Interval{}},
		"one value has no width":   {[]float64{2}, Interval{2, 2, 2}},
		"the same value again":     {[]float64{3, 3, 3, 3}, Interval{3, 3, 3}},
		"one that is far off":      {[]float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 9}, Interval{1, 1, 1}},
		"an even number of values": {[]float64{1, 2}, Interval{1.5, 1, 2}},
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

func TestPredicted(t *testing.T) {
	tests := map[string]struct {
		requests int
		qps      float64
		want     time.Duration
	}{
		"the first one is free":  {1, 5, 0},
		"forty, five a second":   {40, 5, 7800 * time.Millisecond},
		"no limit":               {40, 0, 0},
		"nothing was asked for":  {0, 5, 0},
		"many, twenty a second":  {160, 20, 7950 * time.Millisecond},
		"less than one a second": {3, 0.5, 4 * time.Second},
	}
	for name, tt := range tests {
		if got := predicted(tt.requests, tt.qps); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestAgrees(t *testing.T) {
	for measured, want := range map[time.Duration]bool{
		10 * time.Second: true, 11 * time.Second: true, 9 * time.Second: true,
		11100 * time.Millisecond: false, 8900 * time.Millisecond: false, 0: false} {
		if got := (Limited{QPS: 5, Predicted: 10 * time.Second, Measured: measured}).Agrees(); got != want {
			t.Errorf("%v instead of 10s: %v", measured, got)
		}
	}
	if (Limited{Measured: time.Second}).Agrees() {
		t.Error("without a limit nothing is predicted")
	}
}

func TestSpan(t *testing.T) {
	var events []fixture.AuditEvent
	add := func(second int, verb, resource, subresource string) {
		e := fixture.AuditEvent{Verb: verb, RequestReceivedTimestamp: time.Unix(int64(second), 0)}
		e.ObjectRef = &struct{ APIGroup, APIVersion, Resource, Subresource, Namespace, Name string }{
			Resource: resource, Subresource: subresource}
		events = append(events, e)
	}
	add(1, "list", "mywebs", "") // before the first write
	add(2, "patch", "configmaps", "")
	add(3, "watch", "services", "") // no limit counts it
	add(4, "get", "services", "")
	add(6, "update", "mywebs", "status")
	add(5, "patch", "deployments", "") // the log is in the order of the answers
	add(9, "create", "events", "")     // after the last status
	requests, took := span(events)
	if requests != 4 || took != 4*time.Second {
		t.Errorf("%d requests in %v, want 4 in 4s", requests, took)
	}
}

func TestCodeLines(t *testing.T) {
	tests := map[string]struct {
		text string
		want int
	}{
		"empty":                       {"", 0},
		"comments and empty lines":    {"// Package p.\n\n/* and\nmore */\n", 0},
		"code with a comment behind":  {"package p // so\n", 1},
		"code behind a comment":       {"/* so */ package p\n", 1},
		"every line of a raw string":  {"package p\n\nvar s = `a\nb\n\nc`\n", 5},
		"a brace alone":               {"package p\n\nfunc f() {\n\t// nothing\n}\n", 3},
		"the last line has no end":    {"package p", 1},
		"a string that looks like it": {"package p\n\nvar s = \"// no\"\n", 2},
	}
	for name, tt := range tests {
		if got := codeLines([]byte(tt.text)); got != tt.want {
			t.Errorf("%s: %d lines, want %d", name, got, tt.want)
		}
	}
}

func TestIsGenerated(t *testing.T) {
	for text, want := range map[string]bool{
		"// Code generated by a-gen. DO NOT EDIT.\n\npackage p\n":         true,
		"//go:build x\n\n// Code generated by b. DO NOT EDIT.\npackage p": true,
		"// Code generated by a-gen, do edit.\n\npackage p\n":             false,
		"package p\n\n// Code generated by a-gen. DO NOT EDIT.\n":         false,
		"package p\n\nvar s = `\n// Code generated by x. DO NOT EDIT.\n`": false,
	} {
		if got := isGenerated([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestCollections(t *testing.T) {
	words := `{"level":"info","msg":"gc 1 @ is no such line"}
gc 1 @0.005s 2%: 0.015+0.65+0.003 ms clock, 0.030+0.27/0.39/0+0.007 ms cpu, 3->4->0 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P
gc 2 @0.010s 3%: 0.018+1.0+0.002 ms clock, 0.036+0.10/0.51/0+0.004 ms cpu, 4->4->17 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P (forced)
scav 10 KiB work (bg)
`
	if got := collections(words); !slices.Equal(got, []int64{0, 17 << 20}) {
		t.Errorf("collections: %v", got)
	}
	if got := liveHeap(words); got != 17<<20 {
		t.Errorf("the live heap is %d", got)
	}
	if got := liveHeap("no Go program"); got != 0 {
		t.Errorf("the live heap of no Go program is %d", got)
	}
}

func TestGoroutines(t *testing.T) {
	words := `SIGQUIT: quit
PC=0x47f3a1 m=0 sigcode=0

goroutine 0 gp=0x2f8c4a0 m=0 mp=0x2f8e5e0 [idle]:
runtime.futex(...)

goroutine 1 gp=0xc000002380 m=nil [chan receive]:
main.main()

goroutine 18 [select, 2 minutes]:
created by main.main in goroutine 1

goroutine 21 gp=0xc000103dc0 m=nil [IO wait, locked to thread]:
rax    0xca
`
	if got := goroutines(words); got != 3 {
		t.Errorf("%d goroutines, want 3", got)
	}
	if got := goroutines("Quit"); got != 0 {
		t.Errorf("%d goroutines of no Go program", got)
	}
}

func TestSum(t *testing.T) {
	page := `# TYPE syncs_total counter
syncs_total{result="success"} 12
syncs_total{result="error",text="a } b"} 3
syncs_total_other{result="x"} 100
one_total 1e+03
`
	for metric, want := range map[string]int{"syncs_total": 15, "one_total": 1000, "none_total": 0} {
		if got := sum(page, metric); got != want {
			t.Errorf("%s: %d, want %d", metric, got, want)
		}
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
		entry(wire.Update, "coordination.k8s.io", "leases", "", 200, ledger.Moved),
		entry(wire.Create, "events.k8s.io", "events", "", 201, ledger.Moved),
		entry(wire.Create, "events.k8s.io", "events", "", 403, ledger.None),
	})
	want := Count{Requests: map[string]int{"apply configmaps": 2, "update webs.g/status": 1}, NoOps: 1,
		Conflicts: 1, Events: 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("count (-want +got):\n%s", diff)
	}
}

// A watch that ends is no end of the watching.
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
	if points := b.curve(time.Now().Add(-time.Second)); len(points) != 1 || points[0].Done != 1 || points[0].At <= 0 {
		t.Errorf("the curve is %v", points)
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

// Print must fit a terminal whatever is in the result, and leave out what is not.
func TestPrintFits(t *testing.T) {
	long := strings.Repeat("w", 20)
	measured := func(name string) Measured {
		count := Count{Phase: "creation", Objects: 10, Syncs: -1, Requests: map[string]int{
			"update mywebs.operator.k8s-summit.org/status": 123456, "apply deployments.apps": 12,
			"get /apis/operator.k8s-summit.org/v1/and/a/path/that/is/longer/than/any/that/an/operator/asks/for/in/earnest": 1}}
		return Measured{Name: name, Counts: []Count{count, {Phase: "rest", Objects: 10, Watches: 4}},
			Curve:      []Point{{At: time.Second, Done: 1}, {At: 123456 * time.Millisecond, Done: 10000}},
			Latency:    &Latency{Rate: 25, P50: 12345 * time.Microsecond, P99: 123 * time.Second},
			Recovery:   []time.Duration{time.Second, 99 * time.Second},
			Efficiency: &Interval{0.123456, 0.1, 0.2},
			Memory: []Memory{{MyWebs: 10000, Heap: 123456 << 20, RSS: 123456 << 20, Goroutines: 12345,
				CPU: 1234 * time.Second, APIServer: 1234 * time.Second}},
			Limiter: []Limited{{QPS: 20, Requests: 12345, Predicted: 100 * time.Second, Measured: 120 * time.Second}},
			Static:  Static{BinaryBytes: 1 << 30, Modules: 1234, Written: 123456, Generated: -1}}
	}
	r := &Result{Notes: []string{strings.Repeat("a note of many words ", 20) + "and an end"}}
	for n := range 3 {
		r.Implementations = append(r.Implementations, measured(fmt.Sprint(long[:19], n)))
	}
	r.Comparisons = []Comparison{
		{Metric: "converge 10000", A: long, B: long, Pairs: 10, Ratio: Interval{10, 9, 11}, Control: Interval{1, 0.99, 1.01}},
		{Metric: "recovery", A: "a", B: "b", Pairs: 5, TooNoisy: true, Ratio: Interval{7, 7, 7},
			Control: Interval{1.2, 1.1, 1.3}}}
	var out strings.Builder
	r.Print(&out)
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimRight(line, "\n"); strings.HasSuffix(line, " ") || utf8.RuneCountInString(line) > width {
			t.Errorf("%d columns, or spaces at the end: %q", utf8.RuneCountInString(line), line)
		}
	}
	for _, words := range []string{"update mywebs/status", "too noisy", "10.00 [9.00, 11.00]", "WITHIN 10 %", "123456"} {
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
	o := Options{Implementations: make([]impl.Implementation, 1), Parts: []string{"speed"}}
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "converge") {
		t.Errorf("a part that does not exist: %v", err)
	}
}
