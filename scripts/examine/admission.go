package examine

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/state"
)

// admission lets a cluster refuse and change the operator's writes, as the policies of a company do.
func admission(r *run) error {
	c, ok := r.firstChild()
	if !ok {
		r.add("what the cluster refuses is reported",
			skipped("the operator writes no other object in a namespace"))
		return nil
	}
	var short Finding
	reportsShort := false
	err := r.each("policies", []disturbance{
		{"a policy refuses " + c.String(), true, func(t *trial) (_ Finding, err error) {
			short, reportsShort, err = t.refused(c, (*trial).refuse, refusal)
			if short.Verdict == Failed && !reportsShort {
				short.What += "; so a message of more than 1024 bytes, the limit of an event, is not reported either"
			}
			return short, err
		}},
		{"a policy refuses " + c.String() + " at length", false, func(t *trial) (Finding, error) {
			if !reportsShort {
				return skipped("it does not report a short message: failed once for both"), nil
			}
			long, reports, err := t.refused(c, (*trial).refuseAtLength, refusal)
			if err == nil && reports && short.Verdict == Failed {
				return passed("it reports the message; the finding about a short message has the rest"), nil
			}
			return long, err
		}},
		{"a quota refuses " + c.String(), false, func(t *trial) (Finding, error) {
			if t.target.cluster {
				return skipped("the namespaces of its children are its own, so there is no quota before them"), nil
			} else if ledgerName(c) == t.target.what() && c.Namespace == "" {
				return skipped("a quota for its child would refuse the sample, too"), nil
			}
			f, _, err := t.refused(c, (*trial).limit, "exceeded quota")
			return f, err
		}},
		{"its namespace is being deleted", false, (*trial).terminated},
		r.additionRefused(),
	})
	if err != nil {
		return err
	}
	return r.policyChanges() // at the end, because each may take a minute
}

// firstChild is the child that the operator creates first in the namespace: an operator that gives up there creates
// no other child.
func (r *run) firstChild() (first child, ok bool) {
	for _, k := range r.keys[0] {
		for _, c := range r.children {
			same := k.What == ledgerName(c) && (k.Name == c.Name || k.Name == "")
			if same && !c.Cluster {
				return c, true
			}
		}
	}
	return first, false
}

// ledgerName is a child's resource as the ledger names it.
func ledgerName(c child) string { return c.GVR.GroupResource().String() }

// refused keeps the operator from creating a child, observes the operator meanwhile, and then allows the child. It also
// returns whether the operator reports the message, and recovers.
func (t *trial) refused(c child, set func(*trial, child) (func() error, error),
	message string) (f Finding, reported bool, err error) {
	lift, err := set(t, c)
	if err != nil {
		return f, false, err
	}
	if err := t.create(); err != nil {
		return f, false, err
	}
	return t.refusedUntil(c, 0, lift, message, t.asUndisturbed)
}

// refusedUntil observes an operator that is refused the writes of a child after a mark, and then allows them, and waits for
// the end.
func (t *trial) refusedUntil(c child, mark int, lift func() error, message string, end func() error) (f Finding,
	reported bool, err error) {
	if _, err := t.awaitRefusal(c, mark); err != nil {
		return skipped("%v", err), false, nil
	}
	w, err := t.watch(time.Now(), t.Mark())
	if err != nil {
		return f, false, err
	}
	reported, where, missing := t.reacts(c, func() (bool, string) { return t.reports(message) })
	if err := lift(); err != nil {
		return f, false, err
	}
	tries := len(t.refusals(c, mark))
	begin, mark := time.Now(), t.Mark()
	if err := t.Eventually(time.Minute, end); err != nil && len(t.Writes(mark)) == 0 && backoff(tries) > time.Minute {
		return unfinished(fmt.Errorf("after %d tries, a queue with exponential backoff may wait for %v", tries, backoff(tries))),
			false, nil
	} else if err != nil {
		return t.notRecovered("1 minute after it was allowed again", mark, err), false, nil
	}
	back := fmt.Sprintf("as undisturbed %.1f s after it was allowed again", time.Since(begin).Seconds())
	return w.judge(where, back, reported, missing), reported, nil
}

// backoff is how long a queue of client-go waits at most before it tries again, by default, after a number of failures. Each
// event about an object is a try, too, so some seconds can have many.
func backoff(failures int) time.Duration {
	return min(5*time.Millisecond<<min(failures, 20), 1000*time.Second)
}

// awaitRefusal waits until the API server refuses a write of a child since a mark, and returns its message.
func (t *trial) awaitRefusal(c child, mark int) (message string, err error) {
	err = t.Eventually(20*time.Second, func() error {
		all := t.refusals(c, mark)
		if len(all) == 0 {
			return errors.New("it was never refused anything")
		}
		message = all[0].Message
		return nil
	})
	return message, err
}

// refusals are the writes of a child since a mark that the API server refused.
func (t *trial) refusals(c child, mark int) []ledger.Entry {
	return slices.DeleteFunc(t.Writes(mark), func(e ledger.Entry) bool {
		return e.FullResource() != ledgerName(c) || !isRefused(e)
	})
}

// judge makes a finding of the observations.
func (w watched) judge(where, back string, reported bool, missing []string) Finding {
	var wrong, evidence []string
	if w.hot() {
		wrong, evidence = append(wrong, fmt.Sprintf("a hot loop: %v, without exponential backoff", w)), lines(w.entries)
	}
	if !reported {
		wrong, evidence = append(wrong, "neither the status nor an event reports it"), append(evidence, where)
	}
	if len(missing) > 0 {
		wrong, evidence = append(wrong, "meanwhile it did not make "+strings.Join(missing, ", ")), append(evidence,
			lines(w.entries)...)
	}
	if len(wrong) > 0 {
		return failed("%s; %s", strings.Join(wrong, "; "), back).with(evidence...)
	}
	return passed("%v; %s; its other children existed; %s", w, where, back)
}

// reacts waits until a report is found and the other children exist. A status can have the report only for a moment in
// each reconcile.
func (t *trial) reacts(except child, look func() (bool, string)) (found bool, where string, missing []string) {
	_ = t.Eventually(t.patience(), func() error {
		if !found {
			found, where = look()
		}
		if missing = t.missing(except); !found || len(missing) > 0 {
			return errNothing
		}
		return nil
	})
	return found, where, missing
}

// reported waits until a report is found.
func (t *trial) reported(look func() (bool, string)) (found bool, where string) {
	_ = t.Eventually(t.patience(), func() error {
		if found, where = look(); !found {
			return errNothing
		}
		return nil
	})
	return found, where
}

// reports looks for a message in the sample's status, and in events about the sample.
func (t *trial) reports(message string) (found bool, where string) {
	u, err := t.sample()
	if err != nil {
		return false, err.Error()
	}
	if strings.Contains(text(u.Object["status"]), strings.Trim(text(message), `"`)) { // both have the same escapes
		return true, "the status reports it"
	}
	if line := t.newError(u); line != "" {
		return true, "the status reports an error, without the reason (" + line + ")"
	}
	events, err := t.fixture.Kube.CoreV1().Events(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return false, err.Error()
	}
	for _, e := range events.Items {
		switch {
		case e.InvolvedObject.UID != u.GetUID():
		case strings.Contains(e.Message, message):
			return true, "an event reports it"
		case e.Type == corev1.EventTypeWarning:
			return true, fmt.Sprintf("an event reports an error, without the reason (%s: %s)", e.Reason, shortened(e.Message, 200))
		}
	}
	return false, fmt.Sprintf("%d events, and the status is %s", len(events.Items), text(u.Object["status"]))
}

// errorWord matches the words of a status that reports an error.
var errorWord = regexp.MustCompile(`(?i)fail|error|forbidden|denied|reject|refuse`)

// newError is a value in the sample's status that reports an error: see newValue.
func (t *trial) newError(sample *unstructured.Unstructured) string {
	return t.newValue(sample, errorWord)
}

// newValue is a value in the sample's status that has some words, and that the status of an undisturbed run does not have;
// empty when there is none. Types of conditions are names and report nothing.
func (t *trial) newValue(sample *unstructured.Unstructured, words *regexp.Regexp) string {
	now, own := state.State{}, t.own().String()
	now.Add(own, map[string]any{"status": sample.Object["status"]}, func(path string) bool {
		return isMasked(strings.TrimPrefix(path, own), masked)
	})
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if value := now[path]; value != t.state[path] && words.MatchString(value) && !strings.HasSuffix(path, ".type") {
			return path + ": " + shortened(value, 200)
		}
	}
	return ""
}

// missing are the children that do not exist in the namespace, except one.
func (t *trial) missing(except child) (names []string) {
	for _, c := range t.children {
		if c == except || c.Cluster || c.GVR == except.GVR { // a quota applies to all objects of a resource
			continue
		}
		if _, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			names = append(names, c.String())
		}
	}
	return names
}

// terminated deletes the namespace of a sample that a finalizer keeps.
func (t *trial) terminated() (Finding, error) {
	if t.serial() {
		return skipped("its namespace is not the examination's own"), nil
	}
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	release, err := fixture.Hold(t.Ctx, t.samples(), t.target.sample.GetName())
	if err != nil {
		return Finding{}, err
	}
	if err := t.quiet(400 * time.Millisecond); err != nil {
		return Finding{}, err
	}
	clear(t.given) // they go with the namespace
	namespaces := t.fixture.Kube.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Ctx, t.Namespace, metav1.DeleteOptions{}); err != nil {
		return Finding{}, err
	}
	w, err := t.watch(time.Now(), t.Mark())
	if err != nil {
		return Finding{}, err
	}
	if err := release(t.Ctx); err != nil {
		return Finding{}, err
	}
	begin := time.Now()
	err = t.Eventually(30*time.Second, func() error {
		_, err := namespaces.Get(t.Ctx, t.Namespace, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the namespace is there"), err)
	})
	switch {
	case err != nil:
		return failed("30 s after nothing else kept it: %v", err).with(lines(w.entries)...), nil
	case w.hot():
		return failed("a hot loop: %v, without exponential backoff", w).with(lines(w.entries)...), nil
	case !t.operator.Running():
		return Finding{}, errors.New("the operator did not stay alive")
	}
	return passed("%v while it was being deleted; it was gone %.1f s after nothing else kept it", w,
		time.Since(begin).Seconds()), nil
}
