package examine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// patience is how long a change of somebody else may stay.
func (r *run) patience() time.Duration {
	if r.target.Fast {
		return 3 * time.Second
	}
	return 6 * time.Second
}

// drift deletes and changes what the operator owns.
func drift(r *run) error {
	if len(r.owns()) == 0 {
		r.add("what it owns is restored", skipped("the operator writes no other object that is its own"))
		return nil
	}
	for _, c := range r.owns() {
		if err := r.check("a deleted "+c.String()+" comes back",
			func(t *trial) (Finding, error) { return t.deleteChild(c) }); err != nil {
			return err
		}
	}
	for _, c := range r.owns() {
		if err := r.check("changed fields of "+c.String()+" are restored",
			func(t *trial) (Finding, error) { return t.changeFields(c) }); err != nil {
			return err
		}
	}
	return r.check("what others add stays", (*trial).addLabels)
}

func (t *trial) deleteChild(c child) (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	u, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
	if err != nil {
		return Finding{}, err
	}
	mark, begin := t.fixture.Ledger.Mark(), time.Now()
	if err := t.at(c).Delete(t.ctx, c.Name, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	observe := func() (*unstructured.Unstructured, error) {
		now, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
		if err == nil && now.GetUID() == u.GetUID() {
			err = errOld
		}
		return now, err
	}
	_ = t.eventually(20*time.Second, func() error { // a namespace takes some seconds to go
		if now, err := observe(); errors.Is(err, errOld) && now.GetDeletionTimestamp() != nil {
			return err
		}
		return nil
	})
	err = t.eventually(t.patience(), func() error { _, err := observe(); return err })
	if err != nil {
		return failed("%v after the deletion: %v", t.patience(), err).with(lines(t.writes(mark))...), t.ctx.Err()
	}
	took := time.Since(begin)
	if err := t.eventually(20*time.Second, t.asUndisturbed); err != nil {
		return Finding{}, err
	}
	return passed("back after %.1f s, at the cost of %d writes", took.Seconds(), len(t.writes(mark))), nil
}

var errOld = errors.New("it is still the old one")

// perSample is how many fields are changed in the life of one sample: an operator may limit how often it restores
// what somebody changes, so that two do not write against each other without end.
const perSample = 3

// changeFields changes the fields that the operator sets, some of them in each of several samples.
func (t *trial) changeFields(c child) (Finding, error) {
	fields, at := t.fields[c], 6
	if t.target.Fast {
		fields = spread(fields, 4*perSample)
	}
	if t.target.serial() {
		at = 1
	}
	var mu sync.Mutex
	var all changes
	slots, running := make(chan struct{}, at), sync.WaitGroup{}
	tried := 0
	for chunk := range slices.Chunk(fields, perSample) {
		if t.ctx.Err() != nil {
			break // a slow operator: what is known by now counts
		}
		tried += len(chunk)
		chunk = lastMetadata(chunk)
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			some, err := t.changeSome(c, chunk)
			mu.Lock()
			defer mu.Unlock()
			all.add(some, err)
		})
	}
	running.Wait()
	if err := errors.Join(all.err, t.run.ctx.Err()); err != nil && len(all.kept) == 0 {
		return Finding{}, err
	}
	note := fmt.Sprintf("; the API server lets nobody change %d others", all.fixed)
	if left := len(t.fields[c]) - tried; left > 0 {
		note += fmt.Sprintf("; %d were not tried", left)
	}
	switch {
	case len(all.kept) > 0:
		return failed("%d of %d fields that it sets stayed changed for %v%s", len(all.kept), all.changed, t.patience(),
			note).with(all.kept...), nil
	case all.changed == 0:
		return skipped("no field was changed%s", note), nil
	}
	return passed("%d fields were restored, the slowest after %.1f s, at the cost of %d writes%s",
		all.changed, all.slowest.Seconds(), all.writes, note), nil
}

// lastMetadata puts what an operator may find its children by behind the other fields: while a label or an owner
// reference is gone, it may not hear of the rest.
func lastMetadata(fields []path) []path {
	rank := func(p path) int {
		switch {
		case p.String() == ".metadata.ownerReferences":
			return 2
		case p[0].field == "metadata":
			return 1
		}
		return 0
	}
	return slices.SortedStableFunc(slices.Values(fields), func(a, b path) int { return rank(a) - rank(b) })
}

// changes are what became of fields that somebody changed.
type changes struct {
	changed, fixed, writes int // fixed ones cannot be changed
	kept                   []string
	slowest                time.Duration
	err                    error
}

func (c *changes) add(more changes, err error) {
	c.changed, c.fixed, c.writes = c.changed+more.changed, c.fixed+more.fixed, c.writes+more.writes
	c.kept, c.slowest, c.err = append(c.kept, more.kept...), max(c.slowest, more.slowest), errors.Join(c.err, err)
}

// changeSome changes fields one after the other, in a sample of their own.
func (r *run) changeSome(c child, fields []path) (all changes, err error) {
	ctx, cancel := context.WithTimeoutCause(r.ctx, 2*time.Minute, errors.New("2 minutes were over"))
	defer cancel()
	t, err := r.newTrial(ctx)
	if err != nil {
		return all, err
	}
	defer t.clean()
	if err := t.serve(); err != nil {
		return all, err
	}
	mark := t.fixture.Ledger.Mark()
	for _, p := range fields {
		pointer, value, err := t.disturbAgain(c, p)
		if err != nil {
			return all, err
		}
		if pointer == "" {
			all.fixed++
			continue
		}
		all.changed++
		begin := time.Now()
		if err := t.eventually(t.patience(), func() error { return t.has(c, p, value) }); err != nil {
			all.kept = append(all.kept, fmt.Sprintf("%s: %v", p, err))
		}
		all.slowest = max(all.slowest, time.Since(begin))
	}
	all.writes = len(t.writes(mark))
	return all, t.ctx.Err()
}

// disturbAgain waits for an object that the operator replaces: it may delete it, and create it anew.
func (t *trial) disturbAgain(c child, p path) (pointer string, value any, err error) {
	_ = t.eventually(t.patience(), func() error {
		if pointer, value, err = t.disturb(c, p); apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
	return pointer, value, err
}

// addLabels adds a label to everything, as other programs do.
func (t *trial) addLabels() (Finding, error) {
	if err := t.rest(); err != nil {
		return Finding{}, err
	}
	mark := t.fixture.Ledger.Mark()
	all := append(slices.Clone(t.children), t.own())
	for _, c := range all {
		_, err := t.at(c).Patch(t.ctx, c.Name, types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"example.com/added":"yes"}}}`),
			metav1.PatchOptions{FieldManager: somebody})
		if err != nil {
			return Finding{}, err
		}
	}
	if err := fixture.Pause(t.ctx, 2*time.Second); err != nil {
		return Finding{}, err
	}
	var lost []string
	for _, c := range all {
		u, err := t.at(c).Get(t.ctx, c.Name, metav1.GetOptions{})
		if err != nil {
			return Finding{}, err
		}
		if u.GetLabels()["example.com/added"] != "yes" {
			lost = append(lost, c.String())
		}
	}
	writes := lines(t.writes(mark))
	switch {
	case len(lost) > 0:
		return failed("a label that somebody added is gone from %s", strings.Join(lost, ", ")).with(writes...), nil
	case len(writes) > 0:
		return failed("the added labels stayed, and cost %d writes", len(writes)).with(writes...), nil
	}
	return passed("labels that somebody added stayed, and no write followed"), nil
}
