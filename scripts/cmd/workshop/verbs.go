package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/doctor"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/tools"
)

func doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Look for what may go wrong on this machine",
		Args:  cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, w workshop, _ []string) error {
			findings := doctor.Examine(cmd.Context(), doctor.Local(w.root, w.state))
			color := term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == ""
			if err := doctor.Print(os.Stdout, findings, color); err != nil {
				return err
			}
			if doctor.Worst(findings) == doctor.Failure {
				return errors.New("the workshop will not work here until the failed checks are cured")
			}
			return nil
		}),
	}
}

func testCommand() *cobra.Command {
	return chapterCommand("test", "Run the tests of chapters", func(ctx context.Context, w workshop, dirs []string) error {
		if err := w.builder().Ensure(ctx, tools.Local...); err != nil {
			return err
		}
		var steps []step
		for _, dir := range dirs {
			if err := w.builder().Warm(ctx, filepath.Join(w.root, dir)); err != nil {
				return err
			}
			steps = append(steps, w.command("tests of "+dir, dir, "make", "test"))
		}
		return runSteps(ctx, steps)
	})
}

func kindTestCommand() *cobra.Command {
	return chapterCommand("kind-test", "Walk chapters on kind", func(ctx context.Context, w workshop, dirs []string) error {
		if err := w.command("kind", "", filepath.Join("scripts", "kind-test.sh"), dirs...).run(ctx); err != nil {
			return errors.Join(errSaid, err) // the script has said what differs
		}
		return nil
	})
}

// labCommand builds the lab, which is a program of its own because of all that it is linked from, and
// becomes it.
func labCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "lab",
		Short:              "Examine MyWeb operators",
		DisableFlagParsing: true, // they are the lab's
		RunE: run(func(cmd *cobra.Command, w workshop, args []string) error {
			if err := w.builder().Ensure(cmd.Context(), tools.Local...); err != nil {
				return err
			}
			if err := w.builder().Program(cmd.Context(), filepath.Join(w.root, "scripts"), "./cmd/lab", "lab"); err != nil {
				return err
			}
			if err := os.Chdir(w.root); err != nil {
				return err
			}
			return syscall.Exec(filepath.Join(w.bin(), "lab"), append([]string{"lab"}, args...), tools.Env())
		}),
	}
}

// bundleCommand builds bin/olm-bundle, a program and a module of its own, and becomes it.
func bundleCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "bundle",
		Short:              "Make and check bundles for OLM; --build only builds bin/olm-bundle",
		DisableFlagParsing: true, // they are the program's
		RunE: run(func(cmd *cobra.Command, w workshop, args []string) error {
			if err := w.builder().Program(cmd.Context(), filepath.Join(w.root, bundleModule), ".", "olm-bundle"); err != nil {
				return err
			}
			if slices.Equal(args, []string{"--build"}) {
				return nil
			}
			return syscall.Exec(filepath.Join(w.bin(), "olm-bundle"), append([]string{"olm-bundle"}, args...), tools.Env())
		}),
	}
}

const bundleModule = "scripts/bundle"

// chaptersCommand tells CI which jobs there are.
func chaptersCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "chapters",
		Short: "Print the chapters as a JSON list",
		Args:  cobra.NoArgs,
		RunE: run(func(_ *cobra.Command, w workshop, _ []string) error {
			all, err := chapter.All(w.root)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(all)
		}),
	}
}

func syncCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sync",
		Short: "Distribute what chapters share, record what pages execute",
		Args:  cobra.NoArgs,
		RunE: run(func(_ *cobra.Command, w workshop, _ []string) error {
			written, err := chapter.Sync(w.root)
			if err != nil {
				return err
			}
			for _, path := range written {
				fmt.Println("copied to", path)
			}
			return w.recordBlocks()
		}),
	}
}

func verifyCommand() *cobra.Command {
	return chapterCommand("verify", "Check everything that must be true", func(ctx context.Context, w workshop, dirs []string) error {
		all, err := chapter.All(w.root)
		if err != nil {
			return err
		}
		if err := w.builder().Ensure(ctx, append(slices.Clone(tools.Local), tools.Generators...)...); err != nil {
			return err
		}
		for _, dir := range dirs {
			if err := w.builder().Warm(ctx, filepath.Join(w.root, dir)); err != nil {
				return err
			}
		}
		steps := []step{
			{"versions", func(context.Context) error { return chapter.CheckVersions(w.root) }},
			{"copies", func(context.Context) error { return chapter.CheckCopies(w.root) }},
		}
		for _, dir := range dirs {
			steps = append(steps, w.command("files of "+dir, dir, "make", "verify"))
		}
		pages := func(dir string) bool { return chapter.Holds(dirs, all, dir) }
		if len(dirs) == len(all) { // not narrowed to a chapter: the machinery too
			for _, module := range modules {
				if err := w.builder().Warm(ctx, filepath.Join(w.root, module)); err != nil {
					return err
				}
			}
			steps = append(steps, w.machinery()...)
			pages = func(string) bool { return true }
		}
		return runSteps(ctx, append(steps, step{"pages", func(ctx context.Context) error { return w.verifyPages(ctx, pages) }}))
	})
}

// modules are those of the machinery.
var modules = []string{"scripts", bundleModule}

// machinery are the checks of scripts/ and of all shell scripts.
func (w workshop) machinery() []step {
	steps := []step{
		{"shell scripts", w.shellcheck},
		{"format of scripts", func(ctx context.Context) error {
			out, err := exec.CommandContext(ctx, "gofmt", "-l", filepath.Join(w.root, "scripts")).CombinedOutput()
			if err == nil && len(out) > 0 {
				err = fmt.Errorf("gofmt -w is needed on:\n%s", out)
			}
			return err
		}},
	}
	for _, module := range modules {
		steps = append(steps,
			step{"vet " + module, func(ctx context.Context) error { return w.goCommand(ctx, module, "vet", "./...") }},
			step{"tidy " + module, func(ctx context.Context) error { return w.goCommand(ctx, module, "mod", "tidy", "-diff") }},
			step{"tests of " + module, func(ctx context.Context) error { return w.goCommand(ctx, module, "test", "./...") }})
	}
	return append(steps, w.command("request budget", "", filepath.Join("scripts", "workshop"), "lab", "budget"))
}

// verifyPages checks the pages that lie in a wanted chapter.
func (w workshop) verifyPages(ctx context.Context, wanted func(dir string) bool) error {
	all, err := page.Find(w.root)
	if err != nil {
		return err
	}
	var paths []string
	for _, path := range all {
		dir, err := filepath.Rel(w.root, filepath.Dir(path))
		if err != nil {
			return err
		}
		if wanted(dir) {
			paths = append(paths, path)
		}
	}
	return w.checkPages(ctx, paths)
}

// shellcheck runs where it is installed; CI installs it.
func (w workshop) shellcheck(ctx context.Context) error {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		fmt.Println("  skipped: shellcheck is not installed")
		return nil
	}
	out, err := exec.CommandContext(ctx, "git", "-C", w.root, "ls-files", "--cached", "--others", "--exclude-standard",
		"*.sh", "scripts/workshop", ".ci/run").Output()
	if err != nil {
		fmt.Println("  skipped: git does not know this folder, and so not its scripts")
		return nil
	}
	args := append([]string{"-x", "-P", "SCRIPTDIR"}, strings.Fields(string(out))...)
	return w.command("", "", "shellcheck", args...).run(ctx)
}

// A step is one part of a verb.
type step struct {
	name string
	run  func(context.Context) error
}

// runSteps runs all steps, tells how long each took, and fails at the end when one failed.
func runSteps(ctx context.Context, steps []step) error {
	var failed []string
	start := time.Now()
	for _, s := range steps {
		fmt.Printf("== %s\n", s.name)
		began := time.Now()
		if err := s.run(ctx); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			fmt.Printf("%v\n-- %s: FAILED (%.0f s)\n", err, s.name, time.Since(began).Seconds())
			failed = append(failed, s.name)
		} else {
			fmt.Printf("-- %s: ok (%.0f s)\n", s.name, time.Since(began).Seconds())
		}
	}
	fmt.Printf("\n%d of %d steps ok, %.0f s\n", len(steps)-len(failed), len(steps), time.Since(start).Seconds())
	if len(failed) > 0 {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
}

// command is a step that runs a program in a folder of the repository.
func (w workshop) command(name, dir, program string, args ...string) step {
	return step{name, func(ctx context.Context) error {
		if program == "make" {
			args = append([]string{"--no-print-directory"}, args...)
		}
		cmd := exec.CommandContext(ctx, program, args...)
		if strings.Contains(program, string(filepath.Separator)) {
			cmd = exec.CommandContext(ctx, filepath.Join(w.root, program), args...)
		}
		cmd.Dir = filepath.Join(w.root, dir)
		cmd.Env = w.chapterEnv()
		return foreground(cmd)
	}}
}

func (w workshop) goCommand(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(w.root, dir)
	cmd.Env = w.chapterEnv()
	return foreground(cmd)
}

// chapterEnv is the environment of a chapter's verbs: Go's settings are ours, the pinned programs come
// first in PATH, and what make handed on to us stays here.
func (w workshop) chapterEnv() []string {
	env := slices.DeleteFunc(tools.Env(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "MAKE") || name == "MFLAGS" || name == "CH" || name == "PATH"
	})
	env = append(env, "PATH="+w.bin()+":"+os.Getenv("PATH"))
	// Libraries of tests and generators (envtest, goimports) keep files beside Go's build cache, in HOME.
	// Theirs go to the state folder; Go's stays where it is.
	if cache, err := exec.Command("go", "env", "GOCACHE").Output(); err == nil {
		env = append(env, "GOCACHE="+strings.TrimSpace(string(cache)), "XDG_CACHE_HOME="+w.cluster().KubectlCache())
	}
	return env
}

// foreground runs a command whose output the reader sees. Ctrl-C reaches it as SIGINT, with time to
// clean up.
func foreground(cmd *exec.Cmd) error {
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 2 * time.Minute
	return cmd.Run()
}

// chapterCommand makes a verb that --ch narrows.
func chapterCommand(name, short string, do func(ctx context.Context, w workshop, dirs []string) error) *cobra.Command {
	var ch string
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command, w workshop, _ []string) error {
			dirs, err := chapter.Select(w.root, ch)
			if err != nil {
				return err
			}
			return do(cmd.Context(), w, dirs)
		})}
	cmd.Flags().StringVar(&ch, "ch", "", "only this chapter")
	return cmd
}
