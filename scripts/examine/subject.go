// Package examine puts an operator through experiments. It gets a program, its CRDs, and a sample; it finds out all
// other facts about the operator.
package examine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/examine/strictyaml"
)

// A Subject holds the user's settings for an examination. Paths are relative to the working folder.
type Subject struct {
	// Program is the executable file, or the folder of a Go program. It finds the API server as in a pod; outside a pod,
	// by KUBECONFIG.
	Program string `json:"program,omitempty"`
	// CRD is a folder or a file with the CustomResourceDefinitions. Without it they are in Manifest.
	CRD string `json:"crd,omitempty"`
	// Manifest is a folder or a file with the operator's own manifests: its Deployment, roles, webhooks and CRDs.
	Manifest string `json:"manifest,omitempty"`
	// Sample is a file with one resource of these CRDs, and the objects that it needs.
	Sample string `json:"sample,omitempty"`
	// Ready is {jsonpath}=value or the name of a condition. Without it the condition Ready or Available counts; if
	// neither exists, the sample is ready when the operator stops writing.
	Ready string `json:"ready,omitempty"`
	// Args and Env are given to the program.
	Args []string `json:"args,omitempty"`
	Env  []string `json:"env,omitempty"`
	// Role are files with the operator's permissions. Without them it may do everything.
	Role []string `json:"role,omitempty"`
	// Namespace is the namespace that the operator watches. Without it each experiment has a separate namespace.
	Namespace string `json:"namespace,omitempty"`
	// Needs are manifests that must exist before the sample.
	Needs []string `json:"needs,omitempty"`
	// Webhooks are manifests of admission webhooks that the program serves. Without them the lab uses those beside
	// the CRDs; ENABLE_WEBHOOKS=false in Env means that the program serves none.
	Webhooks []string `json:"webhooks,omitempty"`
	// More are files with further samples of any kind of the CRDs. The lab creates them once, for the permissions.
	More []string `json:"more,omitempty"`
	// Outside runs the program outside a pod, as on a system that allows no pods.
	Outside bool `json:"outside,omitempty"`
	// Period is the operator's resync period, when it is known.
	Period metav1.Duration `json:"period,omitzero"`
	// Old is the program before Program, for the experiment upgrade. It has the same settings.
	Old string `json:"-"`
	// Baseline is a file with accepted findings.
	Baseline string `json:"baseline,omitempty"`
	// Out is the folder of the report.
	Out string `json:"out,omitempty"`
	// Fast leaves out slow experiments.
	Fast bool `json:"fast,omitempty"`
	// Time is what the experiments share; 0 means 9 minutes, or 85 seconds with Fast.
	Time metav1.Duration `json:"time,omitzero"`
	// FailOn are the experiments that must not fail in CI; "any" stands for all.
	FailOn []string `json:"fail_on,omitempty"`
}

// ReadSubject reads a file such as examine.yaml. Its paths are relative to its folder. In Args and Env, $FOLDER stands
// for this folder, so that a program can read a configuration file beside the settings.
func ReadSubject(file string) (Subject, error) {
	var s Subject
	if err := strictyaml.Read(file, &s); err != nil {
		return s, err
	}
	beside := func(path string) string {
		if path == "" || filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(filepath.Dir(file), path)
	}
	s.Program, s.CRD, s.Sample, s.Out = beside(s.Program), beside(s.CRD), beside(s.Sample), beside(s.Out)
	s.Baseline, s.Manifest = beside(s.Baseline), beside(s.Manifest)
	for _, list := range [][]string{s.Role, s.Needs, s.Webhooks, s.More} {
		for i := range list {
			list[i] = beside(list[i])
		}
	}
	folder, err := filepath.Abs(filepath.Dir(file))
	for _, list := range [][]string{s.Args, s.Env} {
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], "$FOLDER", folder)
		}
	}
	return s, err
}

// Repository is the root of the git repository that has a path; empty when none has it.
func Repository(path string) string {
	dir, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// time is what the experiments share.
func (s Subject) time() time.Duration {
	switch {
	case s.Time.Duration > 0:
		return s.Time.Duration
	case s.Fast:
		return 85 * time.Second
	}
	return 9 * time.Minute
}

// A target is a subject whose files were read.
type target struct {
	Subject
	servedKind // of the sample
	crds       []*unstructured.Unstructured
	kinds      map[schema.GroupVersionKind]servedKind
	sample     *unstructured.Unstructured
	needs      []*unstructured.Unstructured
	more       []*unstructured.Unstructured
	old        string // the program before Program, empty when none was given

	workload *workload // of Manifest, nil without it

	conversions map[string]map[string]any // by CRD, the Service and the path of the webhook that converts its versions
}

// build compiles the programs that are folders, into a temporary folder that remove deletes.
func (t *target) build(ctx context.Context, progress func(format string, args ...any)) (remove func(), err error) {
	dir, err := os.MkdirTemp("", "examine-")
	if err != nil {
		return nil, err
	}
	for n, path := range []*string{&t.Program, &t.old} {
		if info, err := os.Stat(*path); err != nil || !info.IsDir() {
			continue
		}
		progress("compiling %s", *path)
		program := filepath.Join(dir, strconv.Itoa(n), nameOf(*path))
		cmd := process.Command(ctx, time.Minute, "go", "build", "-o", program, ".")
		cmd.Dir, cmd.Env = *path, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOTMPDIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s cannot be built: %w: it must be an executable file, or the folder "+
				"of a Go program\n%s", *path, err, out), os.RemoveAll(dir))
		}
		*path = program
	}
	return func() { _ = os.RemoveAll(dir) }, nil
}

// nameOf is the name of a program in reports.
func nameOf(program string) string {
	if name := filepath.Base(program); name != "cmd" {
		return name
	}
	return filepath.Base(filepath.Dir(program))
}

// resolve reads the files. Every error is a sentence for the user: the error, its effect, and the fix.
func (s Subject) resolve() (*target, error) {
	t := &target{Subject: s}
	switch {
	case s.Program == "":
		return nil, errors.New("no operator was given: PROGRAM= is the path of its executable file (go build -o operator " +
			"./cmd)")
	case s.Sample == "":
		return nil, errors.New("no sample was given: SAMPLE= is a file with one custom resource, often below config/samples; of " +
			"an operator without a CRD, with one object of a built-in kind that the operator acts on")
	}
	path, err := filepath.Abs(s.Program)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("PROGRAM=%s cannot be read: %w. Build it first (go build -o operator ./cmd)", s.Program, err)
	}
	if !info.IsDir() && info.Mode()&0o111 == 0 {
		return nil, fmt.Errorf("PROGRAM=%s is not an executable file: give the program that go build makes, not its source",
			s.Program)
	}
	t.Program = path
	if s.Old != "" {
		if t.old, err = filepath.Abs(s.Old); err == nil {
			_, err = os.Stat(t.old)
		}
		if err != nil {
			return nil, fmt.Errorf("AGAINST=%s cannot be read: %w", s.Old, err)
		}
	}
	if err := t.readManifest(); err != nil {
		return nil, err
	}
	if err := t.readCRDs(); err != nil {
		return nil, err
	}
	return t, t.readSample()
}

func (t *target) readSample() error {
	all, err := objectsOf("SAMPLE", []string{t.Sample})
	if err != nil {
		return err
	}
	for _, u := range all {
		version, ours := t.kinds[u.GroupVersionKind()]
		switch {
		case !ours:
			t.needs = append(t.needs, u)
		case t.sample != nil:
			return fmt.Errorf("SAMPLE=%s has two custom resources, %s %s and %s %s, and an examination is of one: move the "+
				"other to a separate file, and name it in NEEDS= if the first needs "+
				"it", t.Sample, t.sample.GetKind(), t.sample.GetName(), u.GetKind(), u.GetName())
		default:
			t.sample, t.servedKind = u, version
			if spec, ok := u.Object["spec"]; ok && spec == nil {
				u.Object["spec"] = map[string]any{} // a scaffold's spec has only a comment
			}
		}
	}
	if t.sample == nil {
		if t.sample, err = t.chooseBuiltIn(all); err != nil {
			return err
		}
		t.builtIn = true
		t.needs = slices.DeleteFunc(t.needs, func(u *unstructured.Unstructured) bool { return u == t.sample })
	}
	if t.more, err = objectsOf("SAMPLES", t.More); err != nil {
		return err
	}
	more, err := objectsOf("NEEDS", t.Needs)
	more = append(t.needs, more...)
	t.needs = nil
	for _, u := range more {
		if u.GetKind() != "CustomResourceDefinition" {
			t.needs = append(t.needs, u)
			continue
		}
		unstructured.RemoveNestedField(u.Object, "spec", "conversion") // nothing serves it here
		t.crds = append(t.crds, u)
	}
	return err
}

// objectsOf are the objects in the files of a setting.
func objectsOf(setting string, files []string) (all []*unstructured.Unstructured, err error) {
	for _, file := range files {
		more, err := fixture.Objects(file)
		if err != nil {
			return nil, fmt.Errorf("%s=%s cannot be read: %w", setting, file, err)
		}
		all = append(all, more...)
	}
	return all, nil
}
