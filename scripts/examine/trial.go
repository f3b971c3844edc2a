package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/frame"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// The field manager of a simulated user of the cluster.
const somebody = "examine"

// A trial is a sample in a namespace, from its creation to its removal.
type trial struct {
	*run
	*frame.Trial
	began time.Time
	until time.Duration // by the clock
	// errorsBefore is how many reconciles had ended in an error at the beginning.
	errorsBefore int
	given        map[child]types.UID // prerequisites of the sample
}

// try runs f in a trial, with a running operator.
func (r *run) try(f func(t *trial) (Finding, error)) (finding Finding, err error) {
	err = r.inTrial(func(t *trial) error {
		if err := r.ensureRunning(t.Ctx); err != nil {
			return err
		}
		if finding, err = f(t); err == nil && finding.Verdict != Failed {
			return nil
		}
		services, listErr := t.fixture.Kube.CoreV1().Services(metav1.NamespaceAll).List(t.Ctx, metav1.ListOptions{})
		if listErr != nil {
			return err
		}
		if port := strandedPort(t.Writes(0), services.Items); port != "" {
			finding, err = unfinished(fmt.Errorf("the lab's API server refuses port %s of the nodes, which no Service has: "+
				"it keeps the port of a cancelled request for some minutes", port)), nil
		}
		return err
	})
	return finding, err
}

// strandedPort returns a port of the nodes that the API server refused to the operator at last although no Service has it.
// The API server allocates a port before it stores the Service. When its client is killed in between, only a repair
// some minutes later frees the port (pkg/registry/core/service/portallocator/controller in Kubernetes).
func strandedPort(writes []ledger.Entry, services []corev1.Service) (port string) {
	for _, e := range writes {
		if refused := portRefused.FindStringSubmatch(e.Message); refused != nil {
			port = refused[1]
		}
	}
	for _, s := range services {
		if slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return fmt.Sprint(p.NodePort) == port }) {
			return ""
		}
	}
	return port
}

// portRefused finds the port in kube-apiserver's message about a Service.
var portRefused = regexp.MustCompile(`nodePort: Invalid value: (\d+): provided port is already allocated`)

// ensureRunning starts the operator when it does not run.
func (r *run) ensureRunning(ctx context.Context) error {
	if r.operator.Running() {
		return nil
	}
	return r.operator.start(ctx)
}

// inTrial runs f in a namespace with the prerequisites of the sample, and removes everything afterwards.
func (r *run) inTrial(f func(t *trial) error) error {
	ctx, cancel := r.clock.Within(r.ctx, trialTime, errOver)
	defer cancel()
	t, err := r.newTrial(ctx)
	if err != nil {
		return inTime(ctx, err)
	}
	defer t.clean()
	err = f(t)
	t.findLost()
	return inTime(ctx, err)
}

// trialTime limits a trial.
const trialTime = 2 * time.Minute

// errOver says that the time of a trial was over. It is the lab's time, so the results of the trial until then prove
// nothing about the operator.
var errOver = errors.New("the time was over")

// inTime is the error of a trial: that of its context, when the time of the trial was over.
func inTime(ctx context.Context, err error) error { return errors.Join(context.Cause(ctx), err) }

func (r *run) newTrial(ctx context.Context) (*trial, error) {
	t := &trial{run: r, began: time.Now(), until: r.clock.Now() + trialTime, given: map[child]types.UID{}}
	t.Trial = &frame.Trial{Fixture: r.fixture, Clock: r.clock, Ctx: ctx, Namespace: r.target.Namespace,
		User: r.operator.user.Name, About: t.isAbout}
	if t.Namespace == "" {
		t.Namespace = fmt.Sprintf("%s%d", r.prefix, r.trials.Add(1))
	}
	if err := r.fixture.Namespace(ctx, t.Namespace); err != nil {
		return nil, err
	}
	t.Start = max(r.fixture.Ledger.Mark(), 1)
	t.errorsBefore = r.operator.metrics(ctx).errors
	for _, u := range r.target.needs {
		if err := t.put(u); err != nil {
			return nil, notCreated(u, err)
		}
	}
	if len(r.target.needs) > 0 {
		if err := t.settled(); err != nil {
			return nil, err
		}
	}
	r.live.Add(1)
	return t, nil
}

// notCreated is the error about an object that the sample needs.
func notCreated(u *unstructured.Unstructured, err error) error {
	if missing := missingCRD(err.Error()); missing != "" {
		err = errors.New(missing)
	}
	return fmt.Errorf("create %s %s, which the sample needs: %w", u.GetKind(), u.GetName(), err)
}

func (t *trial) put(u *unstructured.Unstructured) error {
	mapping, err := t.mapper.RESTMapping(u.GroupVersionKind().GroupKind(), u.GroupVersionKind().Version)
	if err != nil {
		return err
	}
	u = u.DeepCopy()
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		u.SetNamespace(t.place(u.GetNamespace()))
	}
	_, err = t.fixture.Dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()).Create(t.Ctx, u,
		metav1.CreateOptions{FieldManager: somebody})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// place is the namespace of an object: the trial's namespace, a namespace that NEEDS= creates, or the operator's own,
// $NAMESPACE.
func (t *trial) place(given string) string {
	switch {
	case !t.isElsewhere(given):
		return t.Namespace
	case given == "$NAMESPACE":
		return t.target.home()
	}
	return given
}

// isElsewhere reports whether the namespace of a manifest is the same in each trial.
func (t *trial) isElsewhere(given string) bool {
	return given == "$NAMESPACE" || slices.ContainsFunc(t.target.needs, func(u *unstructured.Unstructured) bool {
		return u.GetKind() == "Namespace" && u.GetName() == given
	})
}

// clean removes the sample, its prerequisites, and the namespace. It removes a remaining finalizer, so that it does
// not block the next trial. After Ctrl-C there is no next trial: the lab removes the whole cluster.
func (t *trial) clean() {
	defer t.live.Add(-1)
	if t.run.ctx.Err() != nil {
		t.End(t.run.ctx)
		return
	}
	ctx, cancel := t.clock.Within(context.WithoutCancel(t.Ctx), 30*time.Second, clock.ErrLate)
	defer cancel()
	t.End(ctx)
	name := t.target.sample.GetName()
	_ = t.samples().Delete(ctx, name, metav1.DeleteOptions{})
	for begin := t.clock.Now(); ctx.Err() == nil; _ = fixture.Pause(ctx, 50*time.Millisecond) {
		u, err := t.samples().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			break
		}
		if took := t.clock.Now() - begin; took > 10*time.Second || !t.target.cluster && took > 4*time.Second {
			u.SetFinalizers(nil)
			_, _ = t.samples().Update(ctx, u, metav1.UpdateOptions{})
		}
	}
	if t.target.cluster || t.hasElsewhere() {
		t.Trial = t.During(ctx)
		t.cleanNamespaces(ctx)
	}
	if t.target.Namespace == "" {
		_ = t.fixture.Kube.CoreV1().Namespaces().Delete(ctx, t.Namespace, metav1.DeleteOptions{})
		return
	}
	for _, c := range t.children {
		_ = t.at(c).Delete(ctx, c.Name, metav1.DeleteOptions{})
	}
}

func (t *trial) samples() dynamic.ResourceInterface { return t.at(t.own()) }

func (t *trial) sample() (*unstructured.Unstructured, error) {
	return t.samples().Get(t.Ctx, t.target.sample.GetName(), metav1.GetOptions{})
}

func (t *trial) at(c child) dynamic.ResourceInterface {
	if c.Cluster {
		return t.fixture.Dynamic.Resource(c.GVR)
	}
	return t.fixture.Dynamic.Resource(c.GVR).Namespace(cmp.Or(c.Namespace, t.Namespace))
}

// create creates the sample.
func (t *trial) create() error {
	if err := t.putAdmitted(t.target.sample); err != nil {
		return fmt.Errorf("the API server refuses the sample: %w", err)
	}
	return nil
}

// putAdmitted creates an object about which the API server may ask the operator. A restarted operator may need some
// seconds until its webhooks answer.
func (t *trial) putAdmitted(u *unstructured.Unstructured) (err error) {
	_ = t.Eventually(15*time.Second, func() error {
		if err = t.put(u); isCallError(err) {
			_ = t.operator.findWebhooks(t.Ctx) // it may have created the configuration meanwhile
			return err
		}
		return nil
	})
	return err
}

// isCallError reports whether the API server could not call a webhook.
func isCallError(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
}

// serve creates the sample and waits until it is ready.
func (t *trial) serve() error {
	if err := t.create(); err != nil {
		return err
	}
	return t.await(40 * time.Second)
}

// restFor is the time without a write after which a sample is at the end of the work for its creation.
const restFor = 3 * time.Second

// rest creates the sample, and waits until the namespaces of earlier trials are deleted, because an operator that watches
// namespaces reacts to these events. It then waits until the work for the creation is over: some operators write their
// status at intervals of seconds.
func (t *trial) rest() error {
	if err := t.serve(); err != nil {
		return err
	}
	_ = t.Eventually(20*time.Second, t.noRemains) // an operator may keep a namespace forever
	if err := t.quiet(restFor); err != nil && !errors.Is(err, errRestless) {
		return err
	}
	return nil
}

// noRemains returns nil when no namespace is being deleted.
func (t *trial) noRemains() error {
	all, err := t.fixture.Kube.CoreV1().Namespaces().List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range all.Items {
		if n.DeletionTimestamp != nil {
			return fmt.Errorf("the namespace %s is there", n.Name)
		}
	}
	return nil
}

// idle creates the sample, and waits until the operator sends no request for it, also no read: a reconcile that is still
// under way would restore what the lab changes, without any event.
func (t *trial) idle() error {
	if err := t.serve(); err != nil {
		return err
	}
	ctx, cancel := t.clock.Within(t.Ctx, 4*time.Second, clock.ErrLate)
	defer cancel()
	match := t.Mine(0, append(slices.Clone(wire.Writes), wire.Get, wire.List)...)
	if err := t.fixture.Ledger.AwaitQuiet(ctx, time.Second, match); err != nil && t.Ctx.Err() != nil {
		return err
	}
	return nil
}

// isAbout reports whether a request of the operator is about the trial: it uses no lock of a leader election, and is in
// the namespace, or about a child elsewhere.
func (t *trial) isAbout(e ledger.Entry) bool {
	return !t.isLock(e) && (t.target.cluster || e.Namespace == t.Namespace || t.isReached(e.Namespace) || t.ofChild(e))
}

// ofChild reports whether a request is about a child outside the namespace.
func (t *trial) ofChild(e ledger.Entry) bool {
	return e.Namespace == "" && slices.ContainsFunc(t.children, func(c child) bool {
		return c.Cluster && c.GVR.Resource == e.Resource && c.Name == e.Name
	})
}

// quiet waits until the operator has written nothing for a time.
func (t *trial) quiet(window time.Duration) error {
	limit := 10 * time.Second
	if t.target.Fast {
		limit = 4 * time.Second
	}
	return t.quietWithin(max(limit, 2*window), window)
}

// quietWithin waits until the operator has written nothing for a time, no longer than limit.
func (t *trial) quietWithin(limit, window time.Duration) error {
	ctx, cancel := t.clock.Within(t.Ctx, limit, clock.ErrLate)
	defer cancel()
	if err := t.fixture.Ledger.AwaitQuiet(ctx, window, t.Mine(0, wire.Writes...)); err != nil {
		if t.Ctx.Err() != nil {
			return err
		}
		return errRestless
	}
	return nil
}

var errRestless = errors.New("the operator does not stop writing")
