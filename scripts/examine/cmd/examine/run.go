package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/examine/outcome"
	"example.com/operator-workshop/scripts/examine/programs"
)

// defaultOut is the folder of the report, below the working folder.
var defaultOut = filepath.Join("out", "examine")

// runCommand examines an operator. Its settings are flags, or NAME=value as after make: PROGRAM=path is --program path.
func runCommand() *cobra.Command {
	var s examine.Subject
	var file, args, env, role, needs, webhooks, more, against string
	var only []string
	cmd := &cobra.Command{Use: "run [NAME=value]...", Short: "Examine an operator: run PROGRAM=path CRD=folder SAMPLE=file"}
	f := cmd.Flags()
	f.StringVar(&file, "file", "",
		"examine.yaml with the settings below (default: that of the working folder or of the repository's root)")
	f.StringVar(&s.Program, "program", "", "the operator's executable file, or the folder of its package main")
	f.StringVar(&s.CRD, "crd", "", "folder or file with its CRDs")
	f.StringVar(&s.Manifest, "manifest", "",
		"folder or file with its manifests, as kustomize build and helm template print them: Deployment, roles, webhooks, CRDs")
	f.StringVar(&s.Sample, "sample", "", "file with one custom resource, or one object of a built-in kind")
	f.StringVar(&s.Ready, "ready", "", "{jsonpath}=value, or a condition, that says the sample is ready")
	f.StringVar(&args, "args", "", "arguments of the program, separated by blanks")
	f.StringVar(&env, "env", "", "environment of the program: NAME=value, separated by blanks")
	f.StringVar(&role, "role", "", "files with its roles, separated by commas (default: it may do everything)")
	f.StringVar(&s.Namespace, "namespace", "", "the namespace that it watches (default: all)")
	f.StringVar(&needs, "needs", "", "manifests that must exist before the sample, separated by commas")
	f.StringVar(&webhooks, "webhooks", "",
		"manifests of the webhooks that it serves, separated by commas (default: config/webhook beside the CRDs)")
	f.StringVar(&more, "samples", "", "files with further samples, for its permissions, separated by commas")
	f.BoolVar(&s.Outside, "outside", false,
		"run the program outside a pod, with a kubeconfig, as on a system without user namespaces")
	f.DurationVar(&s.Period.Duration, "period", 0, "its resync period, such as 30s")
	f.StringVar(&s.Baseline, "baseline", "", "file with accepted findings: any other failure makes the exit code 1")
	f.StringVar(&against, "against", "", "another program, or its examine.json: the report lists what became better and worse")
	f.StringVar(&s.Out, "out", "", "folder of the report (default: "+defaultOut+")")
	f.DurationVar(&s.Time.Duration, "time", 0, "what the experiments share, such as 20m (default: 9m, or 85s with --fast)")
	f.BoolVar(&s.Fast, "fast", false, "leave out slow experiments: at most 2 minutes")
	f.StringSliceVar(&only, "run", nil, "only these experiments: "+strings.Join(examine.IDs(), ", "))
	f.StringSliceVar(&s.FailOn, "fail-on", nil, "experiments whose failure makes the exit code 1, or any (default: none)")
	cmd.RunE = func(cmd *cobra.Command, settings []string) error {
		if err := set(f, settings); err != nil {
			return err
		}
		s.Args, s.Env = strings.Fields(args), strings.Fields(env)
		s.Role, s.Needs, s.Webhooks, s.More = words(role), words(needs), words(webhooks), words(more)
		subject, err := withFile(s, file)
		if err != nil {
			return err
		}
		for _, id := range subject.FailOn {
			if all := append(examine.IDs(), "any"); !slices.Contains(all, id) {
				return fmt.Errorf("--fail-on %s: there are %s", id, strings.Join(all, ", "))
			}
		}
		return examineSubject(cmd, subject, only, against)
	}
	return cmd
}

// set sets the flags that arguments of the form NAME=value name.
func set(flags *pflag.FlagSet, settings []string) error {
	for _, setting := range settings {
		name, value, ok := strings.Cut(setting, "=")
		flag := strings.ReplaceAll(strings.ToLower(name), "_", "-")
		if !ok || flags.Lookup(flag) == nil {
			return fmt.Errorf("%s is no setting: `examine run --help` lists them; PROGRAM=path is --program path", setting)
		}
		if err := flags.Set(flag, value); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
	}
	return nil
}

// words splits a list at its commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// examineSubject examines an operator, compares it with another, and writes the reports. Its error is the verdict.
func examineSubject(cmd *cobra.Command, subject examine.Subject, only []string, against string) (err error) {
	var baseline examine.Baseline
	if subject.Baseline != "" {
		if baseline, err = examine.ReadBaseline(subject.Baseline); err != nil {
			return err
		}
		subject.FailOn = append(subject.FailOn, "any")
	}
	progress := func(format string, args ...any) { fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...) }
	bin, remove, err := programs.Complete(cmd.Context(), progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	options := examine.Options{Only: only, Progress: progress, Bin: bin}
	older, err := olderReport(cmd.Context(), subject, options, against)
	if err != nil {
		return fmt.Errorf("AGAINST=%s: %w", against, err)
	}
	if !isReport(against) {
		subject.Old = against
	}
	report, err := examine.Run(cmd.Context(), subject, options)
	if report == nil {
		return err
	}
	report.Accept(baseline)
	err = errors.Join(err, written(report, subject.Out))
	if older != nil {
		page, verdict := compared(older, report)
		fmt.Print("\n", page)
		err = errors.Join(err, os.WriteFile(filepath.Join(subject.Out, "against.md"), []byte(page), 0o644), verdict)
	}
	return errors.Join(err, gate(report, subject))
}

// olderReport is the report to compare with: a file, or the report of another program that is examined now. It is nil
// without another program, and when the only experiment is the upgrade, which needs both programs at once.
func olderReport(ctx context.Context, s examine.Subject, o examine.Options, against string) (*examine.Report, error) {
	if isReport(against) {
		return examine.ReadReport(against)
	}
	chosen := len(o.Only) > 0
	o.Only = slices.DeleteFunc(slices.Clone(o.Only), func(id string) bool { return id == "upgrade" })
	if against == "" || chosen && len(o.Only) == 0 {
		return nil, nil
	}
	s.Program, s.Out = against, filepath.Join(s.Out, "against")
	report, err := examine.Run(ctx, s, o)
	if err != nil {
		return nil, err
	}
	return report, written(report, s.Out)
}

// isReport reports whether a path is that of a report, and not of a program.
func isReport(path string) bool { return filepath.Ext(path) == ".json" }

// withFile adds the settings of a file to those of the command line, which take precedence.
func withFile(s examine.Subject, file string) (examine.Subject, error) {
	if file == "" && s.Program == "" {
		file = settingsFile()
	}
	if file == "" {
		s.Out = cmp.Or(s.Out, defaultOut)
		return s, nil
	}
	base, err := examine.ReadSubject(file)
	if err != nil {
		return s, err
	}
	given, err := json.Marshal(s) // only the settings that were given
	if err == nil {
		err = json.Unmarshal(given, &base)
	}
	base.Out = cmp.Or(base.Out, defaultOut)
	return base, err
}

// settingsFile is examine.yaml in the working folder, or else in the root of its repository; empty when there is none.
func settingsFile() string {
	for _, folder := range []string{".", examine.Repository(".")} {
		file := filepath.Join(folder, "examine.yaml")
		if _, err := os.Stat(file); err == nil && folder != "" {
			return file
		}
	}
	return ""
}

// written writes the report, and prints its path.
func written(report *examine.Report, out string) error {
	path, err := report.Write(out)
	if err != nil {
		return err
	}
	came := ""
	if n := report.Count(examine.Late); n > 0 {
		came = fmt.Sprintf("%d late, ", n)
	}
	fmt.Printf("-- %d passed, %s%d failed, %d skipped (%v): %s\n", report.Count(examine.Passed), came,
		report.Count(examine.Failed),
		report.Count(examine.Skipped), report.Took, path)
	if left := report.NotTried(); left != "" {
		outcome.Wrap(os.Stdout, "   ", "not tried: "+left)
	}
	for _, id := range report.Gone {
		outcome.Wrap(os.Stdout, "", fmt.Sprintf("the baseline accepts %s, which did not fail in this run: take it off the list, "+
			"or add sometimes: true", id))
	}
	return nil
}

// gate returns an error when a finding that must not fail has failed. The last line names the file for accepted ones.
func gate(report *examine.Report, s examine.Subject) error {
	failed := report.Failed(s.FailOn...)
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d findings failed:\n  %s\nFix them, or accept each with its id and a reason in %s (BASELINE=)",
		len(failed), strings.Join(failed, "\n  "), cmp.Or(s.Baseline, "examine-baseline.yaml"))
}
