//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// contract is testdata/contract.json: the environment that the operator gives each container, and a result with every
// field. The operator has a copy, which its own tests use.
type contract struct {
	Environment     map[string]map[string]string `json:"environment"`
	ExitFinal       int                          `json:"exitFinal"`
	ExitNotVerified int                          `json:"exitNotVerified"`
	Result          json.RawMessage              `json:"result"`
}

func readContract(t *testing.T) (c contract) {
	t.Helper()
	text, err := os.ReadFile("testdata/contract.json")
	noError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	noError(t, decoder.Decode(&c))
	return c
}

func environment(settings map[string]string) (environ []string) {
	for key, value := range settings {
		environ = append(environ, key+"="+value)
	}
	return environ
}

// The verb reads every variable that the operator sets: with another value, the settings or the variables of a tool
// differ, or the settings are refused.
func TestTheOperatorsEnvironmentIsUnderstood(t *testing.T) {
	c := readContract(t)
	if c.ExitFinal != exitFinal || c.ExitNotVerified != exitNotVerified {
		t.Errorf("the exit codes are %d and %d", exitFinal, exitNotVerified)
	}
	for container, env := range c.Environment {
		verb, _, _ := strings.Cut(container, " ")
		for variable := range files { // the pod mounts them
			if env[variable] != "" {
				env[variable] = filepath.Join(t.TempDir(), "file")
				noError(t, os.WriteFile(env[variable], nil, 0o600))
			}
		}
		all, err := Settings(verb, environment(env))
		if err != nil {
			t.Errorf("%s: %v", container, err)
		}
		for variable := range env {
			some, err := Settings(verb, environment(with(env, variable, "1")))
			if err == nil && reflect.DeepEqual(seen(all), seen(some)) {
				t.Errorf("%s: %s=%s makes no difference", container, variable, env[variable])
			}
		}
	}
}

// seen is what a run sees of its settings.
func seen(c Config) []any {
	p := &program{config: c}
	c.environ = nil
	return []any{c, p.serverVariables(), p.resticTool().env}
}

// The program writes the result of the contract when every field is set.
func TestTheResultIsThatOfTheContract(t *testing.T) {
	at := time.Date(2026, 3, 29, 2, 30, 1, 0, time.UTC)
	want := Result{Verb: verbBackup, Succeeded: true, Reason: ReasonBackupSucceeded,
		Message: "a message", Warning: "a warning", Started: at, Seconds: 1.5,
		Backup: &Backup{Name: "orders-29579190", Snapshot: "1a2b3c4d", Database: "orders", Size: 4096, Stored: 1024,
			Started: at, Completed: at.Add(time.Second), ServerVersion: "17.2",
			Verified: &Verified{Mode: ModeArchive, Time: at.Add(2 * time.Second)}},
		Restored: &Restored{Database: "orders", Tables: 2, LeftOut: []string{"event trigger audit"}},
		Backups: []Entry{
			{Name: "orders-29579190", Snapshot: "1a2b3c4d", Completed: at.Add(time.Second), Size: 4096, Verified: ModeRestore},
			{Name: "orders-29570000", Completed: time.Date(2026, 3, 22, 17, 20, 2, 0, time.UTC), Size: 2048,
				Path: "/volume/backups/orders/7e1b/orders-29570000.dump"}}}
	text, err := want.encode()
	noError(t, err)
	var have, agreed any
	noError(t, json.Unmarshal(text, &have))
	noError(t, json.Unmarshal(readContract(t).Result, &agreed))
	if diff := cmp.Diff(agreed, have); diff != "" {
		t.Errorf("(-contract +written):\n%s", diff)
	}
}
