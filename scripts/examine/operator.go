package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// leaseNamespace is where an operator that watches all namespaces keeps its lease.
const leaseNamespace = "examine-lease"

// An operator is a replica of the program: a user with its permissions, and a process or none.
type operator struct {
	target    *target
	program   string // that start runs
	fixture   *fixture.Fixture
	clock     *clock.Clock
	user      *fixture.User
	pod       string      // its name; empty when the program runs outside a pod
	self      *corev1.Pod // the source of the downward API, also outside a pod
	flags     []string    // that --help names
	container container   // what the manifests say about it
	port      int         // port of its webhooks; 0 for the usual port
	// metricsPort is the port of its metrics; 0 when the lab cannot read them.
	metricsPort int

	fixture.Lives
}

// newOperator creates a user with the given name and the permissions of the subject. It starts no process. A second
// replica that fails leaves no pod.
func (r *run) newOperator(ctx context.Context, name string, flags []string) (o *operator, err error) {
	w, t := r.fixture, r.target
	o = &operator{target: t, program: t.Program, fixture: w, clock: r.clock, flags: flags}
	if r.operator != nil {
		second := o
		defer func() {
			if err != nil {
				r.giveBack(context.WithoutCancel(ctx), second)
			}
		}()
	}
	if t.Outside {
		o.self = t.unknownPod(name)
		o.user, err = w.AddUser(ctx, name)
	} else {
		err = o.findPod(ctx, r, name)
	}
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(flags, func(flag string) bool { return slices.Contains(metricsFlags, flag) }) {
		if o.metricsPort, err = o.freePort(metricsInPod); err != nil {
			return nil, err
		}
	}
	if err := o.readContainer(ctx, r.served); err != nil {
		return nil, err
	}
	if err := o.grant(ctx); err != nil {
		return nil, err
	}
	return o, o.initialize(ctx, r.served)
}

// grant gives the user its permissions: those of ROLE= and of MANIFEST=, or all.
func (o *operator) grant(ctx context.Context) error {
	t, w := o.target, o.fixture
	if len(t.Role) == 0 && t.workload == nil {
		return w.GrantAdmin(ctx, o.user.Identity)
	}
	for _, file := range t.Role {
		if err := w.Grant(ctx, o.user.Identity, t.home(), file); err != nil {
			return fmt.Errorf("ROLE=%s: %w", file, err)
		}
	}
	grants, err := t.workload.grants()
	if err != nil {
		return err
	}
	for _, g := range grants {
		if t.Outside { // the roles are bound to the service account, whose name a kubeconfig does not have
			err = w.GrantRules(ctx, o.user.Identity, g.name, g.namespace, g.rules)
		} else {
			err = w.AwaitGranted(ctx, o.user.Identity, g.namespace, g.rules)
		}
		if err != nil {
			return fmt.Errorf("MANIFEST=: the role %s: %w", g.name, err)
		}
	}
	return nil
}

// ended reports whether the process has ended.
func (o *operator) ended() bool { return o.Process() != nil && !o.Process().Running() }

// with returns those settings whose flag the program has and the user did not set.
func (o *operator) with(settings ...string) (args []string) {
	for _, s := range settings {
		flag, _, _ := strings.Cut(strings.TrimPrefix(s, "--"), "=")
		given := slices.ContainsFunc(o.target.Args, func(arg string) bool {
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			return name == flag
		})
		if slices.Contains(o.flags, flag) && !given {
			args = append(args, s)
		}
	}
	return args
}

// launch starts a process in place of one that has ended. It does not wait for it.
func (o *operator) launch() (*fixture.Process, error) {
	o.deleteLeases()
	return o.launchReplica(o.alone()...)
}

// launchReplica starts a process with further arguments.
func (o *operator) launchReplica(args ...string) (*fixture.Process, error) {
	describe := o.inPod
	if o.pod == "" {
		describe = o.outside
	}
	program, err := describe(args)
	if err != nil {
		return nil, err
	}
	p, err := o.fixture.Run(program)
	if err == nil {
		o.Began(p)
		o.fixture.Webhooks.Add(p, o.webhookPort())
	}
	return p, err
}

// deleteLeases deletes the leases that the operator wrote: a killed leader has not released them, and the next process
// would wait until they expire. The API server may be down; then the process waits.
func (o *operator) deleteLeases() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	held := map[objectKey]bool{}
	for _, e := range o.fixture.Ledger.Entries(ledger.Match{Users: []string{o.user.Name}, Verbs: wire.Writes,
		Resources: leases}) {
		held[objectKey{e.FullResource(), e.Namespace, e.Name}] = true
	}
	for key := range held {
		_ = o.fixture.Kube.CoordinationV1().Leases(key.namespace).Delete(ctx, key.name, metav1.DeleteOptions{})
	}
}

// metricsFlags are the usual names of the flag for the address or the port of the metrics.
var metricsFlags = []string{"metrics-bind-address", "metrics-addr", "metrics-port"}

// metricsSettings make the program serve its metrics where the lab reads them, without TLS.
func (o *operator) metricsSettings() []string {
	address := "=" + localAddress(o.metricsPort)
	return o.with("--metrics-bind-address"+address, "--metrics-addr"+address,
		fmt.Sprintf("--metrics-port=%d", o.metricsPort), "--metrics-secure=false")
}

// start launches a process, and returns when the process watches the sample's kind, or polls it, and sends no more
// requests, or has sent requests for 10 s.
func (o *operator) start(ctx context.Context) error {
	mark := o.fixture.Ledger.Mark()
	p, err := o.launch()
	if err != nil {
		return fmt.Errorf("PROGRAM=%s %w: %w", o.program, errNotStarted, err)
	}
	ctx, cancel := o.clock.Within(ctx, 40*time.Second, clock.ErrLate)
	defer cancel()
	ended, stop := p.Context(ctx)
	defer stop()
	mine := ledger.Match{Users: []string{o.user.Name}, After: mark}
	if err = fixture.Eventually(ended, time.Hour, func() error { return o.observes(mark) }); err == nil {
		quiet, stop := o.clock.Within(ended, 10*time.Second, errBusy)
		defer stop()
		err = o.fixture.Ledger.AwaitQuiet(quiet, 200*time.Millisecond, mine, ledger.Match{Except: ledger.Housekeeping})
	}
	if err == nil || errors.Is(err, errBusy) { // it works on objects that exist
		if err = o.awaitProbes(ended); err == nil {
			return nil
		} else if p.Running() {
			return fmt.Errorf("the operator runs, and %w. Compare the probe with the address and the path that the program "+
				"serves%s", err, words(p))
		}
	}
	switch {
	case !p.Running():
		return o.endedEarly(p, o.fixture.Ledger.Count(mine))
	case errors.Is(err, clock.ErrLate):
		fix := cmp.Or(missingCRD(p.Output()), "check the CRD's group and version, and ROLE=")
		return fmt.Errorf("the operator runs, but in 40 s it did not begin to watch %s, so a sample would not be noticed: "+
			"%s (it sent %d requests%s)%s", o.target.what(), fix, o.fixture.Ledger.Count(mine), o.forbidden(mark), words(p))
	}
	return err
}

// observes returns nil when the process has begun to watch the sample's kind since a mark, or has listed it a second time.
func (o *operator) observes(mark int) error {
	reads := ledger.Match{Users: []string{o.user.Name}, After: mark, Resources: []string{o.target.what()}}
	isList := func(e ledger.Entry) bool { return e.Verb == wire.List && e.Accepted() }
	watch := ledger.Match{Verbs: []string{wire.Watch}}
	if o.fixture.Ledger.Count(reads, watch) == 0 && o.fixture.Ledger.Count(reads, ledger.Match{Where: isList}) < 2 {
		return fmt.Errorf("it does not watch %s", o.target.what())
	}
	return nil
}

var (
	errBusy = errors.New("it sends requests all the time")

	errNotStarted = errors.New("cannot be started")
)

// forbidden names the requests since a mark that ROLE= does not allow.
func (o *operator) forbidden(mark int) string {
	refused := o.fixture.Ledger.Entries(ledger.Match{Users: []string{o.user.Name}, After: mark,
		Where: func(e ledger.Entry) bool { return e.Code == http.StatusForbidden }})
	if len(refused) == 0 {
		return ""
	}
	var names []string
	for _, e := range refused {
		names = append(names, e.Verb+" "+e.FullResource())
	}
	slices.Sort(names)
	return ", and ROLE= does not allow " + strings.Join(slices.Compact(names), ", ")
}

// filled replaces $KUBECONFIG and $NAMESPACE, which differ in each examination.
func (o *operator) filled(settings []string) (all []string) {
	values := map[string]string{"KUBECONFIG": o.user.Kubeconfig, "NAMESPACE": o.target.home()}
	if o.pod != "" {
		values["KUBECONFIG"] = fixture.PodKubeconfig
	}
	for _, s := range settings {
		all = append(all, os.Expand(s, func(name string) string {
			if value, ok := values[name]; ok {
				return value
			}
			return "$" + name
		}))
	}
	return all
}

// home is the operator's own namespace.
func (t *target) home() string {
	if t.workload != nil {
		return t.workload.namespace
	}
	return cmp.Or(t.Namespace, leaseNamespace)
}
