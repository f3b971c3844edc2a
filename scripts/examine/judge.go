package examine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/specification"
	"example.com/operator-workshop/scripts/examine/state"
)

// A judged is a run by a specification.
type judged struct {
	*run
	spec specification.Specification
}

// did is what the lab did before an experiment of a specification judged the operator.
var did = map[string]string{
	"crd":          "The lab sent samples to the API server.",
	"children":     "A user created a sample.",
	"ready":        "A user created a sample, and the operator was restarted.",
	"drift":        "A user added a label to each child, and the operator was restarted.",
	"spec":         "A user changed a field of spec.",
	"condition":    "A user created a sample.",
	"deletion":     "A user deleted a sample.",
	"restart":      "The operator was restarted while all objects were as they should be.",
	"steady-state": "Nothing happened for some seconds.",
}

// didOf is what the lab did before a finding.
func didOf(f outcome.Result) string {
	if what, ok := strings.CutPrefix(f.Title, "a deleted "); ok {
		return fmt.Sprintf("A user deleted %s.", strings.TrimSuffix(what, " comes back"))
	}
	if what, ok := strings.CutPrefix(f.Title, "changed fields of "); ok {
		return fmt.Sprintf("A user changed fields of %s, one after the other.", strings.TrimSuffix(what, " are restored"))
	}
	return did[f.Experiment]
}

// errFailed ends the experiments after a failure: later failures often follow from the first.
var errFailed = errors.New("an experiment failed")

// Judge runs the experiments of a specification on a program, in the order in which an author builds an operator. It
// ends with the first experiment that fails. It uses a fixture that others may use later. The CRD of s is a folder.
func Judge(ctx context.Context, w *fixture.Fixture, s Subject, spec specification.Specification,
	found func(outcome.Result)) (err error) {
	s.Fast = true
	t := &target{Subject: s, sample: &unstructured.Unstructured{Object: spec.Sample()}}
	j := &judged{newRun(ctx, t, Options{Progress: func(string, ...any) {}}), spec}
	j.fixture, j.prefix, j.specified = w, "examine-"+rand.String(5)+"-", true
	j.end = s.time()
	j.found = func(f outcome.Result) error {
		if f.Verdict == Skipped && (f.Left == 0 || strings.HasPrefix(f.Title, notTried)) {
			return nil // it does not apply to this operator
		}
		f.ID, f.Namespace, f.End = f.Experiment, fmt.Sprintf("%s%d", j.prefix, j.trials.Load()), w.Ledger.Newest()
		if f.Verdict == Passed {
			f.What, f.Evidence = "", nil
			found(f)
			return nil
		}
		f.What, f.Did = fmt.Sprintf("expected that %s; but %s", f.Title, f.What), didOf(f)
		found(f)
		return errFailed
	}
	watching, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		err = errors.Join(err, j.removeAll(context.WithoutCancel(ctx)))
	}()
	go j.clock.Run(watching)
	if err := j.secrets.Watch(watching, w.Kube); err != nil {
		return err
	}
	err = j.steps(watching)
	if errors.Is(err, errFailed) {
		return nil
	}
	return j.withoutSecrets(err)
}

// steps runs the experiments.
func (j *judged) steps(watching context.Context) error {
	if err := j.crd(); err != nil {
		return err
	}
	j.current = experiment{id: "children"}
	if err := j.prepare(watching); j.ctx.Err() != nil {
		return j.ctx.Err()
	} else if err != nil {
		return j.fail("the operator starts and watches the kind", err)
	}
	if err := j.check("a sample owns its "+strings.Join(j.spec.Children, ", "), j.ownsAll); err != nil {
		return err
	}
	j.current = experiment{id: "ready"}
	begin := time.Now()
	if err := j.undisturbed(); j.ctx.Err() != nil {
		return j.ctx.Err()
	} else if err != nil {
		return j.fail(staysReady, err)
	}
	ready := passed("it does, also after a restart of the operator")
	ready.Took = time.Since(begin)
	j.add(staysReady, ready)
	rest := []experiment{experimentOf("drift"), {id: "spec", share: 4, run: j.fieldsReach},
		{id: "condition", share: 1, run: j.conditions}, experimentOf("deletion"), experimentOf("restart"),
		experimentOf("steady-state")}
	for n, e := range rest {
		now := j.clock.Now()
		j.current, j.deadline = e, now+shareOf(rest[n:], j.end-now, 1)
		if err := errors.Join(e.run(j.run), j.stopped); err != nil {
			return err
		}
	}
	return nil
}

const staysReady = "a sample gets ready, and stays ready"

// fail records a failure, and ends the experiments.
func (j *judged) fail(title string, err error) error {
	j.add(title, failedBy(err))
	return j.stopped
}

// crd installs the CRD, and tries samples on the API server: nothing is stored.
func (j *judged) crd() error {
	j.current = experiment{id: "crd"}
	kind := schema.GroupVersionKind{Group: j.spec.Group, Version: specification.Version, Kind: j.spec.Kind}
	title := fmt.Sprintf("the API server serves %s %s", kind.GroupVersion(), kind.Kind)
	err := j.target.readCRDs()
	version, served := j.target.kinds[kind]
	switch {
	case len(j.target.kinds) == 0:
		return j.fail(title, fmt.Errorf("the types make no CRD: a type with the marker +kubebuilder:object:root=true and "+
			"the fields metav1.TypeMeta and metav1.ObjectMeta makes one: %w", err))
	case !served:
		return j.fail(title, fmt.Errorf("the CRD is for %s", j.target.kindNames()))
	}
	j.target.servedKind = version
	if err := j.install(); err != nil {
		return j.fail(title, err)
	}
	j.add(title, passed("it does"))
	err = j.judge("a sample with each field is accepted", func() (Finding, error) {
		_, err := j.dryRun(func(map[string]any) {})
		return passed("it is"), err
	})
	for _, f := range j.spec.Fields {
		if err == nil {
			err = j.judge(fmt.Sprintf("spec.%s has its type, default and limits", f.Name),
				func() (Finding, error) { return j.schemaOf(f) })
		}
	}
	return err
}

// install creates the CRD. A CRD of an earlier run that is being deleted goes first.
func (j *judged) install() error {
	var err error
	for _, crd := range j.target.crds {
		_ = j.clock.Eventually(j.ctx, 20*time.Second, func() error {
			_, err = j.crds().Create(j.ctx, crd, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return errors.Join(err, j.uninstall(j.ctx))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("it refuses the CRD: %s", apiMessage(err))
		}
	}
	return j.fixture.AwaitServed(j.ctx, j.target.gvr)
}

// dryRun sends a sample whose spec was changed to the API server, which stores nothing, and returns the answer's spec.
func (j *judged) dryRun(change func(spec map[string]any)) (map[string]any, error) {
	u := &unstructured.Unstructured{Object: j.spec.Sample()}
	spec := u.Object["spec"].(map[string]any)
	change(spec)
	now, err := j.fixture.Dynamic.Resource(j.target.gvr).Namespace(metav1.NamespaceDefault).Create(j.ctx, u,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return nil, errors.New(apiMessage(err))
	}
	answer, _, _ := unstructured.NestedMap(now.Object, "spec")
	return answer, nil
}

// schemaOf judges the default and the limits of a field.
func (j *judged) schemaOf(f specification.Field) (Finding, error) {
	answer, err := j.dryRun(func(spec map[string]any) { delete(spec, f.Name) })
	switch {
	case f.Default == nil && err == nil:
		return failed("a sample without it is accepted: it has no default, so it is required"), nil
	case f.Default != nil && err != nil:
		return failed("a sample without it is refused, although its default is %v: %v", f.Default, err), nil
	case f.Default != nil && fmt.Sprint(answer[f.Name]) != fmt.Sprint(f.Value()):
		return failed("in a sample without it the value is %v, not the default %v", answer[f.Name], f.Value()), nil
	}
	wrong := f.Wrong()
	for _, limit := range slices.Sorted(maps.Keys(wrong)) {
		value := wrong[limit]
		if _, err := j.dryRun(func(spec map[string]any) { spec[f.Name] = value }); err == nil {
			return failed("the API server accepts the value %v, although the specification has %s", value, limit), nil
		}
	}
	return passed("%d wrong values are refused", len(wrong)), nil
}

// ownsAll creates a sample, and waits until it owns an object of each kind of child.
func (j *judged) ownsAll(t *trial) (Finding, error) {
	const within = 10 * time.Second
	if err := t.create(); err != nil {
		return Finding{}, err
	}
	owner, err := t.sample()
	if err != nil {
		return Finding{}, err
	}
	var missing []string
	err = t.Eventually(within, func() error {
		owned, err := t.owned(t.Ctx, owner.GetUID())
		if err != nil {
			return err
		}
		if missing = j.without(owned); len(missing) > 0 {
			return fmt.Errorf("%v after its creation a sample owns no %s", within, strings.Join(missing, ", "))
		}
		return nil
	})
	if err == nil {
		return passed("it does"), nil
	}
	if p := t.operator.Process(); !p.Running() {
		return failed("the operator %v%s", p.Exit(), words(p)), nil
	}
	why := "the operator wrote nothing for it" + words(t.operator.Process())
	if writes := t.Writes(0); len(writes) > 0 {
		last := writes[len(writes)-1]
		why = "the operator's last write is " + last.String()
		if last.Code >= http.StatusBadRequest {
			why += words(t.operator.Process())
		}
	}
	for _, c := range t.childrenOf(t.Changes(0)) {
		if slices.ContainsFunc(missing, func(kind string) bool { return resourceOf(kind) == c.GVR }) {
			why = fmt.Sprintf("the operator wrote %s without an owner reference to the sample", c)
		}
	}
	return failed("%v: %s", err, why).with(lines(t.Writes(0))...), nil
}

// without are the specified children that are not among some objects.
func (j *judged) without(objects []child) (missing []string) {
	for _, kind := range j.spec.Children {
		if !slices.ContainsFunc(objects, func(c child) bool { return c.GVR == resourceOf(kind) }) {
			missing = append(missing, kind)
		}
	}
	return missing
}

// resourceOf is the resource of a kind of child.
func resourceOf(kind string) schema.GroupVersionResource {
	r := specification.ResourceOf(kind)
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name}
}

// fieldsReach changes each field of the specification, and undoes the change.
func (j *judged) fieldsReach(*run) error {
	for _, f := range j.spec.Fields {
		title := fmt.Sprintf("spec.%s reaches the %s", f.Name, strings.Join(f.Reaches, " and the "))
		if err := j.check(title, func(t *trial) (Finding, error) { return j.reaches(t, f) }); err != nil {
			return err
		}
	}
	return nil
}

func (j *judged) reaches(t *trial, f specification.Field) (Finding, error) {
	if err := t.idle(); err != nil {
		return Finding{}, err
	}
	first, err := t.observeWithout(restless)
	if err != nil {
		return Finding{}, err
	}
	v := variation{path: []string{"spec", f.Name}, value: f.Other(), was: f.Value()}
	mark := t.Mark()
	if _, err := t.patchSpec(v, v.value); err != nil {
		return Finding{}, err
	}
	err = t.Eventually(t.patience(), func() error {
		now, err := t.observeWithout(restless)
		if err != nil {
			return err
		}
		return sameIn(f.Reaches, first, now)
	})
	if err != nil {
		return failed("%v after %v, %v", t.patience(), v, err).with(lines(t.Writes(mark))...), nil
	}
	if _, err := t.patchSpec(v, v.was); err != nil {
		return Finding{}, err
	}
	if err := t.Eventually(t.patience(), t.asBefore); err != nil {
		return failed("after the change was undone, the objects are not those of before: %v", err).
			with(lines(t.Writes(mark))...), nil
	}
	return passed("and undoing the change restored the first state"), nil
}

// sameIn returns an error about the first kind whose objects are the same in two states.
func sameIn(kinds []string, before, after state.State) error {
	for _, kind := range kinds {
		of := resourceOf(kind).GroupResource().String() + "/"
		others := func(path, _ string) bool { return !strings.HasPrefix(path, of) }
		was, is := maps.Clone(before), maps.Clone(after)
		maps.DeleteFunc(was, others)
		maps.DeleteFunc(is, others)
		if maps.Equal(was, is) {
			return fmt.Errorf("the %s is unchanged", kind)
		}
	}
	return nil
}

// conditions waits until the sample has each condition of the specification.
func (j *judged) conditions(*run) error {
	for _, name := range j.spec.Conditions {
		err := j.check(fmt.Sprintf("the condition %s becomes True", name), func(t *trial) (Finding, error) {
			if err := t.serve(); err != nil {
				return Finding{}, err
			}
			return passed("it does"), t.Eventually(t.patience(), func() error {
				u, err := t.sample()
				if err != nil {
					return err
				}
				return isReady(name, u)
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *judged) crds() dynamic.NamespaceableResourceInterface {
	return j.fixture.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"})
}

// uninstall deletes the CRDs, and with them the samples: finalizers of samples are removed.
func (j *judged) uninstall(ctx context.Context) (err error) {
	for _, crd := range j.target.crds {
		if gone := j.crds().Delete(ctx, crd.GetName(), metav1.DeleteOptions{}); !apierrors.IsNotFound(gone) {
			err = errors.Join(err, gone)
		}
	}
	samples, listed := j.fixture.Dynamic.Resource(j.target.gvr).List(ctx, metav1.ListOptions{})
	if listed != nil {
		return err // the kind is not served any more
	}
	for _, u := range samples.Items {
		u.SetFinalizers(nil)
		_, _ = j.fixture.Dynamic.Resource(j.target.gvr).Namespace(u.GetNamespace()).Update(ctx, &u, metav1.UpdateOptions{})
	}
	return err
}

// removeAll ends the operator, and removes what the run installed.
func (j *judged) removeAll(ctx context.Context) error {
	if j.operator != nil {
		j.operator.Kill()
	}
	err := j.fixture.Kube.CoreV1().Namespaces().Delete(ctx, leaseNamespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return errors.Join(err, j.uninstall(ctx))
}
