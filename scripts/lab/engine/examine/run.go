package examine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/engine/redact"
	"example.com/operator-workshop/scripts/lab/engine/state"
)

// Options say how an examination runs.
type Options struct {
	// Root is the checkout, whose bin/ holds the control plane; empty means the one around the working folder.
	Root string
	// Only are the IDs of the experiments to run; none means all.
	Only []string
	// Progress hears what happens, line by line.
	Progress func(format string, args ...any)
}

// A run is an examination while it goes on.
type run struct {
	ctx      context.Context
	target   *target
	options  Options
	fixture  *fixture.Fixture
	operator *operator
	secrets  *redact.Secrets
	mapper   meta.RESTMapper
	trials   atomic.Int32
	deadline time.Time // after it, what can be left out is left out

	// found out by undisturbed runs
	children []child
	fields   map[child][]path
	states   []state.State
	state    state.State
	varying  map[string]bool
	keys     [][]key

	report  *Report
	current experiment
}

// Run examines a subject. When ctx ends it returns what is known by then, with the error.
func Run(ctx context.Context, s Subject, o Options) (report *Report, err error) {
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if err := checkReady(s.Ready); err != nil {
		return nil, err
	}
	chosen, err := choose(o.Only)
	if err != nil {
		return nil, err
	}
	t, err := s.resolve()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	r := &run{ctx: ctx, target: t, deadline: begin.Add(7 * time.Minute), fields: map[child][]path{},
		secrets: redact.New()}
	r.options = r.redacted(o)
	if s.Fast {
		r.deadline = begin.Add(85 * time.Second)
	}
	r.report = newReport(t)
	remove, err := t.build(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	o.Progress("starting a control plane of its own")
	if r.fixture, err = fixture.Start(ctx, fixture.Options{Root: o.Root, CRDs: t.crds}); err != nil {
		return nil, fmt.Errorf("the control plane did not start, perhaps because of a CRD in CRD=%s: %w", t.CRD, err)
	}
	defer func() { err = errors.Join(err, r.fixture.Stop()) }()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := r.secrets.Watch(watching, r.fixture.Kube); err != nil {
		return nil, err
	}
	if err := r.prepare(); err != nil {
		return nil, r.withoutSecrets(err)
	}
	err = r.all(chosen)
	r.report.Took = time.Since(begin).Round(time.Second)
	r.report.Interrupted = ctx.Err() != nil
	return r.report, r.withoutSecrets(err)
}

func choose(only []string) (chosen []experiment, err error) {
	var ids []string
	for _, e := range experiments {
		ids = append(ids, e.id)
		if len(only) == 0 || slices.Contains(only, e.id) {
			chosen = append(chosen, e)
		}
	}
	for _, id := range only {
		if !slices.Contains(ids, id) {
			return nil, fmt.Errorf("there is no experiment %q: there are %s", id, strings.Join(ids, ", "))
		}
	}
	return chosen, nil
}

// prepare starts the operator, and learns from undisturbed runs.
func (r *run) prepare() error {
	r.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(r.fixture.Kube.Discovery()))
	for _, name := range []string{leaseNamespace, r.target.Namespace} {
		if name == "" {
			continue
		}
		if err := r.namespaceExists(r.ctx, name); err != nil {
			return err
		}
	}
	r.secrets.Publish(leaseNamespace, r.target.Namespace, r.target.sample.GetName(), r.report.Operator)
	once := &trial{run: r, ctx: r.ctx, namespace: leaseNamespace}
	for _, u := range r.target.needs { // an operator may ask for what is cluster-scoped at its start
		mapping, err := r.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err == nil && mapping.Scope.Name() == meta.RESTScopeNameRoot {
			err = once.put(u)
		}
		if err != nil {
			return fmt.Errorf("create %s %s, which the sample needs: %w", u.GetKind(), u.GetName(), err)
		}
	}
	flags := fixture.FlagsOf(r.ctx, r.target.Program)
	var err error
	if r.operator, err = newOperator(r.ctx, r.fixture, r.target, "examined", flags); err != nil {
		return err
	}
	r.options.Progress("starting the operator")
	if err := r.operator.start(r.ctx); err != nil {
		return err
	}
	return r.undisturbed()
}

// all runs the experiments one after the other.
func (r *run) all(chosen []experiment) error {
	for n, e := range chosen {
		r.current = e
		r.options.Progress("[%d/%d] %s", n+1, len(chosen), e.title)
		if err := e.run(r); err != nil {
			if r.ctx.Err() != nil {
				return err
			}
			return fmt.Errorf("experiment %s could not be carried out: %w", e.id, err)
		}
	}
	return nil
}

// check carries out one trial, and records what it showed.
func (r *run) check(title string, f func(t *trial) (Finding, error)) error {
	begin := time.Now()
	finding, err := r.try(f)
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx) // a finding of an interrupted trial shows nothing
	}
	if err != nil {
		finding = failed("%v", err)
		var different differenceError
		if errors.As(err, &different) {
			finding = failed("the end is not that of an undisturbed run").with(different...)
		}
		if p := r.operator.Process(); p != nil && !p.Running() && r.current.id != "replicas" {
			finding.What += fmt.Sprintf("; the operator %v", p.Exit())
		}
	}
	finding.Took = time.Since(begin).Round(10 * time.Millisecond)
	r.add(title, finding)
	return nil
}

// add records a finding.
func (r *run) add(title string, f Finding) {
	f.Experiment, f.Title = r.current.id, title
	r.report.Findings = append(r.report.Findings, f)
	r.options.Progress("  %-7s %s: %s", f.Verdict, title, firstLine(f.What))
}

func firstLine(text string) string {
	line, rest, _ := strings.Cut(text, "\n")
	if rest != "" {
		line += " …"
	}
	return line
}

// late reports whether what takes long must be left out.
func (r *run) late() bool { return time.Now().After(r.deadline) }
