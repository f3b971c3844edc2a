package benchmark

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/wire"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

const (
	// counted is the number of MyWebs in a phase.
	counted = 10
	// restful is how long the lab watches an operator in steady state.
	restful = 5 * time.Second
	// silence is how long an operator must send no requests until a phase counts as over.
	silence = time.Second
)

// counts takes each operator through the life of some MyWebs, behind the proxy, in a fixture with real controllers,
// and counts its requests.
func (b *bench) counts(ctx context.Context) error {
	for _, i := range b.own {
		if err := b.countsOf(ctx, []impl.Implementation{i}); err != nil {
			return err
		}
	}
	if len(b.shared) == 0 {
		return nil
	}
	return b.countsOf(ctx, b.shared)
}

// countsOf is counts for implementations that have the same CRD.
func (b *bench) countsOf(ctx context.Context, impls []impl.Implementation) error {
	w, err := b.fixture(ctx, impls)
	if err != nil {
		return err
	}
	defer b.end(w)
	for _, i := range impls {
		c := &counting{Fixture: w, namespace: "count-" + i.Name, measured: b.measured(i.Name)}
		c.operator, err = suite.NewOperator(ctx, w, i.WithoutWebhooks(), c.namespace)
		if err == nil {
			err = c.life(ctx, b)
			c.operator.Kill()
		}
		if err == nil {
			continue
		}
		if err := b.forgive(ctx, Counts, i.Name, err); err != nil {
			return err
		}
		if err := c.removeAll(ctx); err != nil { // leftovers would disturb the next operator
			return err
		}
	}
	return nil
}

// counting is the count of one operator.
type counting struct {
	*fixture.Fixture
	operator  *suite.Operator
	namespace string
	metrics   string // where the operator serves them; empty when it does not
	measured  *Measured
}

func (c *counting) life(ctx context.Context, b *bench) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}}
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return err
	}
	args, err := c.serveMetrics()
	if err != nil {
		return err
	}
	if c.metrics == "" {
		b.note("%s: it has no metric that counts how often it handled a MyWeb.", c.operator.Impl.Name)
	}
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	sources, err := c.Count(limited)
	cancel()
	if err != nil {
		return err
	}
	if err := c.operator.Start(ctx, args...); err != nil {
		return err
	}
	if err := c.untilAtRest(ctx); err != nil {
		return err
	}
	err = c.phase(ctx, "creation", served(1), func() error {
		_, err := create(ctx, c.Fixture, c.namespace, 0, counted)
		return err
	})
	if err != nil {
		return err
	}
	if c.measured.NoStatus {
		b.note("%s: it does not report in its status when a MyWeb is served, so the lab counts until it sends no more "+
			"requests.", c.operator.Impl.Name)
	}
	err = c.phase(ctx, "update", served(2), func() error { return turnPages(ctx, c.Fixture, c.namespace, counted) })
	if err != nil {
		return err
	}
	err = c.phase(ctx, "steady state", nil, func() error { return fixture.Pause(ctx, restful) })
	if err != nil {
		return err
	}
	c.operator.Kill()
	c.compare(ctx, b, sources)
	if err := c.phase(ctx, "restart", nil, func() error { return c.operator.Start(ctx, args...) }); err != nil {
		return err
	}
	if err := c.phase(ctx, "deletion", nil, func() error { return c.removeAll(ctx) }); err != nil {
		return err
	}
	if last := c.measured.Counts[len(c.measured.Counts)-1]; len(last.Requests) > 0 {
		b.note("%s: it sent requests while its MyWebs were deleted. This happens when the watch of a child reports "+
			"its removal before the watch of the MyWebs reports theirs, and differs from run to run.",
			c.operator.Impl.Name)
	}
	return nil
}

// compare notes whether the sources of the counts agree.
func (c *counting) compare(ctx context.Context, b *bench, sources *fixture.Count) {
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := sources.Agree(limited, c.operator.User.Name); err != nil {
		b.note("%s: of creation, update and steady state the proxy's ledger, the audit log and apiserver_request_total "+
			"differ: %s", c.operator.Impl.Name, brief(err))
	} else {
		b.note("%s: of creation, update and steady state the proxy's ledger, the audit log and apiserver_request_total "+
			"agree in every request.", c.operator.Impl.Name)
	}
}

// phase calls do, waits for the goal, and records the operator's requests meanwhile.
func (c *counting) phase(ctx context.Context, name string, g goal, do func() error) error {
	mark, syncs := c.Ledger.Mark(), 0
	if name != "restart" { // a restarted operator begins at 0
		syncs = c.syncs(ctx)
	}
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if g != nil && !c.measured.NoStatus {
		board, err := newBoard(ctx, c.Fixture, c.namespace, g)
		if err != nil {
			return err
		}
		err = board.await(ctx, counted, time.Minute, c.operator.Process())
		board.close()
		if err != nil && ctx.Err() == nil && c.childrenAreThere(ctx) == nil {
			c.measured.NoStatus, err = true, nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if name != "steady state" {
		if err := c.untilAtRest(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	count := count(c.Ledger.Entries(ledger.Match{Users: []string{c.operator.User.Name}, After: mark}))
	count.Phase, count.Objects, count.Syncs = name, counted, -1
	count.Watches = c.Ledger.Count(ledger.Match{Users: []string{c.operator.User.Name}, Verbs: []string{wire.Watch},
		Where: func(e ledger.Entry) bool { return e.Open }})
	if after := c.syncs(ctx); after >= 0 && syncs >= 0 {
		count.Syncs = after - syncs
	}
	c.measured.Counts = append(c.measured.Counts, count)
	return nil
}

// childrenAreThere returns an error unless each MyWeb has its children. The lab can see no more of a program without
// status.
func (c *counting) childrenAreThere(ctx context.Context) error {
	board, err := newBoard(ctx, c.Fixture, c.namespace, complete)
	if err != nil {
		return err
	}
	defer board.close()
	return board.await(ctx, counted, 5*time.Second, nil)
}

// count sums up requests.
func count(entries []ledger.Entry) Count {
	c := Count{Requests: map[string]int{}}
	events, leases := ledger.Match{Resources: []string{"events", "events.events.k8s.io"}},
		ledger.Match{Resources: ledger.Housekeeping}
	for _, e := range entries {
		switch {
		case events.Matches(e):
			if e.IsWrite() && e.Accepted() {
				c.Events++
			}
			continue
		case leases.Matches(e):
			continue
		}
		c.Requests[e.Verb+" "+e.FullResource()]++
		if e.IsWrite() && e.Effect == ledger.Same {
			c.NoOps++
		}
		if slices.Contains(e.Served, http.StatusConflict) {
			c.Conflicts++
		}
	}
	return c
}

// untilAtRest waits until the operator has sent no requests for a while.
func (c *counting) untilAtRest(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute is over"))
	defer cancel()
	return c.Ledger.AwaitQuiet(ctx, silence, c.operator.Requests())
}

// removeAll deletes the MyWebs and waits until the garbage collector has removed their children.
func (c *counting) removeAll(ctx context.Context) error {
	meta, err := metadata.NewForConfig(c.Config)
	if err != nil {
		return err
	}
	err = parallel(hands, counted, func(i int) error {
		err := c.Dynamic.Resource(myweb.MyWebs).Namespace(c.namespace).Delete(ctx, webName(i), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) { // it never existed
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("children are left after a minute"))
	defer cancel()
	for _, r := range append([]schema.GroupVersionResource{myweb.MyWebs}, children...) {
		for left := 1; left > 0; {
			if err := fixture.Pause(ctx, 100*time.Millisecond); err != nil {
				return err
			}
			list, err := meta.Resource(r).Namespace(c.namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			left = len(slices.DeleteFunc(list.Items, func(o metav1.PartialObjectMetadata) bool {
				return !strings.HasPrefix(o.Name, "web-")
			}))
		}
	}
	return nil
}

// serveMetrics returns the flags that make the operator serve metrics on a free port.
func (c *counting) serveMetrics() ([]string, error) {
	i := c.operator.Impl
	if i.SyncMetric == "" || !i.Has("metrics-bind-address") {
		return nil, nil
	}
	port, err := fixture.FreePort()
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c.metrics = "http://" + address + "/metrics"
	return i.With("--metrics-bind-address="+address, "--metrics-secure=false"), nil
}

// syncs is how often the operator handled a MyWeb since its start; -1 when it does not report this.
func (c *counting) syncs(ctx context.Context) int {
	if c.metrics == "" {
		return -1
	}
	text, err := get(ctx, c.metrics)
	if err != nil {
		return -1
	}
	return sum(text, c.operator.Impl.SyncMetric)
}

func get(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", url, answer.Status)
	}
	return string(text), err
}

// sum adds up the samples of a counter in a page of metrics.
func sum(page, metric string) int {
	total := 0.0
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		rest, ok := strings.CutPrefix(lines.Text(), metric)
		if !ok || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		fields := strings.Fields(rest[strings.LastIndexByte(rest, '}')+1:])
		if len(fields) > 0 {
			value, _ := strconv.ParseFloat(fields[0], 64)
			total += value
		}
	}
	return int(total)
}
