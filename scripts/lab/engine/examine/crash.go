package examine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/ledger"
	"example.com/operator-workshop/scripts/lab/engine/proxy"
)

// most is the largest number of sequences for which all combinations are tried.
const most = 64

// sequences are the sets of writes after which the operator is killed: every combination while there are at most
// 64, else every single write and every pair. The short ones come first.
func sequences(n int) (all [][]int) {
	if n <= 6 {
		for set := 1; set < 1<<n; set++ {
			var s []int
			for i := range n {
				if set>>i&1 == 1 {
					s = append(s, i)
				}
			}
			all = append(all, s)
		}
		slices.SortStableFunc(all, func(a, b []int) int { return len(a) - len(b) })
		return all
	}
	for i := range n {
		all = append(all, []int{i})
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			all = append(all, []int{i, j})
		}
	}
	return all
}

// crashes kills the operator after its writes, in one sequence after the other.
func crashes(r *run) error {
	keys := r.commonKeys()
	if len(keys) == 0 {
		r.add("killed after each write, the end is the same", skipped("the operator writes nothing"))
		return nil
	}
	all := sequences(len(keys))
	if len(all) >= most {
		r.options.Progress("  %d writes: each single one and each pair", len(keys))
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
		tried++
		if ok {
			fired++
		}
		if err != nil {
			finding = failed("%v", err)
			var different differenceError
			if errors.As(err, &different) {
				finding = failed("the end is not that of an undisturbed run").with(different...)
			}
		}
		if finding.Verdict == Failed {
			r.add("killed after "+names(plan), finding)
		}
		if tried%10 == 0 {
			r.options.Progress("  %d of %d sequences", tried, len(all))
		}
	}
	summary := fmt.Sprintf("%d of %d sequences over %d writes were tried; in %d the operator was killed as often as "+
		"planned (in the others it needed fewer writes)", tried, len(all), len(keys), fired)
	if bad := r.report.count("crash", Failed); bad > 0 {
		r.add("killed after its writes, in sequences", failed("%s; %d ended differently", summary, bad))
	} else if tried == 0 {
		r.add("killed after its writes, in sequences", skipped("the time was over: RUN=crash tries the %d sequences alone",
			len(all)))
	} else if fired == 0 {
		r.add("killed after its writes, in sequences", skipped("%s", summary))
	} else {
		r.add("killed after its writes, in sequences", passed("%s; each ended as undisturbed", summary))
	}
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
	var faults []*proxy.Fault
	for _, k := range plan {
		faults = append(faults, t.fixture.Proxy.Add(proxy.Rule{Name: "kill after " + k.String(), Moment: proxy.After,
			Skip: k.n - 1, Times: 1,
			Match: ledger.Match{Users: []string{t.operator.user.Name}, Namespace: t.scope(), Verbs: []string{k.verb},
				Resources: []string{k.what}, Name: k.name, Where: ledger.Entry.Committed},
			Do: proxy.Call(func(*proxy.Exchange) proxy.Action {
				t.operator.Process().Kill()
				return proxy.Drop()
			})}))
	}
	defer func() {
		for _, fault := range faults {
			fault.Release()
		}
	}()
	stop := t.supervise()
	defer stop()
	if err := t.create(); err != nil {
		return f, false, err
	}
	if err := t.eventually(30*time.Second, t.asUndisturbed); err != nil {
		return f, false, err
	}
	if err := t.quiet(400 * time.Millisecond); err != nil {
		return f, false, err
	}
	if err := t.asUndisturbed(); err != nil {
		return f, false, err
	}
	fired = !slices.ContainsFunc(faults, func(fault *proxy.Fault) bool { return fault.Fired() == 0 })
	if twice := createdTwice(t.writes(0)); twice != "" {
		return failed("%s was created twice", twice).with(lines(t.writes(0))...), fired, nil
	}
	return passed("ended as undisturbed"), fired, stop()
}

// createdTwice is an object that some writes created more than once. Children of one name may be in several
// namespaces.
func createdTwice(writes []ledger.Entry) string {
	creations := map[string]int{}
	for _, e := range writes {
		what := e.FullResource() + " " + strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")
		if slices.Contains(e.Served, 201) {
			if creations[what]++; creations[what] > 1 {
				return what
			}
		}
	}
	return ""
}

// supervise starts the operator again when the lab killed it. When the operator ends by itself, it returns an error.
func (t *trial) supervise() (stop func() error) {
	return t.operator.Supervise(t.ctx, func(p *fixture.Process) error {
		if exit := p.Exit(); exit.Signal != syscall.SIGKILL {
			return fmt.Errorf("the operator %v by itself%s", exit, words(p))
		}
		return nil
	}, func() error { _, err := t.operator.launch(); return err })
}
