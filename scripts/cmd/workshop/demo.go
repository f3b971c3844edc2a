package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/process"
)

// demoPage is the page on which a chapter shows its finished operator at work.
const demoPage = "cmd/myweb-operator/README.md"

func demoCommand() *cobra.Command {
	var pause bool
	cmd := newCommand("demo CHAPTER",
		"Bring the cluster up, play a chapter's page, say where to go next", cobra.ExactArgs(1),
		func(cmd *cobra.Command, w workshop, args []string) error {
			start := time.Now()
			if err := w.playDemo(cmd, args[0], pause); err != nil {
				return err
			}
			fmt.Printf(demoEnd, time.Since(start).Seconds())
			return nil
		})
	cmd.Flags().BoolVar(&pause, "pause", false, pauseUsage)
	return cmd
}

const demoEnd = `
That was an operator, in %.0f s, on a cluster that runs on your machine without Docker.

Where to go next
  make open         the pages, terminals, exercises and the loop of an operator, in your browser
  make shell        a shell whose kubectl talks to this cluster
  00-env/README.md  what the cluster is made of; then 01-crd, and so on
  make page CH=01   a chapter's page, played like this one
  make down         removes the cluster
`

// playDemo plays the page of the operator of a chapter that installs its CRD. The cluster gets the CRD before its
// controllers start: the garbage collector looks for new kinds every 30 s only, and the story ends with
// a deletion that should not have to wait for it. The story begins without a MyWeb of an interrupted demo, and with one
// operator.
func (w workshop) playDemo(cmd *cobra.Command, chapter string, pause bool) error {
	ctx, dir := cmd.Context(), filepath.Join(w.root, chapter)
	crds, err := filepath.Glob(filepath.Join(dir, "config", "crd", "*.yaml"))
	if err != nil {
		return err
	}
	if err := w.bringUp(ctx, crds...); err != nil {
		return err
	}
	release, err := lock.Acquire(ctx, filepath.Join(w.state, "demo.lock"), func(owner string) {
		fmt.Fprintf(os.Stderr, "another demo runs on this cluster (process %s): this one waits for its end. "+
			"Ctrl-C in the other terminal ends it.\n", owner)
	})
	if err != nil {
		return err
	}
	defer release()
	if err := w.noOperator(ctx); err != nil {
		return err
	}
	if err := w.removeSample(ctx, dir); err != nil {
		return err
	}
	return w.play(cmd, filepath.Join(dir, demoPage), "What happened", pause)
}

// removeSample removes the MyWeb of an interrupted demo, with its children. A finalizer of a program that has ended would
// keep the MyWeb forever.
func (w workshop) removeSample(ctx context.Context, dir string) error {
	const remove = `
if kubectl get -f config/samples/myweb.yaml >/dev/null 2>&1; then
  echo "A MyWeb of this name is left from before: it is removed first."
  if ! kubectl delete --timeout=2m -f config/samples/myweb.yaml; then
    left=$(kubectl get -f config/samples/myweb.yaml -o jsonpath='{.metadata.finalizers}')
    echo "The MyWeb still has these finalizers: $left"
    echo "Start the program that removes them, or remove the cluster: make down. Then repeat this command."
    exit 1
  fi
fi
kubectl wait --for=delete --timeout=10m -l app.kubernetes.io/instance=myweb configmap,deployment,service,pod >/dev/null`
	cmd := process.Command(ctx, cleanUp, "bash", "-ec", remove)
	cmd.Dir, cmd.Env = dir, w.pageEnv()
	return foreground(cmd, os.Stdout)
}

// noOperator returns an error that names the programs that work on MyWebs already: two operators would spoil the story.
func (w workshop) noOperator(ctx context.Context) error {
	open := map[loop.Client]int{} // watches
	err := w.eachRecord(ctx, requestFilter{}, false, func(r loop.Record) error {
		switch {
		case r.Verb != "watch" || r.Resource != "mywebs":
		case r.Open:
			open[r.By]++
		case r.IsEndOfWatch():
			open[r.By]--
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var names []string
	for by, n := range open {
		if n > 0 && isOperator(by) {
			names = append(names, fmt.Sprintf("%s (process %d)", output.Line(by.Name), by.PID))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return fmt.Errorf("another operator works on the MyWebs of this cluster: %s. End it, by Ctrl-C in its terminal; "+
		"then repeat this command", strings.Join(slices.Compact(names), ", "))
}

// isOperator reports whether a program that watched MyWebs still runs, and is neither a part of the cluster nor a
// program that only shows objects.
func isOperator(by loop.Client) bool {
	switch by.Name {
	case "kubectl", "kube-controller-manager", "workshop":
		return false
	}
	id, err := process.Of(by.PID)
	return err == nil && id.Executable == by.Executable
}
