package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/examine"
	"example.com/operator-workshop/scripts/examine/outcome"
)

// secretValue has characters that JSON, Go and HTML escape.
const secretValue = `hunter2 "<&> q`

// examined runs `examine run` on the test operator, which makes a Secret and prints its value. It returns
// the folder of the reports, and the output for the terminal.
func examined(t *testing.T, env ...string) (out, printed string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "testoperator")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../testoperator").
		CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	config := "../../testoperator/config/"
	file := filepath.Join(dir, "examine.yaml")
	settings := "program: " + program + "\nfast: true\nenv: ['SECRET=" + secretValue + "', " + strings.Join(env, ", ") +
		"]\nargs: ['-leader-election-namespace=" + secretValue + "']\n"
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	out = filepath.Join(dir, "out")
	command := command()
	var terminal bytes.Buffer
	command.SetOut(&terminal)
	command.SetErr(io.Discard)
	command.SetArgs([]string{"run", "--file", file, "--crd", config + "crd.yaml", "--sample", config + "sample.yaml",
		"--out", out, "--run", "creation,drift", "--ready", "Ready"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		terminal.WriteString(err.Error())
	}
	return out, terminal.String()
}

// withoutValue fails when a text contains the value, or those parts of it that consist only of letters, which no
// escape changes.
func withoutValue(t *testing.T, where, text string) {
	t.Helper()
	for _, form := range []string{"hunter", base64.StdEncoding.EncodeToString([]byte(secretValue)),
		base64.StdEncoding.EncodeToString([]byte("db://me:" + secretValue + "@example.com")), "104 117 110 116"} {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s shows a Secret: …%s…", where, text[max(0, i-100):min(len(text), i+60)])
		}
	}
}

func TestNoReportShowsASecret(t *testing.T) {
	out, printed := examined(t, "FAULT=no-secret-drift") // the other children take no time that the Secret needs
	withoutValue(t, "the terminal", printed)
	var names []string
	if err := filepath.WalkDir(out, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		names = append(names, entry.Name())
		data, err := os.ReadFile(path)
		withoutValue(t, entry.Name(), string(data))
		return err
	}); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if got := strings.Join(names, " "); got != "examine.html examine.json examine.junit.xml examine.md examine.sarif" {
		t.Errorf("the folder has %s\n%s", got, printed)
	}
	page, err := os.ReadFile(filepath.Join(out, "examine.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`\.data\.password: it is hash:\w{12}, and was hash:\w{12}\n`,
		`\.data\.host: it is hash:\w{12}, and was hash:\w{12}\n`,  // it has the namespace, and is not generated
		`\.data\.pin: it is hash:\w{12}, and was hash:\w{12}\n`} { // too short to be replaced in texts
		if !regexp.MustCompile(want).Match(page) {
			t.Errorf("the page does not have %s:\n%s", want, page)
		}
	}
}

// TestTwoReportsAreCompared compares reports of earlier examinations.
func TestTwoReportsAreCompared(t *testing.T) {
	dir := t.TempDir()
	write := func(name, verdict string) string {
		path := filepath.Join(dir, name)
		report := `{"schema": "https://example.com/operator-workshop/examine/v1", "operator": "o", "findings": [
			{"id": "drift/a", "experiment": "drift", "title": "a", "verdict": "` + verdict + `"}]}`
		if err := os.WriteFile(path, []byte(report), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad := write("good.json", "passed"), write("bad.json", "failed")
	accepted := write("accepted.json", `failed", "accepted": "on purpose`)
	for name, test := range map[string]struct{ older, newer, page, err string }{
		"worse": {good, bad, "## Worse\n\n- a: passed → failed",
			"1 findings passed before and fail now: drift/a"},
		"worse, and accepted":  {good, accepted, "## Worse\n\n- a: passed → failed", ""},
		"better":               {bad, good, "## Better\n\n- a: failed → passed", ""},
		"another file of JSON": {filepath.Join(dir, "none.json"), good, "", "none.json: no such file"},
	} {
		page, err := printed(t, "compare", test.older, test.newer)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
		if !strings.Contains(page, test.page) {
			t.Errorf("%s: the page does not have %q:\n%s", name, test.page, page)
		}
	}
	page, err := printed(t, "explain", "drift/a", "--report", bad)
	if err != nil || !strings.Contains(page, "failed  drift/a ") ||
		!strings.Contains(page, "Why it matters: People and programs") {
		t.Errorf("%v\n%s", err, page)
	}
	_, err = printed(t, "explain", "drift/b", "--report", bad)
	if err == nil || !strings.Contains(err.Error(), "no finding drift/b") {
		t.Error(err)
	}
}

// TestTheReportOfARepository explains a finding without --report: the settings of the repository name its folder.
func TestTheReportOfARepository(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := printed(t, "explain", "drift/a"); err == nil || !strings.Contains(err.Error(), "`examine run` writes it") {
		t.Errorf("without a report: %v", err)
	}
	report := `{"schema": "https://example.com/operator-workshop/examine/v1", "findings": [{"id": "drift/a", "experiment": "drift"}]}`
	if err := errors.Join(os.Mkdir("report", 0o700), os.WriteFile("examine.yaml", []byte("out: report\n"), 0o600),
		os.WriteFile("report/examine.json", []byte(report), 0o600)); err != nil {
		t.Fatal(err)
	}
	if page, err := printed(t, "explain", "drift/a"); err != nil || !strings.Contains(page, "drift/a") {
		t.Errorf("%v\n%s", err, page)
	}
}

// printed runs a command and returns what it prints.
func printed(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := command()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(io.Discard)
	command.SetArgs(args)
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

// TestTheLastLine has the findings that fail and are not accepted, and the file in which to accept them.
func TestTheLastLine(t *testing.T) {
	report := &examine.Report{Findings: []outcome.Result{
		{ID: "drift/a", Experiment: "drift", Verdict: examine.Failed},
		{ID: "crash/b", Experiment: "crash", Verdict: examine.Failed},
		{ID: "drift/c", Experiment: "drift", Verdict: examine.Failed, Accepted: "on purpose"}}}
	for name, test := range map[string]struct {
		s    examine.Subject
		want string
	}{
		"no gate": {examine.Subject{}, ""},
		"an experiment": {examine.Subject{FailOn: []string{"drift"}},
			"1 findings failed:\n  drift/a\nFix them, or accept each with its id and a reason in examine-baseline.yaml " +
				"(BASELINE=)"},
		"any": {examine.Subject{FailOn: []string{"any"}, Baseline: "b.yaml"},
			"2 findings failed:\n  drift/a\n  crash/b\nFix them, or accept each with its id and a reason in b.yaml (BASELINE=)"},
	} {
		if err := gate(report, test.s); (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheSettingsOfARepository looks for them in a folder of a repository, and in a folder of none.
func TestTheSettingsOfARepository(t *testing.T) {
	root := t.TempDir()
	inside := filepath.Join(root, "cmd")
	file := filepath.Join(root, "examine.yaml")
	if err := errors.Join(os.Mkdir(inside, 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(inside)
	if got := settingsFile(); got != "" {
		t.Errorf("outside a repository: %q", got)
	}
	if err := os.Mkdir(filepath.Join(root, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := settingsFile(); !strings.HasSuffix(got, "/examine.yaml") {
		t.Errorf("in a repository: %q", got)
	}
}

// TestAnUpgradeAlone does not examine the older program, which has no program before it.
func TestAnUpgradeAlone(t *testing.T) {
	older, err := olderReport(t.Context(), examine.Subject{}, examine.Options{Only: []string{"upgrade"}}, "old")
	if older != nil || err != nil {
		t.Errorf("%v, %v", older, err)
	}
}

// TestTwoVersions examines an operator and its older program, over whose objects all pods restart.
func TestTwoVersions(t *testing.T) {
	if os.Getenv("LONG") == "" {
		t.Skip("the nightly workflow runs it: LONG=1 go test ./...")
	}
	dir, config := t.TempDir(), "../../testoperator/config/"
	for _, version := range []string{"old", "new"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-X main.version="+version, "-o",
			filepath.Join(dir, version), "../../testoperator")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	_, err := printed(t, "run", "PROGRAM="+filepath.Join(dir, "new"), "AGAINST="+filepath.Join(dir, "old"), "CRD="+config+"crd.yaml",
		"SAMPLE="+config+"sample.yaml", "READY=Ready", "RUN=restart,upgrade", "FAST=1", "OUT="+dir, "FAIL_ON=upgrade")
	if err == nil || !strings.Contains(err.Error(), "upgrade/the-new-program-takes-over-the-objects-of-the-old-one") {
		t.Errorf("the upgrade did not fail: %v", err)
	}
	for file, text := range map[string]string{"against.md": "# new against old\n\nNo verdict changed.",
		"against/examine.md": "# old, examined with a Greeting"} {
		if page, err := os.ReadFile(filepath.Join(dir, file)); err != nil || !strings.Contains(string(page), text) {
			t.Errorf("%s does not have %q, %v:\n%s", file, text, err, page)
		}
	}
}

func TestNoErrorShowsASecret(t *testing.T) {
	_, printed := examined(t, "FAULT=quits")
	withoutValue(t, "the terminal", printed)
	if !strings.Contains(printed, "Its last lines:") || !strings.Contains(printed, "hash:") {
		t.Errorf("the last lines of the operator are missing, or have no hash:\n%s", printed)
	}
}
