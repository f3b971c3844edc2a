package examine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/clock"
	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
)

// upgrade has the old program create the objects, and starts the new program over them.
func upgrade(r *run) error {
	return r.check("the new program takes over the objects of the old one", func(t *trial) (Finding, error) {
		defer func() {
			if t.operator.program != t.target.Program {
				t.operator.Kill()
				t.operator.program = t.target.Program
			}
		}()
		if err := t.runProgram(t.target.old); err != nil {
			return skipped("the old program: %v", err), nil
		}
		if err := t.rest(); err != nil {
			return skipped("with the old program: %v", err), nil
		}
		before, err := t.podTemplates()
		if err != nil {
			return Finding{}, err
		}
		mark := t.Mark()
		if err := t.runProgram(t.target.Program); err != nil {
			return Finding{}, err
		}
		if err := fixture.Pause(t.Ctx, 2*time.Second); err != nil {
			return Finding{}, err
		}
		if err := t.await(40 * time.Second); err != nil {
			return Finding{}, err
		}
		after, err := t.podTemplates()
		if err != nil {
			return Finding{}, err
		}
		if err := t.asUndisturbed(); err != nil {
			return Finding{}, err
		}
		writes := t.Writes(mark)
		var rolled []string
		for _, c := range t.children {
			if name := c.String(); before[name] != after[name] {
				rolled = append(rolled, name)
			}
		}
		if len(rolled) > 0 {
			return failed("the upgrade restarts all pods: the pod template of %s changes", strings.Join(rolled, ", ")).
				with(lines(writes)...), nil
		}
		return passed("%d writes over the objects of the old program, and no pod restarts", len(writes)).
			with(lines(writes)...), nil
	})
}

// runProgram ends the operator, and starts a program with its permissions.
func (t *trial) runProgram(path string) error {
	t.operator.Kill()
	t.operator.program = path
	return t.operator.start(t.Ctx)
}

// podTemplates are the pod templates of the children, by child, as text.
func (t *trial) podTemplates() (map[string]string, error) {
	all := map[string]string{}
	for _, c := range t.children {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		template, _, _ := unstructured.NestedMap(u.Object, "spec", "template")
		all[c.String()] = text(template)
	}
	return all, nil
}

// copies is how many samples the experiment many creates.
const copies = 100

// many creates copies of the sample, and compares the cost of each with the cost of one.
func many(r *run) error {
	for _, c := range r.children {
		if r.isGiven(c) {
			r.add(fmt.Sprintf("%d samples are served", copies), skipped("the copies would share %s, which the sample was given "+
				"and the operator changes", c))
			return nil
		}
	}
	var cost Finding
	err := r.check(fmt.Sprintf("%d samples are served", copies), func(t *trial) (Finding, error) {
		mark, begin := t.Mark(), time.Now()
		unchanged := t.clock.Unchanged()
		defer t.removeCopies()
		for n := range copies {
			one := t.target.sample.DeepCopy()
			one.SetName(copyName(t.target.sample, n))
			one = t.renamedIn(one)
			if err := t.putAdmitted(one); err != nil {
				return skipped("copies of the sample cannot exist: %v", err), nil
			}
		}
		last := copyName(t.target.sample, copies-1)
		var err error
		isIdle := t.Eventually(t.until-t.clock.Now()-afterServed-10*time.Second, func() error {
			if last, err = t.notServed(mark, last); err == nil || t.isIdle(unchanged(len(t.Writes(mark)))) {
				return nil
			}
			return err
		}) == nil
		took := time.Since(begin)
		if refused := beingRefused(t.Writes(mark)); err != nil && refused != nil {
			return skipped("copies of the sample cannot be served at the same time: %v", refused), nil
		}
		if full := t.podsWithoutNode(); err != nil && full != "" {
			return skipped("the pods of the copies do not fit on the simulated nodes: %s", full), nil
		}
		if err != nil && !isIdle {
			return unfinished(fmt.Errorf("%w, and the work was still going on: %w", errOver, err)), nil
		}
		if err != nil {
			return failed("after %v, %v, and the operator has written nothing for %v", took.Round(time.Second), err, idleFor), nil
		}
		cost = t.costOfEach(mark)
		return passed("the last one, %s, after %.1f s", last, took.Seconds()), nil
	})
	if err == nil && r.lastVerdict() == Passed {
		r.add(fmt.Sprintf("each of %d samples costs no more than one", copies), cost)
	}
	return err
}

// idleFor is the time without a write after which the lab assumes that the operator has stopped its work.
const idleFor = 20 * time.Second

// afterServed is how long the operator may write after all copies are served.
const afterServed = 30 * time.Second

// isIdle reports whether the operator has stopped its work, although the cluster has started all pods. A busy cluster
// proves nothing, and neither does an operator that needs more time than the lab has.
func (t *trial) isIdle(withoutWrite time.Duration) bool {
	return withoutWrite > idleFor && t.podsRun() == nil
}

// costOfEach compares the cost of each copy, since a mark, with the cost of one sample.
func (t *trial) costOfEach(mark int) Finding {
	if err := t.quietWithin(afterServed, 2*time.Second); err != nil {
		return failed("in the 30 s after all were served, %v", err).with(lines(t.Writes(mark))...)
	}
	each, alone := float64(len(t.Writes(mark)))/copies, float64(len(t.keys[0]))
	resident, _ := fixture.RSS(t.operator.Process().PID()) // 0 when it is unknown
	words := fmt.Sprintf("%.1f requests each, of them %.1f writes, and %.0f writes for a single sample; the process uses "+
		"%d MiB", float64(t.fixture.Ledger.Count(t.Mine(mark)))/copies, each, alone, resident>>20)
	if each > 2*alone+1 {
		return failed("each of many samples costs more than a single sample: %s", words)
	}
	return passed("%s", words)
}

// podsWithoutNode is the reason of the scheduler why a pod gets no node; empty when each pod has one.
func (t *trial) podsWithoutNode() string {
	pods, err := t.fixture.Kube.CoreV1().Pods(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return ""
	}
	for _, p := range pods.Items {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
				return c.Message
			}
		}
	}
	return ""
}

func copyName(sample *unstructured.Unstructured, n int) string {
	return fmt.Sprintf("%s-%d", sample.GetName(), n)
}

// nameFor is the name that a child has for a copy of the sample.
func (t *trial) nameFor(c child, sampleCopy string) string {
	own := t.target.sample.GetName()
	if strings.Contains(c.Name, own) {
		return strings.Replace(c.Name, own, sampleCopy, 1)
	}
	return c.Name + strings.TrimPrefix(sampleCopy, own)
}

// renamedIn replaces the names of children in a copy of the sample: copies with the same name would share that child.
func (t *trial) renamedIn(one *unstructured.Unstructured) *unstructured.Unstructured {
	for name, value := range one.Object {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, name) {
			one.Object[name] = t.renamed(value, one.GetName())
		}
	}
	annotations := one.GetAnnotations()
	for key, value := range annotations {
		annotations[key], _ = t.renamed(value, one.GetName()).(string)
	}
	one.SetAnnotations(annotations)
	return one
}

// renamed is a value of a copy, with the name of the copy's child. A value may name the child by namespace/name.
func (t *trial) renamed(value any, sampleCopy string) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = t.renamed(inner, sampleCopy)
		}
	case []any:
		for i, inner := range v {
			v[i] = t.renamed(inner, sampleCopy)
		}
	case string:
		for _, c := range t.owns() {
			in := cmp.Or(c.Namespace, t.Namespace) + "/"
			if strings.TrimPrefix(v, in) == c.Name {
				return strings.TrimSuffix(v, c.Name) + t.nameFor(c, sampleCopy)
			}
		}
	}
	return value
}

// copied are the copies that exist. A namespace has further ConfigMaps, such as that of the cluster in each namespace.
func (t *trial) copied() ([]unstructured.Unstructured, error) {
	var names []string
	for n := range copies {
		names = append(names, copyName(t.target.sample, n))
	}
	list, err := t.samples().List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool {
		return !slices.Contains(names, u.GetName())
	}), nil
}

// notServed returns the first copy that is not served, and an error as long as there is one; then it returns the one
// before. A copy is served when it reports that it is ready, and the operator has changed an object for it. All are served
// when no child is missing.
func (t *trial) notServed(mark int, before string) (string, error) {
	all, err := t.copied()
	if err != nil {
		return before, err
	}
	changed := map[string]bool{}
	for _, e := range t.Changes(mark) {
		changed[e.Name] = true
	}
	var waiting []string
	for _, u := range all {
		name := u.GetName()
		touched := changed[name] || slices.ContainsFunc(t.children, func(c child) bool {
			return changed[t.nameFor(c, name)]
		})
		if isReady(t.target.Ready, &u) != nil || !touched {
			waiting = append(waiting, name)
		}
	}
	if len(waiting) == 0 {
		return before, t.missingOf(t.Writes(mark))
	}
	return waiting[0], fmt.Errorf("%d of %d are not served, such as %s", len(waiting), copies, waiting[0])
}

// missingOf returns an error when the operator has created fewer objects of a resource than the copies have children. A
// child without the name of its sample may be the same for all samples, and does not count.
func (r *run) missingOf(writes []ledger.Entry) error {
	want, made := map[string]int{}, map[string]map[objectKey]bool{}
	for _, c := range r.owns() {
		if strings.Contains(c.Name, r.target.sample.GetName()) {
			want[ledgerName(c)] += copies
			made[ledgerName(c)] = map[objectKey]bool{}
		}
	}
	for _, e := range created(writes) {
		if objects := made[e.FullResource()]; objects != nil {
			objects[objectKey{e.FullResource(), e.Namespace, e.Name}] = true
		}
	}
	for _, what := range slices.Sorted(maps.Keys(want)) {
		if n := len(made[what]); n < want[what] {
			return fmt.Errorf("%d of %d %s exist", n, want[what], what)
		}
	}
	return nil
}

// removeCopies deletes the copies where they are not in a namespace that goes with the trial.
func (t *trial) removeCopies() {
	if t.target.Namespace == "" && !t.target.cluster {
		return
	}
	ctx, cancel := t.clock.Within(context.WithoutCancel(t.Ctx), 20*time.Second, clock.ErrLate)
	defer cancel()
	one := &trial{run: t.run, Trial: t.During(ctx)}
	for n := range copies {
		_ = t.samples().Delete(ctx, copyName(t.target.sample, n), metav1.DeleteOptions{})
	}
	_ = one.Eventually(20*time.Second, func() error {
		all, err := one.copied()
		if err == nil && len(all) > 0 {
			err = fmt.Errorf("%d copies are left", len(all))
		}
		return err
	})
}
