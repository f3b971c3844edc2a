// Command workshop is the machinery behind the repository's Makefile.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(exitCode(ctx, command().ExecuteContext(ctx)))
}

// exitCode prints the error and returns the code to exit with.
func exitCode(ctx context.Context, err error) int {
	var child *exec.ExitError
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "interrupted: run the same command again")
		return 130
	case errors.Is(err, errSaid) && errors.As(err, &child):
		return child.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
}

// workshop is one checkout: its folder, and the folder of its run-time state.
type workshop struct{ root, state string }

// here returns the checkout whose bin/ has this program.
func here() (workshop, error) {
	program, err := os.Executable()
	if err != nil {
		return workshop{}, err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return workshop{}, err
	}
	w := workshop{root: filepath.Dir(filepath.Dir(program))}
	if _, err := os.Stat(filepath.Join(w.root, "scripts", "tools", "go.mod")); err != nil {
		return workshop{}, fmt.Errorf("%s lies outside a workshop repository: run scripts/workshop of a checkout", program)
	}
	w.state = filepath.Join(w.root, ".workshop")
	if dir := os.Getenv("WORKSHOP_STATE"); dir != "" {
		if w.state, err = filepath.Abs(dir); err == nil {
			err = os.Setenv("WORKSHOP_STATE", w.state) // for programs that run elsewhere
		}
	}
	return w, errors.Join(err, w.hideState())
}

// hideState closes the state folder to other users of the machine, because an older version left it open. A folder that
// the user has named may have other contents.
func (w workshop) hideState() error {
	about, err := os.Stat(w.state)
	if err != nil || about.Mode().Perm()&0o077 == 0 || w.state != filepath.Join(w.root, ".workshop") {
		return nil
	}
	return os.Chmod(w.state, 0o700)
}

func (w workshop) bin() string { return filepath.Join(w.root, "bin") }

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "workshop",
		Short:         "The machinery behind the workshop's Makefile",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(toolsCommand(), upCommand(), holdCommand(), downCommand(), statusCommand(), envCommand(),
		shellCommand(), userCommand(), doctorCommand(), demoCommand(), pageCommand(), pagesCommand(), testCommand(),
		verifyCommand(), lintCommand(), vulnerabilitiesCommand(), syncCommand(), bundleEditorCommand(), translationsCommand(),
		kindTestCommand(), chaptersCommand(),
		labCommand(), examineCommand(), stagesCommand(), requestsCommand(), writesCommand(), watchCommand(), freezeCommand(),
		packCommand(), fromBundleCommand(), serveCommand(), readyCommand(), openCommand())
	root.AddCommand(exerciseCommands()...)
	return root
}

// newCommand makes a command that needs the checkout.
func newCommand(use, short string, args cobra.PositionalArgs,
	f func(cmd *cobra.Command, w workshop, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		w, err := here()
		if err != nil {
			return err
		}
		return f(cmd, w, args)
	}}
}
