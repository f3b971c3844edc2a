package examine

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// writtenOutside are the existing objects outside the sample's namespace that the operator wrote for this sample: each has the
// namespace in its name or content. An owner reference cannot lead to another namespace, so the garbage collector
// does not delete them. An object that all samples share, such as a ClusterRole, names no namespace.
func (t *trial) writtenOutside() (all []child, err error) {
	if t.serial() {
		return nil, nil // no namespace is that of one sample
	}
	writes := t.fixture.Ledger.Entries(ledger.Match{Verbs: wire.Writes, After: t.Start, Except: ledger.Housekeeping,
		Where: func(e ledger.Entry) bool {
			return strings.HasPrefix(e.User, t.operator.user.Name) && e.Namespace != t.Namespace && e.Committed() &&
				!t.isLock(e)
		}})
	for _, c := range t.childrenOf(writes) {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if t.isNamedIn(u) {
			all = append(all, c)
		}
	}
	return all, nil
}

// isNamedIn reports whether an object has the namespace of the trial in its name or content.
func (t *trial) isNamedIn(u *unstructured.Unstructured) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(t.Namespace) + `\b`).MatchString(text(u.Object))
}

// leftOutside returns nil when no object outside the namespace is left of the sample.
func (t *trial) leftOutside() error {
	left, err := t.writtenOutside()
	if err != nil || len(left) == 0 {
		return err
	}
	return fmt.Errorf("%s is left: it has the namespace of the sample in its name or content, and nothing deleted it",
		joined(left))
}

// sharesNothing creates a sample with the same name in another namespace, and looks whether the operator gives the
// objects of the first sample to the second.
func (t *trial) sharesNothing() (Finding, error) {
	if err := t.serve(); err != nil {
		return Finding{}, err
	}
	mine, err := t.writtenOutside()
	if err != nil {
		return Finding{}, err
	}
	if len(mine) == 0 {
		return skipped("this sample has no object outside its namespace"), nil
	}
	other, err := t.newTrial(t.Ctx)
	if err != nil {
		return Finding{}, err
	}
	defer other.clean()
	if err := other.serve(); err != nil {
		return failed("the sample in the other namespace: %v", err), nil
	}
	var lost []child
	for _, c := range mine {
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return Finding{}, err
		}
		if err != nil || !t.isNamedIn(u) {
			lost = append(lost, c)
		}
	}
	if len(lost) > 0 {
		return failed("%s had the namespace of the first sample, and now has only that of the second", joined(lost)), nil
	}
	return passed("%s still has the namespace of the first sample", joined(mine)), nil
}

// joined are the names of children, separated by commas.
func joined(children []child) string {
	var names []string
	for _, c := range children {
		names = append(names, c.String())
	}
	return strings.Join(names, ", ")
}
