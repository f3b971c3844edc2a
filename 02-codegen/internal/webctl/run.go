// Package webctl is a small program that uses the generated client of MyWeb. Each command shows one way to
// use the API server.
package webctl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned"
)

// Usage is the help text of webctl.
const Usage = `usage: webctl VERB [FLAG]... [ARGUMENT]...

  apply NAME  create the MyWeb or change it: --image, --page, --node-port, --label, --manager, --force
  get NAME    show one
  watch       show each change as it comes, until interrupted: -l, --resync

Every verb takes --kubeconfig and -n (namespace), and flags come before arguments.
`

// Run executes the command in args and writes its output to out. The kubeconfig comes from --kubeconfig, else from
// KUBECONFIG, else from ~/.kube/config. A watch runs until ctx ends.
func Run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		_, err = io.WriteString(out, Usage)
		return err
	}
	if err != nil {
		return err
	}
	v, err := connect(o, out)
	if err != nil {
		return err
	}
	return o.run(ctx, v)
}

// options are the flags and arguments of one command line.
type options struct {
	verb       string
	kubeconfig string
	namespace  string
	name       string
	apply      applyOptions
	labels     string
	resync     time.Duration
}

// arguments names the arguments of each command, after its flags.
var arguments = map[string][]string{
	"apply": {"NAME"},
	"get":   {"NAME"},
	"watch": {},
}

// parse reads a command line. It returns an error for words that are not in Usage, and flag.ErrHelp when the
// user asks for help.
func parse(args []string) (options, error) {
	if len(args) == 0 || slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		return options{}, flag.ErrHelp
	}
	o := options{verb: args[0]}
	want, ok := arguments[o.verb]
	if !ok {
		return o, fmt.Errorf("there is no verb %q: webctl help lists them", o.verb)
	}
	flags := o.flags()
	if err := flags.Parse(args[1:]); err != nil {
		return o, fmt.Errorf("%s: %w", o.verb, err)
	}
	if flags.NArg() != len(want) {
		return o, fmt.Errorf("%s: the arguments after the flags are %q, want %q", o.verb, flags.Args(), want)
	}
	o.name = flags.Arg(0)
	return o, nil
}

// flags are the flags of a command; parsing them sets the fields of o.
func (o *options) flags() *flag.FlagSet {
	fs := flag.NewFlagSet(o.verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig")
	fs.StringVar(&o.namespace, "n", "", "namespace, else the one of the kubeconfig")
	switch o.verb {
	case "apply":
		o.apply.addFlags(fs)
	case "watch":
		fs.StringVar(&o.labels, "l", "", "label selector")
		fs.DurationVar(&o.resync, "resync", 0, "show the whole cache again this often, 0 is never")
	}
	return fs
}

// connect makes the client. It sends no request to the API server yet.
func connect(o options, out io.Writer) (*verbs, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	kubeconfig := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules,
		&clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: o.namespace}})
	cfg, err := kubeconfig.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := kubeconfig.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the namespace: %w", err)
	}
	cfg.UserAgent = "webctl"
	client, err := versioned.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &verbs{client: client, namespace: namespace, out: out}, nil
}

// run calls the command.
func (o options) run(ctx context.Context, v *verbs) error {
	switch o.verb {
	case "apply":
		return v.apply(ctx, o.name, o.apply)
	case "get":
		return v.get(ctx, o.name)
	case "watch":
		return v.watch(ctx, o.labels, o.resync)
	}
	return errors.ErrUnsupported
}
