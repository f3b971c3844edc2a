package benchmark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
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
	measured  *Measured
}

func (c *counting) life(ctx context.Context, b *bench) error {
	if err := c.Namespace(ctx, c.namespace); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 30*time.Second)
	sources, err := c.Count(limited)
	cancel()
	if err != nil {
		return err
	}
	if err := c.operator.Start(ctx); err != nil {
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
	if err := c.phase(ctx, "restart", nil, func() error { return c.operator.Start(ctx) }); err != nil {
		return err
	}
	return c.removeAll(ctx)
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
	mark := c.Ledger.Mark()
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
	count := count(c.Ledger.Entries(ledger.Match{Users: []string{c.operator.User.Name}, After: mark,
		Except: ledger.Housekeeping}))
	count.Phase, count.Objects = name, counted
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
	for _, e := range entries {
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
