package main

import (
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
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
	for name, test := range map[string]struct{ program, against, page, err string }{
		"worse": {bad, good, "## Worse\n\n- a: passed → failed",
			"1 findings passed before and fail now: drift/a"},
		"better":               {good, bad, "## Better\n\n- a: failed → passed", ""},
		"a report alone":       {good, "", "", "AGAINST= is the examine.json of an older program"},
		"another file of JSON": {good, filepath.Join(dir, "none.json"), "", "none.json: no such file"},
	} {
		out := filepath.Join(dir, name)
		command := command()
		command.SetErr(io.Discard)
		command.SetArgs([]string{"run", "--program", test.program, "--against", test.against, "--out", out})
		err := command.ExecuteContext(t.Context())
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v, want %q", name, err, test.err)
		}
		if page, _ := os.ReadFile(filepath.Join(out, "against.md")); !strings.Contains(string(page), test.page) {
			t.Errorf("%s: the page does not have %q:\n%s", name, test.page, page)
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
