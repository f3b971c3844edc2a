package examine

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/sequence"
)

// crashes kills the operator after its writes, in one sequence after the other.
func crashes(r *run) error {
	keys := r.commonKeys()
	if len(keys) == 0 {
		r.add("killed after each write, the end is the same", skipped("the operator writes nothing"))
		return nil
	}
	all := sequence.All(len(keys))
	if len(all) < 1<<len(keys)-1 {
		r.progress("  %d writes: each single one and each pair", len(keys))
	}
	tried, fired := 0, 0
	for _, s := range all {
		if r.late() || r.target.Fast && len(s) > 1 {
			break
		}
		var plan []key
		for _, i := range s {
			plan = append(plan, keys[i])
		}
		ok := false
		finding, err := r.try(func(t *trial) (f Finding, err error) { f, ok, err = t.crash(plan); return f, err })
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		if err != nil {
			if err := r.labWorks(err); err != nil {
				return err
			}
			finding = failedBy(err)
		}
		if finding.Verdict == Skipped {
			continue
		}
		tried++
		if ok {
			fired++
		}
		if finding.Verdict == Failed {
			r.add("killed after "+names(plan), finding)
			r.operator.Kill()
		}
		if tried%10 == 0 {
			r.progress("  %d of %d sequences", tried, len(all))
		}
	}
	r.leftOut("crash sequences", len(all)-tried, len(all))
	if tried == 0 {
		return nil
	}
	summary := fmt.Sprintf("%d of %d sequences over %d writes were tried; in %d the operator was killed as often as "+
		"planned (in the others it needed fewer writes)", tried, len(all), len(keys), fired)
	f := passed("%s; each ended as undisturbed", summary)
	if bad := r.report.count("crash", Failed); bad > 0 {
		f = failed("%s; %d ended differently", summary, bad)
	} else if fired == 0 {
		f = skipped("%s", summary)
	}
	f.Of = tried
	r.add("killed after its writes, in sequences", f)
	return nil
}

func names(plan []key) string {
	var all []string
	for _, k := range plan {
		all = append(all, k.String())
	}
	return strings.Join(all, ", ")
}

// commonKeys are the writes that every undisturbed run made, in the order of the first run.
func (r *run) commonKeys() []key {
	return slices.DeleteFunc(slices.Clone(r.keys[0]), func(k key) bool {
		return slices.ContainsFunc(r.keys, func(keys []key) bool { return !slices.Contains(keys, k) })
	})
}

// crash creates the sample and kills the operator after each planned write, before the operator receives the
// response.
func (t *trial) crash(plan []key) (f Finding, fired bool, err error) {
	for _, k := range plan {
		t.Everywhere(k.Rule(ledger.Match{Namespace: t.scope()}, t.operator.Kill))
	}
	stop := t.supervise()
	defer func() { _ = stop() }() // the last line returns the error of a run without another
	mark := t.Mark()              // without a namespace, earlier writes are for the samples of earlier trials
	if err := t.create(); err != nil {
		return f, false, err
	}
	if err := t.Eventually(30*time.Second, t.asUndisturbed); err != nil {
		return f, false, err
	}
	if err := t.quiet(400 * time.Millisecond); err != nil {
		return f, false, err
	}
	if err := t.asUndisturbed(); err != nil {
		return f, false, err
	}
	fired = !slices.ContainsFunc(t.Faults(), func(fault *proxy.Fault) bool { return fault.Fired() == 0 })
	if twice := sequence.CreatedTwice(t.Writes(mark)); twice != "" {
		return failed("%s was created twice", twice).with(lines(t.Writes(mark))...), fired, nil
	}
	return passed("ended as undisturbed"), fired, stop()
}

// supervise starts the operator again when the lab killed it. When the operator ends by itself, it returns an error.
func (t *trial) supervise() (stop func() error) {
	return t.operator.Supervise(t.Ctx, func(p *fixture.Process) error {
		if exit := p.Exit(); exit.Signal != syscall.SIGKILL {
			return fmt.Errorf("the operator %v by itself%s", exit, words(p))
		}
		return nil
	}, func() error { _, err := t.operator.launch(); return err })
}
