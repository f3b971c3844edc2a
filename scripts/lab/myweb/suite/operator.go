package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
)

// LeaseNamespace is where operators keep their leases.
const LeaseNamespace = "lab-lease"

// An Operator is an implementation in a fixture: a user with its permissions, and a process or none.
type Operator struct {
	Impl impl.Implementation
	User *fixture.User
	// Env is set for the processes in addition to the variables of the implementation and the fixture.
	Env []string

	// Results of the survey, which runs once: whether the program reports status and sets owner references; if not,
	// finding explains it. patience is how long a program may send no requests.
	surveyed, reports, owns bool
	finding                 string
	patience                time.Duration
	// found has the namespace of the survey, its end in the ledger, its act, and the reaction to it.
	found struct {
		namespace     string
		end           int
		did, reaction string
	}

	fixture.Lives
	fixture *fixture.Fixture
	mu      sync.Mutex // for Launch
	args    []string
}

// NewOperator creates a user of that name with the implementation's permissions, and applies the manifests that it
// needs. It starts no process.
func NewOperator(ctx context.Context, w *fixture.Fixture, i impl.Implementation, user string) (*Operator, error) {
	o := &Operator{Impl: i, fixture: w}
	var err error
	if o.User, err = w.AddUser(ctx, user); err != nil {
		return nil, err
	}
	if err := w.Namespace(ctx, LeaseNamespace); err != nil {
		return nil, err
	}
	hooks := i.Webhooks
	if hooks != "" && !filepath.IsAbs(hooks) {
		hooks = filepath.Join(i.Folder, hooks)
	}
	if err := w.Webhooks.Install(ctx, hooks); err != nil {
		return nil, err
	}
	if i.Roles == nil {
		err = w.GrantAdmin(ctx, user)
	}
	for _, file := range i.Roles {
		err = errors.Join(err, w.Grant(ctx, user, "", filepath.Join(i.Folder, file)))
	}
	for _, file := range i.LeaseRoles {
		err = errors.Join(err, w.Grant(ctx, user, LeaseNamespace, filepath.Join(i.Folder, file)))
	}
	for _, file := range i.Needs {
		err = errors.Join(err, w.Apply(ctx, filepath.Join(i.Folder, file)))
	}
	if err == nil && i.OwnCRD {
		err = o.installCRD(ctx)
	}
	return o, err
}

// installCRD lets the program install the CRD of MyWebs.
func (o *Operator) installCRD(ctx context.Context) error {
	p, err := o.Launch()
	if err != nil {
		return err
	}
	defer p.Kill()
	ctx, stop := p.Context(ctx)
	defer stop()
	if err := o.fixture.AwaitServed(ctx, MyWebs); err != nil {
		return fmt.Errorf("%s did not install its CRD: %w\n%s", o.User.Name, err, lastWords(p))
	}
	return nil
}

// Launch starts a process with the given arguments in addition to the usual ones. It does not wait.
func (o *Operator) Launch(args ...string) (*fixture.Process, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := slices.Concat(o.Impl.Args, o.Impl.With("--health-probe-bind-address=0", "--metrics-bind-address=0"), args)
	port := 0
	if o.Impl.Webhooks != "" {
		var err error
		if port, err = fixture.FreePort(); err != nil {
			return nil, err
		}
		all = append(all, "--webhook-host=127.0.0.1", fmt.Sprint("--webhook-port=", port),
			"--webhook-cert-dir="+o.fixture.Webhooks.CertDir)
	}
	dir := ""
	if o.Impl.InFolder {
		dir = o.Impl.Folder
	}
	p, err := o.fixture.Run(fixture.Program{
		Name: o.User.Name, Path: o.Impl.Path, Args: all, Env: slices.Concat(o.Impl.Env, o.Env), Dir: dir,
		Kubeconfig: o.User.Kubeconfig})
	if err != nil {
		return nil, err
	}
	o.Began(p)
	o.args = args
	if port != 0 {
		o.fixture.Webhooks.Add(p, port)
	}
	return p, nil
}

// Start launches a process and returns when it is ready: it watches the MyWebs, and sends no more requests.
func (o *Operator) Start(ctx context.Context, args ...string) error {
	mark := o.fixture.Ledger.Mark()
	p, err := o.Launch(args...)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("30 s are over"))
	defer cancel()
	ended, stop := p.Context(ctx)
	defer stop()
	mine := ledger.Match{Users: []string{o.User.Name}, After: mark}
	watch := mine
	watch.Verbs, watch.Resources = []string{wire.Watch}, []string{Resource}
	if err = o.fixture.Ledger.Await(ended, 1, watch); err == nil {
		err = o.fixture.Ledger.AwaitQuiet(ended, 200*time.Millisecond, mine, ledger.Match{Except: ledger.Housekeeping})
	}
	if err != nil {
		return fmt.Errorf("the operator did not begin to watch MyWebs: %w\n%s", err, lastWords(p))
	}
	return nil
}

// lastWords are the panic of a process, or the last lines that it printed.
func lastWords(p *fixture.Process) string {
	if lines := p.LastLines(1, "panic:"); len(lines) > 0 {
		return lines[0]
	}
	return strings.Join(p.LastLines(5, ""), "\n")
}

// Restart kills the process if it runs, and starts it again with the same arguments.
func (o *Operator) Restart(ctx context.Context) error {
	o.Kill()
	return o.Start(ctx, o.args...)
}

// Supervise restarts the operator whenever it was killed, until the returned function is called. An operator that
// ends by itself fails the check.
func (t *T) Supervise() (stop func()) {
	end := t.Operator.Lives.Supervise(t.Ctx, func(p *fixture.Process) error {
		if exit := p.Exit(); exit.Signal != syscall.SIGKILL || strings.Contains(p.Output(), "panic:") {
			return fmt.Errorf("the operator %v by itself:\n%s", exit,
				strings.Join(append(p.LastLines(3, "panic"), p.LastLines(20, "")...), "\n"))
		}
		return nil
	}, func() error {
		_, err := t.Operator.Launch()
		return err
	})
	stop = sync.OnceFunc(func() {
		if err := end(); err != nil {
			t.Errorf("%v", err)
		}
	})
	t.Cleanup(func(context.Context) { stop() })
	return stop
}

// Requests matches the operator's requests.
func (o *Operator) Requests() ledger.Match { return ledger.Match{Users: []string{o.User.Name}} }
