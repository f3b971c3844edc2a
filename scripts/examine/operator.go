package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// leaseNamespace is where an operator that watches all namespaces keeps its lease.
const leaseNamespace = "examine-lease"

// An operator is a replica of the program: a user with its permissions, and a process or none.
type operator struct {
	target  *target
	program string // that start runs
	fixture *fixture.Fixture
	user    *fixture.User
	flags   []string // that --help names
	port    int      // port of its webhooks; 0 for the usual port
	// metricsPort is the port of its metrics; 0 when the lab cannot read them.
	metricsPort int

	fixture.Lives
}

// newOperator creates a user with the given name and the permissions of the subject. It starts no process.
func newOperator(ctx context.Context, w *fixture.Fixture, t *target, name string, flags []string) (*operator, error) {
	user, err := w.AddUser(ctx, name)
	if err != nil {
		return nil, err
	}
	o := &operator{target: t, program: t.Program, fixture: w, user: user, flags: flags}
	if slices.ContainsFunc(flags, func(flag string) bool { return slices.Contains(metricsFlags, flag) }) {
		if o.metricsPort, err = fixture.FreePort(); err != nil {
			return nil, err
		}
	}
	if len(t.Role) == 0 {
		return o, w.GrantAdmin(ctx, name)
	}
	for _, file := range t.Role {
		if err := w.Grant(ctx, name, t.home(), file); err != nil {
			return nil, fmt.Errorf("ROLE=%s: %w", file, err)
		}
	}
	return o, nil
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

// launch starts a process. It does not wait for it. A single replica needs no leader election, and a new leader would
// wait for the lease of a killed one.
func (o *operator) launch(args ...string) (*fixture.Process, error) {
	metrics := fmt.Sprintf("=127.0.0.1:%d", o.metricsPort)
	ports, err := o.probePorts()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(o.filled(o.target.Args), o.with("--kubeconfig="+o.user.Kubeconfig,
		"--health-probe-bind-address=0", "--leader-elect=false", "--enable-leader-election=false",
		"--metrics-bind-address"+metrics, "--metrics-addr"+metrics, fmt.Sprintf("--metrics-port=%d", o.metricsPort),
		"--metrics-secure=false"), ports, o.certificates(), args)
	p, err := o.fixture.Run(fixture.Program{Name: o.user.Name, Path: o.program, Args: all,
		Env: append(o.filled(o.target.Env), "WEBHOOK_CERT_DIR="+o.fixture.Webhooks.CertDir), Kubeconfig: o.user.Kubeconfig})
	if err == nil {
		o.Began(p)
		o.fixture.Webhooks.Add(p, o.webhookPort())
	}
	return p, err
}

// metricsFlags are the usual names of the flag for the address or the port of the metrics.
var metricsFlags = []string{"metrics-bind-address", "metrics-addr", "metrics-port"}

// probeFlag matches the usual names of the flag for the port of the probes.
var probeFlag = regexp.MustCompile(`^(health|healthz|health-probe|readyz|readiness-probe|probe)-port$`)

// probePorts are the flags that give the probes a free port, so that two replicas can run on one machine.
func (o *operator) probePorts() (args []string, err error) {
	for _, flag := range o.flags {
		if !probeFlag.MatchString(flag) {
			continue
		}
		port, err := fixture.FreePort()
		if err != nil {
			return nil, err
		}
		args = append(args, o.with(fmt.Sprintf("--%s=%d", flag, port))...)
	}
	return args, nil
}

// start launches a process, and returns when the process watches the sample's kind and sends no more requests, or has
// sent requests for 10 s.
func (o *operator) start(ctx context.Context) error {
	mark := o.fixture.Ledger.Mark()
	p, err := o.launch()
	if err != nil {
		return fmt.Errorf("PROGRAM=%s cannot be started: %w", o.program, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 40*time.Second, errLate)
	defer cancel()
	ended, stop := p.Context(ctx)
	defer stop()
	mine := ledger.Match{Users: []string{o.user.Name}, After: mark}
	watch := mine
	watch.Verbs, watch.Resources = []string{wire.Watch}, []string{o.target.what()}
	if err = o.fixture.Ledger.Await(ended, 1, watch); err == nil {
		quiet, stop := context.WithTimeoutCause(ended, 10*time.Second, errBusy)
		defer stop()
		err = o.fixture.Ledger.AwaitQuiet(quiet, 200*time.Millisecond, mine, ledger.Match{Except: ledger.Housekeeping})
	}
	switch {
	case err == nil, errors.Is(err, errBusy): // it works on objects that exist
		return nil
	case !p.Running():
		return o.endedEarly(p, o.fixture.Ledger.Count(mine))
	case errors.Is(err, errLate):
		fix := cmp.Or(missingCRD(p.Output()), "check the CRD's group and version, and ROLE=")
		return fmt.Errorf("the operator runs, but in 40 s it did not begin to watch %s, so a sample would not be noticed: "+
			"%s (it sent %d requests%s)%s", o.target.what(), fix, o.fixture.Ledger.Count(mine), o.forbidden(mark), words(p))
	}
	return err
}

var (
	errLate = errors.New("the time is over")
	errBusy = errors.New("it sends requests all the time")
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

// endedEarly is the message about a process that ended at its start.
func (o *operator) endedEarly(p *fixture.Process, requests int) error {
	output := p.Output()
	if strings.Contains(output, "tls.crt") || strings.Contains(output, "serving-cert") {
		return fmt.Errorf("the operator wants a certificate for its webhooks, which cert-manager would give it in a "+
			"cluster: switch the webhooks off, often by ENV=ENABLE_WEBHOOKS=false, or name their manifests in WEBHOOKS=%s",
			words(p))
	}
	if missing := missingCRD(output); missing != "" {
		return fmt.Errorf("the operator %v: %s%s", p.Exit(), missing, words(p))
	}
	if m := portTaken.FindStringSubmatch(output); m != nil {
		return fmt.Errorf("the operator %v, because another program on this machine listens on %s: end that program, or "+
			"give the operator another port in ARGS= or ENV=%s", p.Exit(), m[1], words(p))
	}
	if strings.Contains(output, "KUBERNETES_SERVICE_HOST") {
		return fmt.Errorf("the operator looks for the API server only where a pod finds it, and the lab runs it outside a "+
			"pod: give it in ARGS= its flag for a kubeconfig ($KUBECONFIG is the path) or for a run outside a cluster, or "+
			"build it with a client configuration that reads KUBECONFIG (ctrl.GetConfig or clientcmd, not "+
			"rest.InClusterConfig)%s", words(p))
	}
	if strings.Contains(output, "serviceaccount/namespace") {
		return fmt.Errorf("the operator reads its own namespace from a file that only a pod has, and the lab runs it outside a "+
			"pod: name the namespace in ENV= or ARGS=, as ENV='POD_NAMESPACE=$NAMESPACE OPERATOR_NAMESPACE=$NAMESPACE'%s",
			words(p))
	}
	if commands := commandsIn(output); len(commands) > 0 && requests == 0 {
		return fmt.Errorf("the operator printed its help and %v, so nothing can be examined: it has the commands %s. Begin "+
			"ARGS= with the command that starts it, as the Deployment in its manifests does (often "+
			"config/manager/manager.yaml)", p.Exit(), strings.Join(commands, ", "))
	}
	asked := "before it sent any request to the API server"
	if requests > 0 {
		asked = fmt.Sprintf("after %d requests to the API server", requests)
	}
	return fmt.Errorf("the operator %v at its start, %s, so nothing can be examined: it must be a program that runs "+
		"until it is stopped and finds the API server by KUBECONFIG; pass its settings by ARGS= and ENV=, which the "+
		"Deployment in its manifests has (often config/manager/manager.yaml)%s", p.Exit(), asked, words(p))
}

// noKind matches the error of a client for a kind that the API server does not serve.
var noKind = regexp.MustCompile(`no matches for kind \\*"(\w+)\\*" in version \\*"([\w./-]+)`)

// missingCRD names a kind that the API server does not serve, and what to do about it; empty when a text names none.
func missingCRD(text string) string {
	m := noKind.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("the CRD of %s %s is missing: add its file to CRD=, or to NEEDS= if it is the CRD of another "+
		"product", m[2], m[1])
}

// portTaken matches an error of Go's net package.
var portTaken = regexp.MustCompile(`listen (?:tcp|tcp4|tcp6) (\S+): bind: address already in use`)

var (
	commandList = regexp.MustCompile(`(?mi)^(?:available )?commands:\n((?:[ \t]+\S.*\n)+)`)
	commandName = regexp.MustCompile(`(?m)^[ \t]+([a-z][-\w]*)`)
)

// commandsIn are the commands that a program's help lists.
func commandsIn(help string) (names []string) {
	if list := commandList.FindStringSubmatch(help); list != nil {
		for _, m := range commandName.FindAllStringSubmatch(list[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// filled replaces $KUBECONFIG and $NAMESPACE, which differ in each examination.
func (o *operator) filled(settings []string) (all []string) {
	values := map[string]string{"KUBECONFIG": o.user.Kubeconfig, "NAMESPACE": o.target.home()}
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
func (t *target) home() string { return cmp.Or(t.Namespace, leaseNamespace) }

// usageLine matches the beginning of a program's help, which would hide the error.
var usageLine = regexp.MustCompile(`(?i)^\s*(usage( of)?\b|flags:|-{1,2}\w)`)

// words are the most useful lines of a process: its first error, and the last lines.
func words(p *fixture.Process) string { return usefulLines(p.Output()) }

// usefulLines leaves out the program's help. The error is before the help or, with some libraries, behind it.
func usefulLines(output string) string {
	var all, help []string
	for line := range strings.Lines(output) {
		line = shortened(strings.TrimRight(line, "\r\n"), 500)
		switch {
		case strings.TrimSpace(line) == "":
		case len(help) > 0 || usageLine.MatchString(line):
			help = append(help, line)
		default:
			all = append(all, line)
		}
	}
	if !slices.ContainsFunc(all, saysError.MatchString) {
		all = append(all, help[max(0, len(help)-2):]...)
	}
	if len(all) == 0 {
		return ". It printed nothing"
	}
	last := all[max(0, len(all)-6):]
	first := slices.IndexFunc(all, saysError.MatchString)
	if first >= 0 && first < len(all)-6 {
		return ". Its first error:\n  " + all[first] + "\nIts last lines:\n  " + strings.Join(last, "\n  ")
	}
	return ". Its last lines:\n  " + strings.Join(last, "\n  ")
}

var saysError = regexp.MustCompile(`(?i)\b(error|panic|fatal|failed|unable|cannot)\b`)
