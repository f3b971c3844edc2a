package mutants

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/internal/outcome"
	"example.com/operator-workshop/scripts/lab/engine/fixture"
	"example.com/operator-workshop/scripts/lab/myweb"
	"example.com/operator-workshop/scripts/lab/myweb/crash"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A Result is the lab's result for a mutant.
type Result struct {
	Mutant Mutant
	// Caught: every check of Mutant.CaughtBy failed, for the stated reason, and passed on the unpatched operator.
	Caught bool
	// Reason is the reason of the first of these checks, or the error with the mutant.
	Reason string
	// Outcomes are the outcomes of the checks, with their evidence.
	Outcomes []outcome.Result
	Took     time.Duration
}

// Print writes the result: the bug, and the lab's verdict.
func (r Result) Print(w io.Writer) {
	verdict := map[bool]outcome.Verdict{true: "caught", false: "MISSED"}[r.Caught]
	outcome.Line(w, verdict, r.Mutant.Name, fmt.Sprintf("%s (%.0f s)", r.Mutant.Bug, r.Took.Seconds()))
	fmt.Fprintf(w, "          by %s\n", strings.Join(r.Mutant.CaughtBy, ", "))
	outcome.Wrap(w, "          ", r.Reason)
}

// A Bench is a fixture in which mutants are examined, and the operators that they patch.
type Bench struct {
	Fixture *fixture.Fixture
	// Unpatched returns the built operator of that name. Every check that catches a mutant must pass on it here.
	Unpatched func(ctx context.Context, name string) (impl.Implementation, error)
	// Checks are the checks that catch mutants, besides the crash sequences.
	Checks []suite.Check

	passed map[string]bool // checks that an unpatched operator has passed in this fixture
}

// Run examines a mutant, built as i, with the checks that must catch it, and then runs the same checks on the
// operator that it patches. Checks that need a planted bug run only here.
func (b *Bench) Run(ctx context.Context, m Mutant, i impl.Implementation) (r Result, err error) {
	begin := time.Now()
	defer func() { r.Took = time.Since(begin) }()
	r.Mutant = m
	if err := fit(ctx, b.Fixture); err != nil {
		return r, fmt.Errorf("mutant %s: the fixture is not fit for it, after what went before: %w", m.Name, err)
	}
	err = impl.WithCRD(ctx, b.Fixture, m.CRD, func() (err error) {
		r.Outcomes, err = b.examine(ctx, "m-"+m.Name, m, i, m.CaughtBy)
		return err
	})
	if err != nil { // the operator did not even start: a mutant must start
		return r, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	if r.judge(); r.Caught {
		err = b.control(ctx, &r)
	}
	return r, err
}

// control runs the checks that caught a mutant on the unpatched operator. A check that also fails there has shown
// nothing.
func (b *Bench) control(ctx context.Context, r *Result) error {
	key := func(id string) string { return r.Mutant.Of + " " + r.Mutant.Rights + " " + id }
	ids := slices.DeleteFunc(slices.Clone(r.Mutant.CaughtBy), func(id string) bool { return b.passed[key(id)] })
	if len(ids) == 0 {
		return nil
	}
	i, err := b.Unpatched(ctx, r.Mutant.Of)
	if err != nil {
		return err
	}
	outcomes, err := b.examine(ctx, "u-"+r.Mutant.Of, r.Mutant, i, ids)
	if err != nil {
		return fmt.Errorf("unpatched %s: %w", r.Mutant.Of, err)
	}
	if b.passed == nil {
		b.passed = map[string]bool{}
	}
	for _, id := range ids {
		at := slices.IndexFunc(outcomes, func(o outcome.Result) bool { return o.Check == id })
		switch {
		case at < 0:
			r.Caught, r.Reason = false, "unpatched "+r.Mutant.Of+" has no check "+id
		case outcomes[at].Verdict != outcome.Passed:
			r.Caught, r.Reason = false, fmt.Sprintf("%s also %s on unpatched %s: %s",
				id, outcomes[at].Verdict, r.Mutant.Of, outcomes[at].Reason)
		default:
			b.passed[key(id)] = true
		}
	}
	return nil
}

// examine runs the checks of these IDs against a program, with a user of that name.
func (b *Bench) examine(ctx context.Context, user string, m Mutant, i impl.Implementation, ids []string) (
	[]outcome.Result, error) {
	if m.Rights == "all" {
		i.Roles, i.LeaseRoles = nil, nil
		user += "-all"
	}
	o, err := suite.NewOperator(ctx, b.Fixture, i, user)
	if err != nil {
		return nil, err
	}
	o.AssumeAll() // a bug may be a missing status or owner reference
	chosen, outcomes, err := crash.Choose(ctx, b.Fixture, o, b.Checks, ids)
	if err != nil {
		return nil, err
	}
	for n := range chosen {
		chosen[n].NotApplicable = ""
	}
	more, err := suite.Run(ctx, b.Fixture, o, chosen, nil)
	return append(outcomes, more...), err
}

// fit returns an error when no MyWeb can be created in a fixture: then every check would fail, and every mutant would
// count as caught.
func fit(ctx context.Context, w *fixture.Fixture) error {
	web := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": myweb.MyWebs.GroupVersion().String(), "kind": "MyWeb",
		"metadata": map[string]any{"name": "fit"}, "spec": map[string]any{"image": "nginx", "pageContentHtml": ""}}}
	_, err := w.Dynamic.Resource(myweb.MyWebs).Namespace(metav1.NamespaceDefault).
		Create(ctx, web, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// judge compares the outcomes with the expected ones.
func (r *Result) judge() {
	r.Caught = true
	for _, id := range r.Mutant.CaughtBy {
		at := slices.IndexFunc(r.Outcomes, func(o outcome.Result) bool { return o.Check == id })
		switch {
		case at < 0:
			r.Caught, r.Reason = false, "there is no check "+id
		case r.Outcomes[at].Verdict != outcome.Failed:
			r.Caught, r.Reason = false, fmt.Sprintf("%s %s %s", id, r.Outcomes[at].Verdict, r.Outcomes[at].Reason)
		case r.Mutant.Because != nil && !r.Mutant.Because.MatchString(r.Outcomes[at].Reason):
			r.Caught, r.Reason = false, fmt.Sprintf("%s failed for another reason than %q: %s",
				id, r.Mutant.Because, r.Outcomes[at].Reason)
		case r.Reason == "":
			r.Reason, _, _ = strings.Cut(r.Outcomes[at].Reason, "\n")
		}
	}
}
