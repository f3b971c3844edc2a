package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// memory measures each operator in a separate fixture with a growing number of MyWebs.
func (b *bench) memory(ctx context.Context) error {
	b.note("Memory: each operator has served its MyWebs before and is started again over them. The resident set is that " +
		"of a process with the defaults of its language, once it is in steady state.")
	for n, i := range b.Implementations {
		err := b.memoryOf(ctx, i, &b.result.Implementations[n])
		if err := b.forgive(ctx, Resident, i.Name, err); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) memoryOf(ctx context.Context, i impl.Implementation, m *Measured) error {
	s, err := b.stage(ctx, []impl.Implementation{i})
	if err != nil {
		return err
	}
	defer b.end(s.Fixture)
	s.noStatus = m.NoStatus
	ns, err := s.newNamespace(ctx)
	if err != nil {
		return err
	}
	have := 0
	for _, n := range b.Memory {
		begin := time.Now()
		if err := s.grow(ctx, i.Name, ns, have, n); err != nil {
			return fmt.Errorf("%d MyWebs: %w", n, err)
		}
		have = n
		grown := time.Since(begin)
		measured, err := s.weigh(ctx, i.Name)
		if err != nil {
			return fmt.Errorf("%d MyWebs: %w", n, err)
		}
		m.Memory = append(m.Memory, Memory{MyWebs: n, RSS: measured})
		b.Report("memory of %s with %d MyWebs: made in %.0f s, measured in %.0f s", i.Name, n, grown.Seconds(),
			(time.Since(begin) - grown).Seconds())
	}
	return nil
}

// grow lets an operator serve more MyWebs, at full speed.
func (s *stage) grow(ctx context.Context, name, namespace string, from, to int) error {
	if from == to {
		return nil
	}
	board, p, end, err := s.watched(ctx, name, namespace)
	if err != nil {
		return err
	}
	defer end()
	if _, err := create(ctx, s.Fixture, namespace, from, to); err != nil {
		return err
	}
	if err := board.await(ctx, to, 5*within(to), p); err != nil {
		return err
	}
	return s.settled(ctx, p) // its events are still under way
}

// weigh starts an operator over the existing objects, and returns its resident set when its caches have synced and it
// is in steady state.
func (s *stage) weigh(ctx context.Context, name string) (int64, error) {
	since, err := s.auditEnd()
	if err != nil {
		return 0, err
	}
	p, err := s.launch(name)
	if err != nil {
		return 0, err
	}
	defer p.Kill()
	for until := time.Now().Add(30 * time.Second); ; {
		if _, err = s.asked(since, name); err == nil {
			break
		}
		if !p.Running() || time.Now().After(until) {
			return 0, fmt.Errorf("%w:\n%s", err, lastWords(p))
		}
		if err := fixture.Pause(ctx, 50*time.Millisecond); err != nil {
			return 0, err
		}
	}
	if err := s.settled(ctx, p); err != nil {
		return 0, err
	}
	return fixture.RSS(p.PID())
}

const (
	// look is the interval between readings of an operator's processor time. idle is the most processor time that
	// counts as none, and calm is how many readings in a row must find none.
	look = 250 * time.Millisecond
	idle = 10 * time.Millisecond
	calm = 6
)

// settled returns when a process has used almost no processor time for a while.
func (s *stage) settled(ctx context.Context, p *fixture.Process) error {
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
