// Command olm-bundle makes and checks bundles of the Operator Lifecycle Manager. It does what `operator-sdk
// generate bundle` and `operator-sdk bundle validate` do for a project of theirs, with the same library.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

const usage = `usage:
  olm-bundle generate --package NAME --version 1.2.3 --image IMAGE [--channels alpha,stable] [--output bundle] < MANIFESTS
      writes a bundle from what 'kustomize build config/manifests' prints
  olm-bundle validate [FOLDER]
      checks a bundle with the default validators of github.com/operator-framework/api`

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "olm-bundle:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	switch args[0] {
	case "generate":
		var o options
		o.bind(flags)
		if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 0 {
			return errors.Join(err, errors.New(usage))
		}
		return generate(o, in)
	case "validate":
		if err := flags.Parse(args[1:]); err != nil || flags.NArg() > 1 {
			return errors.Join(err, errors.New(usage))
		}
		folder := "bundle"
		if flags.NArg() == 1 {
			folder = flags.Arg(0)
		}
		return validate(folder, out)
	}
	return fmt.Errorf("%q is no verb\n%s", args[0], usage)
}
