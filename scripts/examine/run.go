package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/redact"
	"example.com/operator-workshop/scripts/examine/state"
)

// Options say how an examination runs.
type Options struct {
	// Only are the IDs of the experiments to run; none means all.
	Only []string
	// Progress receives messages about the progress, line by line.
	Progress func(format string, args ...any)
	// Bin is the folder of the programs of the control plane; empty means that of cluster.Programs.
	Bin string
}

// A run is an examination in progress.
type run struct {
	ctx      context.Context
	target   *target
	options  Options
	fixture  *fixture.Fixture
	operator *operator
	secrets  *redact.Secrets
	mapper   meta.RESTMapper
	trials   atomic.Int32
	live     atomic.Int32 // trials that have not ended
	nodes    []string     // of the cluster
	clock    *clock.Clock
	end      time.Duration // by the clock; optional work after it is left out
	deadline time.Duration // the same for the current experiment

	// learned from undisturbed runs
	children []child
	outside  []child // outside the namespace of the sample
	fields   map[child][]path
	states   []state.State
	state    state.State
	varying  map[string]bool
	keys     [][]key
	slowest  time.Duration // time until the sample was ready

	creationsMu sync.Mutex
	creations   []made
	values      map[fieldOf]string // values, in the run before, of fields that the operator sets
	generated   map[fieldOf]bool   // they differ from run to run
	locks       map[objectKey]bool // of leader elections

	writesStatus bool // the operator writes the status of the sample

	deletedMu sync.Mutex
	deleted   map[string]bool // prerequisites that the operator deleted in the current experiment

	served bool // there are manifests of webhooks, or conversions

	restored   child // the lab deletes it to see whether the operator works: the first child that comes back undisturbed
	unrestored bool  // no child comes back; restored is then the first child

	period time.Duration       // the operator's resync period; 0 until it is known
	waited bool                // the lab has waited for the period
	lost   map[string][]string // by label, the children that the operator no longer sees without the label
	kept   map[fieldOf]bool    // fields that the operator does not restore

	annotations []string // differences that stayed after a change of the spec was undone

	report   *Report
	current  experiment
	heading  string // of the current experiment
	narrator *narrator
	second   *run // in another lab, nil without one

	used, denied []permission // when all experiments of this run have ended

	prefix    string // of the namespaces of trials
	specified bool   // a specification names the children
	// found, when set, gets each finding. An error ends the experiments.
	found   func(outcome.Result) error
	stopped error
}

// newRun makes a run without a fixture.
func newRun(ctx context.Context, t *target, o Options) *run {
	return &run{ctx: ctx, target: t, options: o, clock: &clock.Clock{}, narrator: &narrator{pass: o.Progress}, fields: map[child][]path{}, report: newReport(t), prefix: "examine-",
		secrets: redact.New(), values: map[fieldOf]string{}, generated: map[fieldOf]bool{}, locks: map[objectKey]bool{},
		deleted: map[string]bool{}, lost: map[string][]string{}, kept: map[fieldOf]bool{}, period: t.Period.Duration}
}

// Run examines a subject. When ctx ends, it returns the results so far, with the error.
func Run(ctx context.Context, s Subject, o Options) (report *Report, err error) {
	if o.Progress == nil {
		o.Progress = func(string, ...any) {}
	}
	if err := checkReady(s.Ready); err != nil {
		return nil, err
	}
	chosen, err := choose(s, o.Only)
	if err != nil {
		return nil, err
	}
	t, err := s.resolve()
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	r := newRun(ctx, t, o)
	working, stop := context.WithCancel(ctx)
	defer stop()
	go r.clock.Run(working)
	t.choosePlace(func(sentence string) {
		r.report.Notes = append(r.report.Notes, sentence)
		o.Progress("%s", sentence)
	})
	remove, err := t.build(ctx, o.Progress)
	if err != nil {
		return nil, err
	}
	defer remove()
	o.Progress("starting a separate control plane")
	err = r.inLab(func() error {
		report = r.report
		err := r.allOf(chosen)
		r.report.Took, r.report.Idle = time.Since(begin).Round(time.Second), r.clock.Now()
		r.report.Interrupted = ctx.Err() != nil
		r.noteLonger(time.Since(begin) - r.report.Idle)
		return err
	})
	return report, err
}

// inLab starts a control plane, and the operator there, learns from undisturbed runs, calls do, and ends all of them.
func (r *run) inLab(do func() error) (err error) {
	dir, err := os.MkdirTemp("", "examine-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var crds []string
	if len(r.target.crds) > 0 {
		crds = []string{filepath.Join(dir, "crds.yaml")}
		if err := fixture.WriteManifest(crds[0], r.target.crds); err != nil {
			return err
		}
	}
	r.fixture, err = fixture.Start(r.ctx, fixture.Options{Bin: r.options.Bin, CRDs: crds, Services: true})
	if err != nil {
		return fmt.Errorf("the control plane did not start, perhaps because of a CRD in %s: %w",
			cmp.Or(r.target.CRD, r.target.Manifest), err)
	}
	defer func() { err = errors.Join(err, r.fixture.Stop()) }()
	watching, stop := context.WithCancel(r.ctx)
	defer stop()
	if err := r.secrets.Watch(watching, r.fixture.Kube); err != nil {
		return err
	}
	go r.provide(watching)
	if r.end == 0 {
		r.end = r.clock.Now() + r.target.time()
	}
	if err := r.fixture.AnswerExec(watching); err != nil {
		return err
	}
	err = r.prepare(watching)
	if err == nil {
		err = r.undisturbed()
	}
	if err == nil {
		err = do()
	}
	return r.withoutSecrets(err)
}

// choose returns the wanted experiments: without a choice all that can be done in the time.
func choose(s Subject, only []string) (chosen []experiment, err error) {
	for _, e := range experiments {
		possible := (e.id != "upgrade" || s.Old != "") && (e.id != "many" || !s.Fast)
		if len(only) == 0 && possible || slices.Contains(only, e.id) {
			chosen = append(chosen, e)
		}
	}
	for _, id := range only {
		if !slices.Contains(IDs(), id) {
			return nil, fmt.Errorf("there is no experiment %q: there are %s", id, strings.Join(IDs(), ", "))
		}
		if id == "upgrade" && s.Old == "" {
			return nil, errors.New("RUN=upgrade needs the old program: AGAINST= is the path of its executable file")
		}
	}
	return chosen, nil
}

// prepare starts the operator. The work that it starts ends with watching.
func (r *run) prepare(watching context.Context) error {
	r.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(r.fixture.Kube.Discovery()))
	if err := r.completeBuiltIn(); err != nil {
		return err
	}
	nodes, err := r.fixture.Kube.CoreV1().Nodes().List(r.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range nodes.Items {
		r.nodes = append(r.nodes, n.Name)
	}
	for _, name := range []string{leaseNamespace, r.target.Namespace, r.target.home()} {
		if name == "" {
			continue
		}
		if err := r.fixture.Namespace(r.ctx, name); err != nil {
			return err
		}
	}
	r.secrets.Publish(leaseNamespace, r.target.Namespace, r.target.home(), r.target.sample.GetName(), r.report.Operator, r.target.what(),
		r.report.Kind)
	for _, u := range r.target.needs {
		r.secrets.Publish(u.GetName())
	}
	once := &trial{run: r, Trial: &frame.Trial{Ctx: r.ctx, Namespace: leaseNamespace}}
	for _, u := range r.target.needs { // an operator may need objects outside the sample's namespace at its start
		mapping, err := r.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
		if err == nil && (mapping.Scope.Name() == meta.RESTScopeNameRoot || once.isElsewhere(u.GetNamespace())) {
			err = once.put(u)
		}
		if err != nil {
			return notCreated(u, err)
		}
	}
	if err := r.installWebhooks(); err != nil {
		return err
	}
	if err := r.installManifest(); err != nil {
		return err
	}
	go r.fixture.Webhooks.Serve(watching)
	flags := fixture.FlagsOf(r.ctx, r.target.Program, r.target.arguments(), r.target.emptyPod())
	if slices.ContainsFunc(flags, certFlag.MatchString) { // it may end without a certificate
		if err := r.fixture.Webhooks.Certify(); err != nil {
			return err
		}
	}
	if r.operator, err = r.newOperator(r.ctx, "examined", flags); err != nil {
		return err
	}
	r.report.Notes = append(r.report.Notes, r.target.workload.leftOut()...)
	r.progress("starting the operator")
	if err := r.operator.start(r.ctx); err != nil {
		return err
	}
	return r.webhooksAnswer()
}

// requestsSince counts the requests that the operator sent after a mark, without leases and events.
func (r *run) requestsSince(mark int) (n Requests) {
	for _, e := range r.fixture.Ledger.Entries(ledger.Match{After: max(mark, 1), Except: ledger.Housekeeping}) {
		switch {
		case !strings.HasPrefix(e.User, r.operator.user.Name) || e.Resource == "" || r.isLock(e):
		case e.IsWrite():
			n.Writes++
		default:
			n.Reads++
		}
	}
	return n
}

// check carries out one trial, and records its finding.
func (r *run) check(title string, f func(t *trial) (Finding, error)) error {
	return r.judge(title, func() (Finding, error) { return r.try(f) })
}

// judge carries out trials, and records their finding.
func (r *run) judge(title string, f func() (Finding, error)) error {
	begin := time.Now()
	finding, err := f()
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx) // a finding of an interrupted trial is not valid
	}
	if err != nil || finding.Verdict == Failed {
		if err := r.labWorks(err); err != nil {
			return err
		}
	}
	if err != nil {
		finding = failedBy(err)
		if finding.Verdict == Failed && r.operator != nil && r.operator.ended() && r.current.id != "replicas" {
			finding.What += fmt.Sprintf("; the operator %v", r.operator.Process().Exit())
		}
	}
	finding.Took = time.Since(begin).Round(10 * time.Millisecond)
	r.add(title, finding)
	if (finding.Verdict == Failed || err != nil) && r.operator != nil {
		r.operator.Kill() // the next trial starts a new process, without the state of this trial
	}
	return r.stopped
}

var errBroken = errors.New("the control plane of the lab is broken")

// labWorks returns an error when a part of the control plane has ended, as etcd does on a full disk, or when the failure of
// a trial is about that. A finding about the operator is then not valid.
func (r *run) labWorks(failure error) error {
	if errors.Is(failure, errBroken) {
		return failure
	} else if r.fixture == nil {
		return nil
	}
	if err := r.fixture.Ended(); err != nil {
		return fmt.Errorf("%w: %s", errBroken, shortened(err.Error(), 600))
	}
	return nil
}

// add records a finding.
func (r *run) add(title string, f Finding) {
	f.ID, f.Experiment, f.Title = idOf(r.current.id, title), r.current.id, title
	f = f.explained()
	r.report.Findings = append(r.report.Findings, f.Result)
	if r.found != nil && r.stopped == nil {
		r.stopped = r.found(f.Result)
	}
	r.progress("%s", f.Brief())
}

// lastVerdict is the verdict of the newest finding.
func (r *run) lastVerdict() Verdict { return r.report.Findings[len(r.report.Findings)-1].Verdict }

var firstLine = outcome.FirstLine

// late reports whether optional work must be left out.
func (r *run) late() bool { return r.clock.Now() > r.deadline }

// noteLonger says how much longer a busy machine needed.
func (r *run) noteLonger(by time.Duration) {
	if by > r.report.Took/10 {
		r.report.Notes = append(r.report.Notes, fmt.Sprintf("Other programs wanted the processors: the machine needed %v longer for "+
			"the experiments than an idle machine.", by.Round(time.Second)))
	}
}
