package benchmark

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// memory measures each operator in a separate fixture with a growing number of MyWebs.
func (b *bench) memory(ctx context.Context) error {
	b.note("Memory is measured on an API server alone, which the operator uses directly: no controller runs, so no " +
		"Deployment has pods. Each operator has made the children of its MyWebs before, and is started again over them. The " +
		"resident set is that of a process with the defaults of its language, once it is in steady state.")
	for n, i := range b.Implementations {
		err := b.memoryOf(ctx, i.WithoutWebhooks(), &b.result.Implementations[n])
		if err := b.forgive(ctx, Resident, i.Name, err); err != nil {
			return err
		}
	}
	return nil
}

// A loaded operator has an API server to itself, with many MyWebs in one namespace.
type loaded struct {
	*fixture.Fixture
	operator  *suite.Operator
	namespace string
}

func (b *bench) memoryOf(ctx context.Context, i impl.Implementation, m *Measured) error {
	// The default range has 2768 node ports.
	w, err := b.fixture(ctx, i, "--service-node-port-range=20000-32767")
	if err != nil {
		return err
	}
	defer b.end(w)
	l := &loaded{Fixture: w, namespace: "memory-" + i.Name}
	if l.operator, err = suite.NewOperator(ctx, w, i, l.namespace); err != nil {
		return err
	}
	l.operator.User.Kubeconfig = l.operator.User.Direct
	for _, component := range []string{fixture.ControllerManager, fixture.Scheduler, fixture.Kubelets} {
		if err := w.Signal(component, syscall.SIGKILL); err != nil {
			return err
		}
	}
	if err := w.Namespace(ctx, l.namespace); err != nil {
		return err
	}
	have := 0
	for _, n := range b.Memory {
		begin := time.Now()
		if err := l.grow(ctx, have, n); err != nil {
			return fmt.Errorf("%d MyWebs: %w", n, err)
		}
		have = n
		grown := time.Since(begin)
		measured, err := l.weigh(ctx)
		if err != nil {
			return fmt.Errorf("%d MyWebs: %w", n, err)
		}
		m.Memory = append(m.Memory, Memory{MyWebs: n, RSS: measured})
		b.Report("memory of %s with %d MyWebs: made in %.0f s, measured in %.0f s", i.Name, n, grown.Seconds(),
			(time.Since(begin) - grown).Seconds())
	}
	return nil
}

// grow lets the operator make the children of more MyWebs, at full speed.
func (l *loaded) grow(ctx context.Context, from, to int) error {
	if from == to {
		return nil
	}
	p, err := l.operator.Launch()
	if err != nil {
		return err
	}
	defer p.Kill()
	if err := create(ctx, l.Fixture, l.namespace, from, to); err != nil {
		return err
	}
	within := 10*time.Minute + time.Duration(to)*time.Second/2
	if err := await(ctx, l.Fixture, l.namespace, to, complete, within, p); err != nil {
		return err
	}
	return settled(ctx, p) // its events are still under way
}

// weigh starts the operator over the existing objects, and returns its resident set when its caches have synced and it
// is in steady state.
func (l *loaded) weigh(ctx context.Context) (int64, error) {
	log, err := os.Stat(l.AuditLog())
	if err != nil {
		return 0, err
	}
	p, err := l.operator.Launch()
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	ended, stop := p.Context(ctx)
	defer stop()
	err = fixture.Eventually(ended, 30*time.Second, func() error { return l.asked(log.Size()) })
	if err != nil {
		return 0, fmt.Errorf("%w:\n%s", err, lastWords(p))
	}
	if err := settled(ctx, p); err != nil {
		return 0, err
	}
	return fixture.RSS(p.PID())
}

// asked returns nil when the operator has requested the MyWebs since a place in the audit log.
func (l *loaded) asked(since int64) error {
	events, _, err := l.Audit(since)
	for _, e := range events {
		if e.User.Username == l.operator.User.Name && e.Request().Resource == suite.MyWebs.Resource {
			return nil
		}
	}
	return errors.Join(err, errors.New("it never asked for MyWebs"))
}

const (
	// look is the interval between readings of an operator's processor time. idle is the most processor time that
	// counts as none, and calm is how many readings in a row must find none.
	look = 250 * time.Millisecond
	idle = 10 * time.Millisecond
	calm = 6
)

// settled returns when a process has used almost no processor time for a while.
func settled(ctx context.Context, p *fixture.Process) error {
	until := time.Now().Add(5 * time.Minute) // a loop in a shell handles the MyWebs one after the other
	last, quiet := time.Duration(-time.Hour), 0
	for quiet < calm {
		used, err := fixture.CPU(p.PID())
		if err != nil || !p.Running() {
			return errors.Join(err, fmt.Errorf("the operator ended:\n%s", lastWords(p)))
		}
		if quiet++; used-last > idle {
			quiet = 0
		}
		if last = used; time.Now().After(until) {
			return errors.New("the operator still uses processor time after 5 minutes")
		}
		if err := fixture.Pause(ctx, look); err != nil {
			return err
		}
	}
	return nil
}
