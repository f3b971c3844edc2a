package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/cluster"
	"example.com/operator-workshop/scripts/internal/doctor"
	"example.com/operator-workshop/scripts/internal/tools"
)

// errSaid marks the error of a child process that has printed its error itself: only its exit code is passed on.
var errSaid = errors.New("said already")

func toolsCommand() *cobra.Command {
	sets := map[string][]string{"envtest": tools.Envtest, "local": tools.Local, "generators": tools.Generators,
		"kind": tools.Kind}
	return newCommand("tools [envtest|local|generators|kind|PROGRAM]...",
		"Build programs that are not ours into bin/, at the pinned versions", cobra.ArbitraryArgs,
		func(cmd *cobra.Command, w workshop, args []string) error {
			var names []string
			for _, arg := range args {
				if set, ok := sets[arg]; ok {
					names = append(names, set...)
				} else {
					names = append(names, arg)
				}
			}
			if len(args) == 0 {
				for _, t := range tools.All {
					names = append(names, t.Name)
				}
			}
			b := w.builder()
			b.Tools = append(slices.Clone(tools.All), tools.Gopls)
			return b.Ensure(cmd.Context(), names...)
		})
}

// builder compiles tools. A compiler is a Go program itself: when each of the parallel compilers has 2 GiB free, it
// collects its garbage less often, and needs an eighth less processor time.
func (w workshop) builder() tools.Builder {
	b := tools.Builder{Root: w.root, Report: tools.NewReporter(os.Stderr)}
	free, _, err := doctor.Local(w.root).Memory(context.Background())
	if err == nil && free/uint64(runtime.NumCPU()) >= 2<<30 && os.Getenv("GOGC") == "" {
		b.Env = []string{"GOGC=300"}
	}
	return b
}

func (w workshop) cluster() *cluster.Cluster {
	c := cluster.New(w.bin(), w.state, tools.NewReporter(os.Stderr).Line)
	c.WithLens = true
	c.Fixes = cluster.Fixes{
		Missing:  "`make up` makes one",
		Damaged:  "`make up` repairs the cluster; if it does not, `make down` and `make up` start from nothing",
		Remove:   "`make down`",
		User:     "`scripts/workshop user NAME` makes it anew",
		Programs: "`scripts/workshop tools local`",
	}
	c.APIServer = []string{"--feature-gates=ShardedListAndWatch=true"} // for the shards of 06-deploy/scale
	return c
}

// ensureLens compiles the lens, which is a part of examine. Without the lens the cluster works, but nothing is
// recorded.
func (w workshop) ensureLens(ctx context.Context) error {
	var sources []string
	for _, of := range []string{"cmd/lens", "ledger", "loop", "output", "pki", "process", "proxy", "wire"} {
		sources = append(sources, filepath.Join(examineModule, of))
	}
	err := w.compile(ctx, examineModule, "./cmd/lens", cluster.Lens, sources...)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "note: the lens cannot be compiled, so that `make watch` has nothing to show: %v\n", err)
		return nil
	}
	return err
}

func upCommand() *cobra.Command {
	return newCommand("up", "Start the local cluster, or repair it", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if err := w.builder().Ensure(cmd.Context(), tools.Local...); err != nil {
				return err
			}
			if err := w.ensureLens(cmd.Context()); err != nil {
				return err
			}
			c, start := w.cluster(), time.Now()
			running, all := c.Running()
			if err := c.Up(cmd.Context()); err != nil {
				return err
			}
			if running == all {
				fmt.Println("The local cluster runs, all of it is healthy.")
			} else {
				fmt.Printf("The local cluster is ready after %.1f s (%d of %d components started).\n",
					time.Since(start).Seconds(), all-running, all)
			}
			fmt.Printf("\nTo use it in this terminal (or run `make shell`):\n\n%s", w.exports())
			return nil
		})
}

// holdCommand keeps a cluster for a test: the cluster lives exactly as long as the process at the other end of stdin,
// however that process ends.
func holdCommand() *cobra.Command {
	var crds, apiServer []string
	cmd := newCommand("hold",
		"Start a separate cluster, print its state folder, remove it when stdin ends", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			if err := w.builder().Ensure(cmd.Context(), tools.Local...); err != nil {
				return err
			}
			return cluster.HoldHere(cmd.Context(), w.bin(), apiServer, crds, os.Stdin, os.Stdout)
		})
	cmd.Flags().StringArrayVar(&crds, "crd", nil, "a CRD to install before the controllers start; repeatable")
	cmd.Flags().StringArrayVar(&apiServer, "apiserver", nil, "one more flag of the API server; repeatable")
	return cmd
}

func downCommand() *cobra.Command {
	return newCommand("down", "Remove the local cluster with all its data", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			_, missing := os.Stat(w.cluster().Kubeconfig())
			_, noChecks := os.Stat(filepath.Join(w.cluster().Kept(), "kubeconfig"))
			if err := w.cluster().Down(cmd.Context()); err != nil {
				return err
			}
			if noChecks == nil {
				fmt.Println("The control plane of the checks has ended.")
			}
			switch {
			case missing == nil:
				fmt.Println("The local cluster is gone: no process of it runs, no file of it is left.")
			case noChecks != nil:
				fmt.Println("There is no local cluster: no process of one runs, no file of one is left.")
			}
			return nil
		})
}

func statusCommand() *cobra.Command {
	return newCommand("status", "Say what of the local cluster runs, and where its files are", cobra.NoArgs,
		func(cmd *cobra.Command, w workshop, _ []string) error {
			return w.cluster().Status(cmd.Context(), os.Stdout)
		})
}

// terminal returns the variables, except PATH, with which a terminal uses the local cluster. Its `go run` uses the
// packages that the workshop has compiled already, without C, and ignores the reader's settings for other projects,
// such as a go.work in a parent folder. Pages write logs to WORKSHOP_LOGS: in /tmp another user could have put a link
// of that name.
func (w workshop) terminal() []string {
	c := w.cluster()
	return []string{"KUBECONFIG=" + c.Kubeconfig(), "KUBECACHEDIR=" + c.KubectlCache(),
		"WORKSHOP_LOGS=" + c.PageLogs(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly -trimpath",
		"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH}
}

// otherProjects are the settings of Go for other projects, without which a terminal of the workshop works.
var otherProjects = []string{"GOBIN", "GOTOOLCHAIN"}

func isOfOtherProject(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return slices.Contains(otherProjects, name)
}

// exports returns the shell commands that make a terminal use the cluster.
func (w workshop) exports() string {
	var text strings.Builder
	for _, kv := range w.terminal() {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	fmt.Fprintf(&text, "unset %s\n", strings.Join(otherProjects, " "))
	return text.String() + fmt.Sprintf("export PATH='%s':\"$PATH\"\n", strings.ReplaceAll(w.bin(), "'", `'\''`))
}

func envCommand() *cobra.Command {
	return newCommand("env", `Print what to export: eval "$(scripts/workshop env)"`, cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			if err := w.cluster().Elsewhere(); err != nil {
				fmt.Fprintln(os.Stderr, "note:", err)
			} else if err := w.cluster().Started(); err != nil {
				fmt.Fprintln(os.Stderr, "note:", err)
			}
			fmt.Print(w.exports())
			return nil
		})
}

func shellCommand() *cobra.Command {
	return newCommand("shell", "Open a shell that uses the local cluster", cobra.NoArgs,
		func(_ *cobra.Command, w workshop, _ []string) error {
			c := w.cluster()
			if err := c.Elsewhere(); err != nil {
				return err
			}
			if err := c.Started(); err != nil {
				return err
			}
			if running, all := c.Running(); running < all {
				return fmt.Errorf("%d of %d components of the local cluster run: `make up` repairs it", running, all)
			}
			shell := os.Getenv("SHELL")
			if shell == "" {
				shell = "bash"
			}
			fmt.Println("kubectl in this shell talks to the local cluster; `exit` leaves it.")
			cmd := exec.Command(shell) // not bound to the context: the shell handles Ctrl-C
			cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
			cmd.Env = append(w.terminal(), "PATH="+w.bin()+":"+os.Getenv("PATH"))
			cmd.Env = append(slices.DeleteFunc(os.Environ(), isOfOtherProject), cmd.Env...)
			var left *exec.ExitError // a shell returns the code of its last command, which is not our error
			if err := cmd.Run(); err != nil && !errors.As(err, &left) {
				return err
			}
			return nil
		})
}

func userCommand() *cobra.Command {
	var groups []string
	cmd := newCommand("user NAME",
		"Make a user with a client certificate, print the path of its kubeconfig", cobra.ExactArgs(1),
		func(cmd *cobra.Command, w workshop, args []string) error {
			path, err := w.cluster().AddUser(cmd.Context(), args[0], groups...)
			if err != nil {
				return err
			}
			fmt.Println(path)
			return nil
		})
	cmd.Flags().StringArrayVar(&groups, "group", nil, "a group that the user is in; repeatable")
	return cmd
}
