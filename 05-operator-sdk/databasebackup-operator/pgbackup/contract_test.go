//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// contract is testdata/contract.json: the environment that the operator gives each verb, and a result with every field.
// The operator has a copy, which its own tests use.
type contract struct {
	Environment map[string]map[string]string `json:"environment"`
	ExitFinal   int                          `json:"exitFinal"`
	Result      json.RawMessage              `json:"result"`
}

func readContract(t *testing.T) (c contract) {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// The verb reads every variable that the operator sets: without the variable, the settings differ or are refused.
func TestTheOperatorsEnvironmentIsUnderstood(t *testing.T) {
	c := readContract(t)
	if c.ExitFinal != exitFinal {
		t.Errorf("the exit code of a final failure is %d", exitFinal)
	}
	for verb, env := range c.Environment {
		all, err := Settings(verb, environment(env))
		if err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		for variable := range env {
			some, err := Settings(verb, environment(with(env, variable, "")))
			known := err != nil || !reflect.DeepEqual(withoutEnvironment(all), withoutEnvironment(some))
			if passed := slices.ContainsFunc(targetServer(all).environ, func(pair string) bool {
				return pair == variable+"="+env[variable]
			}); !known && !passed {
				t.Errorf("%s: %s=%s makes no difference", verb, variable, env[variable])
			}
		}
	}
}

func withoutEnvironment(c Config) Config {
	c.environ = nil
	return c
}

// The program writes the result of the contract when every field is set.
func TestTheResultIsThatOfTheContract(t *testing.T) {
	at := time.Date(2026, 3, 29, 2, 30, 1, 0, time.UTC)
	want := Result{Verb: verbBackup, Succeeded: true, Reason: ReasonBackupSucceeded,
		Message: "a message", Warning: "a warning",
		Started: at, Seconds: 1.5,
		Backup: &Facts{Dump: Dump{Name: "orders-29579190", Database: "orders",
			Path: "/volume/backups/orders/7e1b/orders-29579190.dump",
			Size: 4096, SHA256: "5c1f",
			Started: at, Completed: at.Add(time.Second), ServerVersion: "17.2", PgDumpVersion: "17.2",
			Verified: &Verified{Mode: ModeRestore, Time: at.Add(2 * time.Second)},
			Failure: &Failure{Mode: ModeArchive, Reason: ReasonChecksumMismatch, Message: "why",
				Time: at.Add(3 * time.Second)}},
			State: StateBroken, Tables: 2, Rows: 10000, NotCounted: []string{"public.posts: why not"}},
		Restored: &Restored{Database: "orders", Tables: 2, Rows: 10000, Replaced: true, RolesCreated: 1},
		Backups:  []Entry{{Name: "orders-29579190", State: StateGood}}, Removed: []string{"orders-29579180"}, Omitted: 3}
	text, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	var have bytes.Buffer
	if err := json.Indent(&have, bytes.TrimSpace(text), "  ", "  "); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(readContract(t).Result), have.String()); diff != "" {
		t.Errorf("(-contract +written):\n%s", diff)
	}
}
