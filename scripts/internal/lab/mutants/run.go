package mutants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/operator-workshop/scripts/internal/lab/crash"
	"example.com/operator-workshop/scripts/internal/lab/impl"
	"example.com/operator-workshop/scripts/internal/lab/suite"
	"example.com/operator-workshop/scripts/internal/lab/world"
)

// A Result says what the lab made of a mutant.
type Result struct {
	Mutant Mutant
	// Caught: every check of Mutant.CaughtBy failed.
	Caught bool
	// Reason is what the first of these checks said, or what went wrong with the mutant.
	Reason string
	// Outcomes are those of the checks, with their evidence.
	Outcomes []suite.Outcome
	Took     time.Duration
}

// Print writes the result: the bug, and what the lab said of it.
func (r Result) Print(w io.Writer) {
	verdict := map[bool]string{true: "caught", false: "MISSED"}[r.Caught]
	suite.Line(w, fmt.Sprintf("%s  %-27s", verdict, r.Mutant.Name), fmt.Sprintf("%s (%.0f s)", r.Mutant.Bug, r.Took.Seconds()))
	fmt.Fprintf(w, "          by %s\n", strings.Join(r.Mutant.CaughtBy, ", "))
	fmt.Fprint(w, suite.Indented("          ", r.Reason))
}

// Run examines a mutant, built as i, with the checks that shall catch it. Checks that need a planted bug run here alone.
func Run(ctx context.Context, w *world.World, m Mutant, i impl.Implementation, checks []suite.Check) (r Result, err error) {
	begin := time.Now()
	defer func() { r.Took = time.Since(begin) }()
	r.Mutant = m
	if err := fit(ctx, w); err != nil {
		return r, fmt.Errorf("mutant %s: the world is not fit for it, after what went before: %w", m.Name, err)
	}
	if m.CRD != "" {
		defer func() { err = errors.Join(err, w.ReplaceCRD(ctx, filepath.Join(w.Root, impl.CRD))) }()
		if err := w.ReplaceCRD(ctx, m.CRD); err != nil {
			return r, err
		}
	}
	if m.Rights == "all" {
		i.Roles, i.LeaseRoles = nil, nil
	}
	o, err := suite.NewOperator(ctx, w, i, "m-"+m.Name)
	if err != nil {
		return r, err
	}
	var outcomes []suite.Outcome
	if slices.ContainsFunc(m.CaughtBy, func(id string) bool { return strings.HasPrefix(id, "crash/") }) {
		schedules, wrong, err := crash.Checks(ctx, w, o)
		if err != nil {
			return r, err
		}
		outcomes, checks = append(outcomes, wrong...), append(schedules, checks...)
	}
	var chosen []suite.Check
	for _, c := range checks {
		if slices.Contains(m.CaughtBy, c.ID) && c.Run != nil {
			c.NotApplicable = ""
			chosen = append(chosen, c)
		}
	}
	more, err := suite.Run(ctx, w, o, chosen, nil)
	if err != nil { // the operator did not even start: a mutant has to get so far
		return r, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	r.Outcomes = append(outcomes, more...)
	r.judge()
	return r, nil
}

// fit returns an error when no MyWeb can be made in a world: every check would fail there, and every mutant
// be taken for caught.
func fit(ctx context.Context, w *world.World) error {
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": world.MyWebs.GroupVersion().String(), "kind": "MyWeb",
		"metadata": map[string]any{"name": "fit"}, "spec": map[string]any{"image": "nginx"}}}
	_, err := w.Dynamic.Resource(world.MyWebs).Namespace(metav1.NamespaceDefault).Create(ctx, web, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// judge holds the outcomes against what was expected.
func (r *Result) judge() {
	r.Caught = true
	for _, id := range r.Mutant.CaughtBy {
		at := slices.IndexFunc(r.Outcomes, func(o suite.Outcome) bool { return o.Check == id })
		switch {
		case at < 0:
			r.Caught, r.Reason = false, "there is no check "+id
		case r.Outcomes[at].Verdict != suite.Failed:
			r.Caught, r.Reason = false, fmt.Sprintf("%s %s %s", id, r.Outcomes[at].Verdict, r.Outcomes[at].Reason)
		case r.Reason == "":
			r.Reason, _, _ = strings.Cut(r.Outcomes[at].Reason, "\n")
		}
	}
}
