package exercise

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/shlex"
)

// group is the API group of the samples. A reader's CRD gets another group during a run, so that it does not replace
// the CRD that the lab's checks need.
const group = "operator.k8s-summit.org"

// runs counts the runs: the CRD of the run before may still be in deletion.
var runs atomic.Int32

// crdRun is one run of the CRD judge.
type crdRun struct {
	Judge
	e          Exercise
	kubeconfig string
	scratch    string
	own        string // the group during the run
}

// CRD installs the manifest at path, and tries objects on it: one verdict each for accepts, refuses and shows.
func (j Judge) CRD(ctx context.Context, e Exercise, path, kubeconfig string) (all []Result, err error) {
	scratch, err := os.MkdirTemp("", "exercise-")
	if err != nil {
		return nil, ways(err)
	}
	defer os.RemoveAll(scratch)
	t := &crdRun{Judge: j, e: e, kubeconfig: kubeconfig, scratch: scratch, own: fmt.Sprintf("x%d-%d.%s", os.Getpid(),
		runs.Add(1), group)}
	crd, err := t.renamed(path, "crd.yaml")
	if err != nil {
		return nil, err
	}
	installed := Result{ID: e.ID + " install", Title: "the API server takes the CRD", Verdict: "passed"}
	out, err := t.kubectl(ctx, "create", "-f", crd)
	defer func() {
		_, _ = t.kubectl(context.WithoutCancel(ctx), "delete", "--ignore-not-found", "--wait=false", "-f", crd)
	}()
	if err == nil {
		out, err = t.kubectl(ctx, "wait", "--for=condition=Established", "--timeout=2m", "-f", crd)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil && unreachable.MatchString(out) {
		return nil, fmt.Errorf("the control plane went away: %s\nRun the same command again: it is started again", out)
	}
	if err != nil {
		installed.Verdict, installed.What = "failed", out
		return []Result{installed}, nil
	}
	all = append(all, installed)
	for _, part := range []struct {
		has   bool
		judge func(context.Context) (Result, error)
	}{{len(e.CRD.Accepts) > 0, t.accepts}, {len(e.CRD.Refuses) > 0, t.refuses}, {len(e.CRD.Shows) > 0, t.shows}} {
		if !part.has {
			continue
		}
		begin := time.Now()
		v, err := part.judge(ctx)
		if err != nil || ctx.Err() != nil {
			return all, cmp.Or(ctx.Err(), err)
		}
		v.Took = time.Since(begin)
		all = append(all, v)
	}
	return all, nil
}

var unreachable = regexp.MustCompile(`connection refused|was refused|no such host|i/o timeout`)

// renamed copies a manifest into the scratch folder, with the group of the run.
func (t *crdRun) renamed(path, as string) (string, error) {
	data, err := readFile(path, path)
	if err != nil {
		return "", err
	}
	to := filepath.Join(t.scratch, as)
	return to, write(to, []byte(strings.ReplaceAll(string(data), group, t.own)))
}

// kubectl returns kubectl's output, with the group of the samples in place of the run's group.
func (t *crdRun) kubectl(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", t.kubeconfig, "--cache-dir", filepath.Join(t.scratch, "cache")}, args...)
	out, err := t.command(ctx, t.scratch, filepath.Join(t.Bin, "kubectl"), args...).CombinedOutput()
	text := strings.ReplaceAll(string(out), t.own, group)
	return strings.TrimSpace(strings.ReplaceAll(text, t.scratch+"/", "")), err
}

// manifests copies files, or the files of folders, and returns them by the name of the copy. Without a path it returns
// none.
func (t *crdRun) manifests(path string) (files []string, err error) {
	if path == "" {
		return nil, nil
	}
	full := filepath.Join(t.Root, t.e.Chapter, path)
	found := []string{full}
	if info, err := os.Stat(full); err != nil {
		return nil, err
	} else if info.IsDir() {
		if found, err = filepath.Glob(filepath.Join(full, "*.yaml")); err != nil {
			return nil, err
		}
	}
	for _, file := range found {
		copied, err := t.renamed(file, filepath.Base(file))
		if err != nil {
			return nil, err
		}
		files = append(files, copied)
	}
	return files, nil
}

// try sends each manifest to the API server as a dry run: nothing is stored. It returns the refusals by file.
func (t *crdRun) try(ctx context.Context, files []string) map[string]string {
	args := []string{"create", "--dry-run=server"}
	for _, file := range files {
		args = append(args, "-f", file)
	}
	out, _ := t.kubectl(ctx, args...)
	refused, about := map[string]string{}, ""
	for line := range strings.Lines(out) {
		for _, file := range files {
			if strings.Contains(line, filepath.Base(file)+`"`) {
				about = filepath.Base(file)
			}
		}
		if strings.HasSuffix(strings.TrimSpace(line), "created (server dry run)") {
			continue
		}
		refused[about] += line
	}
	switch why := refused[""]; { // kubectl names the file only when it reports several errors
	case why != "" && len(files) == 1:
		return map[string]string{filepath.Base(files[0]): why}
	case why != "":
		refused = map[string]string{}
		for _, file := range files {
			maps.Copy(refused, t.try(ctx, []string{file}))
		}
	}
	return refused
}

func (t *crdRun) accepts(ctx context.Context) (v Result, err error) {
	v = Result{ID: t.e.ID + " accepts", Title: "good objects are accepted", Verdict: "passed"}
	var files []string
	for _, path := range t.e.CRD.Accepts {
		some, err := t.manifests(path)
		if err != nil {
			return v, err
		}
		files = append(files, some...)
	}
	for name, why := range t.try(ctx, files) {
		v.Verdict, v.What = "failed", v.What+fmt.Sprintf("%s must be accepted, but: %s\n", name, strings.TrimSpace(why))
	}
	return v, nil
}

func (t *crdRun) refuses(ctx context.Context) (v Result, err error) {
	v = Result{ID: t.e.ID + " refuses", Title: "bad objects are refused, and the message says why", Verdict: "passed"}
	var files []string
	want := map[string]string{}
	for _, r := range t.e.CRD.Refuses {
		some, err := t.manifests(r.Manifest)
		if err != nil {
			return v, err
		}
		for _, file := range some {
			want[file] = r.Says
		}
		files = append(files, some...)
	}
	refused := t.try(ctx, files)
	for _, file := range files {
		name := filepath.Base(file)
		switch why, was := refused[name]; {
		case !was:
			v.Verdict, v.What = "failed", v.What+fmt.Sprintf("%s was accepted, but must be refused: %s\n", name, want[file])
		case !strings.Contains(why, want[file]):
			v.Verdict, v.What = "failed", v.What+fmt.Sprintf("%s was refused, but not for %q: %s\n", name, want[file],
				strings.TrimSpace(why))
		}
	}
	return v, nil
}

func (t *crdRun) shows(ctx context.Context) (v Result, err error) {
	v = Result{ID: t.e.ID + " shows", Title: "kubectl shows what it should", Verdict: "passed"}
	for _, s := range t.e.CRD.Shows {
		files, err := t.manifests(s.Manifest)
		if err != nil {
			return v, err
		}
		for _, file := range files {
			if out, err := t.kubectl(ctx, "apply", "-f", file); err != nil {
				v.Verdict, v.What = "failed", v.What+out+"\n"
			}
		}
		args, err := shlex.Split(s.Kubectl)
		if err != nil {
			return v, err
		}
		for n := range args {
			args[n] = strings.ReplaceAll(args[n], group, t.own)
		}
		want := regexp.MustCompile(s.Prints)
		if out, _ := t.kubectl(ctx, args...); !want.MatchString(out) {
			v.Verdict = "failed"
			v.What += fmt.Sprintf("kubectl %s\nprints   %s\nmust be  %s\n", s.Kubectl, out, s.Prints)
		}
	}
	return v, nil
}
