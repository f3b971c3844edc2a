package suite

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"example.com/operator-workshop/scripts/lab/engine/ledger"
)

// Elect restarts the operator with leader election, and without an old lease for which it would wait.
func (t *T) Elect() {
	t.Operator.Kill()
	forget := func(ctx context.Context) error {
		return t.Leases().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	t.Must(forget(t.ctx), "delete old leases")
	t.Cleanup(func(ctx context.Context) { // the runner restarts the operator, without a lease
		t.Operator.Kill()
		_ = forget(ctx)
	})
	args := append([]string{"--leader-elect"}, t.Operator.Impl.With("--leader-election-namespace="+LeaseNamespace)...)
	t.Must(t.Operator.Start(t.ctx, args...), "start the operator with leader election")
}

// Second starts a second replica of an operator that Elect started, with a separate user. It returns when that replica
// asks for the lease.
func (t *T) Second() *Operator {
	second, err := NewOperator(t.ctx, t.Fixture, t.Operator.Impl, t.Operator.User.Name+"-b")
	t.Must(err, "make a second replica")
	second.Env = t.Operator.Env
	t.Cleanup(func(context.Context) { second.Kill() })
	mark := t.Mark()
	p, err := second.Launch(t.Operator.args...)
	t.Must(err, "start a second replica")
	t.Eventually("the second replica asks for the lease", 0, func() error {
		asked := t.Fixture.Ledger.Count(second.Requests(), ledger.Match{Resources: []string{"leases.coordination.k8s.io"},
			After: mark})
		if asked == 0 && !p.Running() {
			return fmt.Errorf("it %v: %s", p.Exit(), strings.Join(p.LastLines(5, ""), "\n"))
		} else if asked == 0 {
			return fmt.Errorf("it did not ask")
		}
		return nil
	})
	return second
}

// Leases are where the operators keep their leases.
func (t *T) Leases() coordinationclient.LeaseInterface {
	return t.Fixture.Kube.CoordinationV1().Leases(LeaseNamespace)
}
