package benchmark

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
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

// counts takes each operator through the life of some MyWebs, behind the proxy, in a separate fixture with real
// controllers, and counts its requests.
func (b *bench) counts(ctx context.Context) error {
	for n, i := range b.Implementations {
		err := b.countsOf(ctx, i.WithoutWebhooks(), &b.result.Implementations[n])
		if err := b.forgive(ctx, Counts, i.Name, err); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) countsOf(ctx context.Context, i impl.Implementation, m *Measured) error {
	w, err := b.fixture(ctx, i)
	if err != nil {
		return err
	}
	defer b.end(w)
	c := &counting{Fixture: w, bench: b, namespace: "count-" + i.Name, measured: m}
	if c.operator, err = suite.NewOperator(ctx, w, i, c.namespace); err != nil {
		return err
	}
	defer c.operator.Kill()
	return c.life(ctx)
}

// counting is the count of one operator.
type counting struct {
	*fixture.Fixture
	bench     *bench
	operator  *suite.Operator
	namespace string
	measured  *Measured
	noStatus  bool // its status does not show when a MyWeb is served
}

func (c *counting) life(ctx context.Context) error {
	if err := c.Namespace(ctx, c.namespace); err != nil {
		return err
	}
	if err := c.operator.Start(ctx); err != nil {
		return err
	}
	if err := c.untilAtRest(ctx); err != nil {
		return err
	}
	for _, p := range []struct {
		name string
		goal goal
		do   func() error
	}{
		{"creation", served(1), func() error {
			return create(ctx, c.Fixture, c.namespace, 0, counted)
		}},
		{"update", served(2), func() error { return turnPages(ctx, c.Fixture, c.namespace, counted) }},
		{"steady state", nil, func() error { return fixture.Pause(ctx, restful) }},
		{"restart", nil, func() error {
			c.operator.Kill()
			return c.operator.Start(ctx)
		}},
	} {
		if err := c.phase(ctx, p.name, p.goal, p.do); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// phase calls do, waits for the goal, and records the operator's requests meanwhile.
func (c *counting) phase(ctx context.Context, name string, g goal, do func() error) error {
	mark := c.Ledger.Mark()
	if err := do(); err != nil {
		return err
	}
	if g != nil && !c.noStatus {
		err := c.await(ctx, g, time.Minute)
		// The lab can see no more of a program without status than the children.
		if err != nil && ctx.Err() == nil && c.await(ctx, complete, 5*time.Second) == nil {
			c.noStatus, err = true, nil
			c.bench.note("%s: it does not report in its status when a MyWeb is served, so the lab counts until it sends no "+
				"more requests.", c.operator.Impl.Name)
		}
		if err != nil {
			return err
		}
	}
	if name != "steady state" {
		if err := c.untilAtRest(ctx); err != nil {
			return err
		}
	}
	count := count(c.Ledger.Entries(ledger.Match{Users: []string{c.operator.User.Name}, After: mark,
		Except: ledger.Housekeeping}))
	count.Phase, count.Objects = name, counted
	c.measured.Counts = append(c.measured.Counts, count)
	return nil
}

// await returns when all MyWebs have reached a goal.
func (c *counting) await(ctx context.Context, g goal, within time.Duration) error {
	return await(ctx, c.Fixture, c.namespace, counted, g, within, c.operator.Process())
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
