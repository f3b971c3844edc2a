package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/webpage"
	"example.com/operator-workshop/scripts/lab/myweb/checks"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
	"example.com/operator-workshop/scripts/lab/report"
)

func compareCommand() *cobra.Command {
	var impls string
	cmd := &cobra.Command{Use: "compare", Short: "Examine and measure implementations side by side, and write a report",
		Args: cobra.NoArgs}
	implFlag(cmd, &impls)
	var fast bool
	cmd.Flags().BoolVar(&fast, "fast", false, "only the fast subset of the checks")
	var named bool
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if named = impls != ""; named {
			return nil
		}
		root, err := impl.Here()
		if err != nil {
			return err
		}
		names, err := impl.Compared(root)
		impls = strings.Join(names, ",")
		return err
	}
	cmd.RunE = opened(&impls, func(ctx context.Context, l *lab) error {
		r, failed, err := l.compare(ctx, fast)
		if err != nil {
			return err
		}
		r.Commands = []string{"make compare"}
		if named {
			r.Commands[0] += " IMPL=" + impls
		}
		if fast {
			r.Commands[0] += " FAST=1"
		}
		if err := write(r, "out"); err != nil {
			return err
		}
		if failed {
			return errFailed
		}
		return nil
	})
	return cmd
}

// onlyByNameLimit is the time limit for each half of the checks of an implementation that runs only by name.
const onlyByNameLimit = 15 * time.Minute

// compare runs the checks of all families, and then, on a machine without other work, counts requests. It reports whether
// an operator failed that must not fail.
func (l *lab) compare(ctx context.Context, fast bool) (r *report.Comparison, failed bool, err error) {
	r = &report.Comparison{Date: time.Now().UTC(), Commit: l.commit(ctx), Machine: machine(), Versions: l.versions()}
	fmt.Println("== behaviours, crash points, faults")
	done := map[string]int{}
	halves := []part{{checks.Behaviours(), true}, {checks.Faults(), false}}
	opts := options{fast: fast, rounds: 1, limit: onlyByNameLimit}
	outcomes, err := l.run(ctx, &opts, halves, func(i implementation, o outcome.Result) {
		if done[i.Name]++; o.Verdict == outcome.Failed && o.Accepted == "" && i.MustPass() { // they fail many; see the report
			fmt.Printf("  of %s:\n", i.Name)
			o.Print(os.Stdout, true)
		}
		if done[i.Name]%20 == 0 {
			fmt.Printf("  %s: %d checks after %d s\n", i.Name, done[i.Name], int(time.Since(r.Date).Seconds()))
		}
	})
	if err != nil {
		return nil, false, err
	}
	for _, i := range l.impls {
		fmt.Printf("-- %s: %s\n", i.Name, tally(outcomes[i.Name]))
		failed = failed || i.MustPass() && suite.Unexpected(outcomes[i.Name]) > 0
	}
	fmt.Println("== numbers")
	counts, err := l.run(ctx, &opts, []part{{checks.Requests(), false}}, func(implementation, outcome.Result) {})
	if err != nil {
		return nil, false, err
	}
	r.Notes, r.Took = opts.notes, time.Since(r.Date)
	for _, i := range l.impls {
		static, err := report.StaticOf(ctx, i)
		if err != nil {
			return nil, false, err
		}
		all := report.Of(i, slices.Concat(outcomes[i.Name], counts[i.Name]), r.Took)
		r.Impls = append(r.Impls, report.Implementation{Name: i.Name, Title: i.Title, Report: all, Static: static})
	}
	return r, failed, nil
}

// write writes the comparison into a folder, and the report on each implementation into a folder below.
func write(r *report.Comparison, dir string) (err error) {
	for _, i := range r.Impls {
		_, e := i.Report.Write(filepath.Join(dir, i.Name))
		err = errors.Join(err, e)
	}
	if err != nil {
		return err
	}
	page := r.Markdown()
	err = errors.Join(os.WriteFile(filepath.Join(dir, "compare.md"), []byte(page), 0o644),
		webpage.Write(filepath.Join(dir, "compare.html"), report.Title, page))
	for name, value := range map[string]any{"compare.json": r, "ways.json": r.Ways()} {
		data, e := json.MarshalIndent(value, "", "  ")
		err = errors.Join(err, e, os.WriteFile(filepath.Join(dir, name), append(data, '\n'), 0o644))
	}
	if err != nil {
		return err
	}
	fmt.Printf("\nIn %s: compare.html to look at, compare.md to read, compare.json for programs, and a folder with the evidence "+
		"of each operator (%d min).\n", dir,
		int(r.Took.Minutes()+0.5))
	return nil
}

// commit is the commit of the checkout.
func (l *lab) commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "-C", l.root, "describe", "--always", "--abbrev=8", "--dirty=+changes",
		"--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func machine() []string {
	all := []string{fmt.Sprintf("%d cores", runtime.NumCPU())}
	if m, err := mem.VirtualMemory(); err == nil {
		all = append(all, fmt.Sprintf("%d GB", (m.Total+1<<29)>>30))
	}
	return append(all, runtime.GOOS+"/"+runtime.GOARCH)
}

// versions are the versions that affect the numbers: of Go, and of the pinned control plane.
func (l *lab) versions() []string {
	all := []string{strings.Replace(runtime.Version(), "go", "Go ", 1)}
	data, err := os.ReadFile(filepath.Join(l.root, "scripts", "versions.yaml"))
	var pinned struct{ Modules map[string]string }
	if err = errors.Join(err, yaml.Unmarshal(data, &pinned)); err != nil {
		return all
	}
	for name, module := range map[string]string{"Kubernetes": "k8s.io/kubernetes", "etcd": "go.etcd.io/etcd/server/v3",
		"kwok": "sigs.k8s.io/kwok", "controller-runtime": "sigs.k8s.io/controller-runtime"} {
		all = append(all, name+" "+strings.TrimPrefix(pinned.Modules[module], "v"))
	}
	slices.Sort(all)
	return all
}
