package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A use is a variable of the Makefile in the recipe of a target, with the text that has it.
type use struct{ target, name, text string }

// A call is a line that calls the workshop's program, or continues such a line.
var call = regexp.MustCompile(`\$\(WORKSHOP\)|^\t(--|\$\(if)`)

var variable = regexp.MustCompile(`\$\$\{?([A-Z_]+)|\$\(([A-Z_]+)\)`)

// usesOfVariables returns each variable with which a target calls the workshop's program.
func usesOfVariables(t *testing.T, root string) (all []use) {
	t.Helper()
	recipes := testkit.Read(t, filepath.Join(root, "Makefile"))
	target := ""
	for line := range strings.Lines(recipes) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "#") {
			target = name
		}
		if !call.MatchString(line) {
			continue
		}
		for _, match := range variable.FindAllStringSubmatch(line, -1) {
			if name := match[1] + match[2]; name != "WORKSHOP" {
				all = append(all, use{target, name, match[0]})
			}
		}
	}
	return all
}

// Each value is one argument of the program, whatever characters the value has. Neither make nor the shell executes a
// part of it, whether it was typed after make or is a variable of the environment, as with the action.
func TestMakeHandsValuesOn(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	uses := usesOfVariables(t, root)
	if len(uses) < 60 {
		t.Fatalf("the Makefile uses only %d variables", len(uses))
	}
	for _, use := range uses {
		t.Run(use.target+" "+use.name, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "mark")
			value := strings.ReplaceAll(`a teacher's "bundle", of ; all $(shell touch M) ${shell touch M} $(touch M) $M # `+
				"`touch M` %", "touch M", "touch "+mark)
			for _, typed := range []bool{true, false} {
				cmd := exec.Command("make", "-s", "-C", root, use.target, `WORKSHOP=printf '[%s]\n'`)
				if typed {
					cmd.Args = append(cmd.Args, use.name+"="+value)
				} else {
					cmd.Env = append(os.Environ(), use.name+"="+value)
				}
				out, err := cmd.CombinedOutput()
				if _, there := os.Stat(mark); there == nil {
					t.Fatalf("the value was executed:\n%s", out)
				}
				onlyTyped := slices.Contains([]string{"LANGUAGE", "ROOM", "SPEC", "NAME"}, use.name) ||
					use.name == "KIND" && use.target == "exercise"
				passed := strings.HasPrefix(use.text, "$$") && (typed || !onlyTyped)
				if err != nil || passed && !strings.Contains(string(out), "["+value+"]") {
					t.Errorf("typed %v: %v\n%s", typed, err, out)
				}
			}
		})
	}
}

// TestMakeKeepsTheDollar shows that make leaves $KUBECONFIG in ARGS= and ENV= to the program.
func TestMakeKeepsTheDollar(t *testing.T) {
	const show = "show: ; @printf '%s\\n' \"$$ARGS\" \"$$ENV\""
	for _, dollar := range []string{"$", "$$"} {
		out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", "../../..", "--eval", show, "show",
			"ARGS=-a -kubeconfig="+dollar+"KUBECONFIG", "ENV=A='b'").CombinedOutput()
		if err != nil || string(out) != "-a -kubeconfig=$KUBECONFIG\nA='b'\n" {
			t.Errorf("%s: %q, %v", dollar, out, err)
		}
	}
}

// TestMakeExamineHasEachSetting compares the target with the table of settings: make drops a variable that no recipe uses.
func TestMakeExamineHasEachSetting(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var used []string
	for _, u := range usesOfVariables(t, root) {
		if u.target == "examine" {
			used = append(used, u.name)
		}
	}
	page := testkit.Read(t, filepath.Join(root, "scripts", "examine", "settings", "README.md"))
	settings := regexp.MustCompile("(?m)^\\| `([A-Z_]+)=").FindAllStringSubmatch(page, -1)
	if len(settings) < 15 {
		t.Fatalf("the page has only %d settings", len(settings))
	}
	for _, s := range settings {
		if !slices.Contains(used, s[1]) && s[1] != "FAST" { // a variable in a condition
			t.Errorf("make examine drops %s=", s[1])
		}
	}
}
