package mutants

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/lab/myweb/crash"
	"example.com/operator-workshop/scripts/lab/myweb/impl"
	"example.com/operator-workshop/scripts/lab/myweb/suite"
)

// A Planted mutant has the outcomes of its checks, and whether they caught it.
type Planted struct {
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
func (r Planted) Print(w io.Writer) {
	verdict := map[bool]outcome.Verdict{true: "caught", false: "MISSED"}[r.Caught]
	outcome.Line(w, verdict, r.Mutant.Name, fmt.Sprintf("%s (%.0f s)", r.Mutant.Bug, r.Took.Seconds()))
	fmt.Fprintf(w, "          by %s\n", strings.Join(r.Mutant.CaughtBy, ", "))
	outcome.Wrap(w, "          ", r.Reason)
}

// Catch runs the checks that must catch a mutant in a fixture: on the mutant, built as i, and, when they caught it,
// on the unpatched operator. A check that also fails there has shown nothing. Checks that need a planted bug run only
// here. An error with the mutant counts as a mutant that was not caught.
func Catch(ctx context.Context, w *fixture.Fixture, checks []suite.Check, m Mutant,
	i, unpatched impl.Implementation) (r Planted) {
	begin := time.Now()
	r.Mutant = m
	err := impl.WithCRD(ctx, w, m.CRD, func() (err error) {
		r.Outcomes, err = runChecks(ctx, w, checks, "m-"+m.Name, m, i)
		return err
	})
	if err == nil {
		r.judge()
	}
	if r.Caught {
		err = r.control(ctx, w, checks, unpatched)
	}
	if err != nil { // the operator did not even start: a mutant must start
		r.Caught, r.Reason = false, err.Error()
	}
	r.Took = time.Since(begin)
	return r
}

// control runs the checks on the unpatched operator: each must pass.
func (r *Planted) control(ctx context.Context, w *fixture.Fixture, checks []suite.Check,
	unpatched impl.Implementation) error {
	of := r.Mutant.Of
	outcomes, err := runChecks(ctx, w, checks, "u-"+of, r.Mutant, unpatched)
	if err != nil {
		return fmt.Errorf("unpatched %s: %w", of, err)
	}
	for _, o := range outcomes {
		if o.Verdict != outcome.Passed {
			r.Caught, r.Reason = false, fmt.Sprintf("%s also %s on unpatched %s: %s", o.ID, o.Verdict, of, o.What)
		}
	}
	return nil
}

// runChecks runs the checks that must catch a mutant against a program, with a user of that name.
func runChecks(ctx context.Context, w *fixture.Fixture, checks []suite.Check, user string, m Mutant,
	i impl.Implementation) ([]outcome.Result, error) {
	if m.Rights == "all" {
		i.Roles, i.LeaseRoles = nil, nil
		user += "-all"
	}
	o, err := suite.NewOperator(ctx, w, i, user)
	if err != nil {
		return nil, err
	}
	defer o.Kill()
	o.AssumeAll() // a bug may be a missing status or owner reference
	chosen, outcomes, err := crash.Choose(ctx, w, o, checks, m.CaughtBy)
	if err != nil {
		return nil, err
	}
	for n := range chosen {
		chosen[n].NotApplicable = ""
	}
	more, err := suite.Run(ctx, w, o, chosen, nil)
	return append(outcomes, more...), err
}

// judge compares the outcomes with the expected ones.
func (r *Planted) judge() {
	r.Caught = true
	for _, id := range r.Mutant.CaughtBy {
		at := slices.IndexFunc(r.Outcomes, func(o outcome.Result) bool { return o.ID == id })
		switch {
		case at < 0:
			r.Caught, r.Reason = false, "there is no check "+id
		case r.Outcomes[at].Verdict != outcome.Failed:
			r.Caught, r.Reason = false, fmt.Sprintf("%s %s %s", id, r.Outcomes[at].Verdict, r.Outcomes[at].What)
		case r.Mutant.Because != nil && !r.Mutant.Because.MatchString(r.Outcomes[at].What):
			r.Caught, r.Reason = false, fmt.Sprintf("%s failed for another reason than %q: %s",
				id, r.Mutant.Because, r.Outcomes[at].What)
		case r.Reason == "":
			r.Reason, _, _ = strings.Cut(r.Outcomes[at].What, "\n")
		}
	}
}
