package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/lab/engine/examine"
)

// examineCommand is for the owner of any operator.
func examineCommand() *cobra.Command {
	var s examine.Subject
	var file, args, env, role, needs string
	var only []string
	cmd := &cobra.Command{Use: "examine", Short: "Examine any operator: a program, its CRDs and a sample",
		Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&file, "file", "",
		"examine.yaml with the settings below (default: that of the working folder, if there is one)")
	f.StringVar(&s.Program, "program", "", "the operator's executable file")
	f.StringVar(&s.CRD, "crd", "", "folder or file with its CRDs")
	f.StringVar(&s.Sample, "sample", "", "file with one custom resource")
	f.StringVar(&s.Ready, "ready", "", "{jsonpath}=value, or a condition, that says the sample is ready")
	f.StringVar(&args, "args", "", "arguments of the program, separated by blanks")
	f.StringVar(&env, "env", "", "environment of the program: NAME=value, separated by blanks")
	f.StringVar(&role, "role", "", "files with its roles, separated by commas (default: it may do everything)")
	f.StringVar(&s.Namespace, "namespace", "", "the namespace that it watches (default: all)")
	f.StringVar(&needs, "needs", "", "manifests that must exist before the sample, separated by commas")
	f.StringVar(&s.Out, "out", "", "folder of the report (default: out/examine)")
	f.BoolVar(&s.Fast, "fast", false, "leave out what takes long: at most 2 minutes")
	f.StringSliceVar(&only, "run", nil, "only these experiments: "+strings.Join(examine.IDs(), ", "))
	f.StringSliceVar(&s.FailOn, "fail-on", nil, "experiments whose failure makes the exit code 1, or any (default: none)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s.Args, s.Env = strings.Fields(args), strings.Fields(env)
		s.Role, s.Needs = words(role), words(needs)
		subject, err := withFile(s, file)
		if err != nil {
			return err
		}
		for _, id := range subject.FailOn {
			if all := append(examine.IDs(), "any"); !slices.Contains(all, id) {
				return fmt.Errorf("--fail-on %s: there are %s", id, strings.Join(all, ", "))
			}
		}
		report, err := examine.Run(cmd.Context(), subject, examine.Options{Only: only, Progress: func(format string,
			args ...any) {
			fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
		}})
		if report == nil {
			return err
		}
		return errors.Join(err, written(report, subject.Out), gate(report, subject.FailOn))
	}
	return cmd
}

// withFile adds what a file says to what was given on the command line, which wins.
func withFile(s examine.Subject, file string) (examine.Subject, error) {
	if file == "" {
		if _, err := os.Stat("examine.yaml"); err == nil && s.Program == "" {
			file = "examine.yaml"
		}
	}
	if file == "" {
		s.Out = cmp.Or(s.Out, filepath.Join("out", "examine"))
		return s, nil
	}
	base, err := examine.ReadSubject(file)
	if err != nil {
		return s, err
	}
	s.Program, s.CRD, s.Sample = cmp.Or(s.Program, base.Program), cmp.Or(s.CRD, base.CRD), cmp.Or(s.Sample, base.Sample)
	s.Ready, s.Namespace, s.Out = cmp.Or(s.Ready, base.Ready), cmp.Or(s.Namespace, base.Namespace), cmp.Or(s.Out,
		cmp.Or(base.Out, filepath.Join("out", "examine")))
	for _, pair := range []struct{ given, base *[]string }{{&s.Args, &base.Args}, {&s.Env, &base.Env},
		{&s.Role, &base.Role}, {&s.Needs, &base.Needs}, {&s.FailOn, &base.FailOn}} {
		if len(*pair.given) == 0 {
			*pair.given = *pair.base
		}
	}
	s.Fast = s.Fast || base.Fast
	return s, nil
}

// written writes the report, and says where it is.
func written(report *examine.Report, out string) error {
	path, err := report.Write(out)
	if err != nil {
		return err
	}
	if err := writeHTML(filepath.Join(out, "examine.html"), report.Operator, report.Markdown()); err != nil {
		return err
	}
	fmt.Printf("-- %d passed, %d failed, %d skipped (%v): %s\n", report.Count(examine.Passed),
		report.Count(examine.Failed),
		report.Count(examine.Skipped), report.Took, path)
	return nil
}

// gate is an error when an experiment that must not fail did.
func gate(report *examine.Report, gates []string) error {
	for _, id := range report.Failed() {
		if slices.Contains(gates, "any") || slices.Contains(gates, id) {
			return fmt.Errorf("the experiment %s failed, which --fail-on names", id)
		}
	}
	return nil
}
