//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// stepsOf runs the program to its end and returns the steps that it went through.
func stepsOf(t *testing.T, verb string, settings map[string]string, want Reason) []string {
	t.Helper()
	path := filepath.Join(folder(t), "steps")
	must(t, verb, with(settings, stepsFile, path), want)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// killAtEachStep runs a verb once for each of its steps, and kills it there. fresh makes the state before a run. after
// examines the state after the kill, lets another run finish the work, and returns what it found.
func killAtEachStep(t *testing.T, verb string, settings map[string]string, want Reason, fresh func(),
	after func(n int, steps []string, wrong func(format string, args ...any)) (found string)) {
	t.Helper()
	fresh()
	steps := stepsOf(t, verb, settings, want)
	for n, step := range steps {
		fresh()
		o := runProgram(t, verb, with(settings, killAt, strconv.Itoa(n+1)))
		if o.code != -1 || o.result.Reason != "" {
			t.Fatalf("step %d, %s: code %d, result %+v", n+1, step, o.code, o.result)
		}
		found := after(n, steps, func(format string, args ...any) {
			t.Helper()
			t.Errorf("killed at step %d, %s: "+format, append([]any{n + 1, step}, args...)...)
		})
		t.Logf("killed at step %d, %s: %s", n+1, step, found)
	}
}

// storeOf is the folder of the owner in the settings.
func storeOf(settings map[string]string) *store {
	return &store{dir: filepath.Dir(pathOf(settings, "")), owner: settings["BACKUP_OWNER"]}
}

// intact reports a fault in the folder of an owner: a facts file that does not match its dump, or a dump under a final
// name that pg_restore cannot read.
func intact(t *testing.T, settings map[string]string) error {
	t.Helper()
	s := storeOf(settings)
	found, err := s.entries()
	if err != nil {
		return err
	}
	for _, b := range found {
		switch b.State {
		case StateBroken:
			return fmt.Errorf("%s is broken", b.Name)
		case StateMissing, StateUnknown:
			continue // of a killed run; the next run finishes or removes it
		}
		have, err := sum(context.Background(), s.path(b.Name, suffixDump))
		if err != nil || have != s.backup(b.Name).facts.dump() {
			return errors.Join(err, fmt.Errorf("%s is not what was recorded", b.Name))
		}
	}
	return nil
}

func states(t *testing.T, settings map[string]string) map[string]State {
	t.Helper()
	found, err := storeOf(settings).entries()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]State{}
	for _, b := range found {
		all[b.Name] = b.State
	}
	return all
}

// A backup is killed at every step: dump, rename, facts, verification, retention, result. A good backup stays good, no
// incomplete file has a final name, and the next run of the slot ends as if no run had been killed.
func TestBackupKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	base := with(target(t), "BACKUP_KEEP_LAST", "1")
	first := with(base, "BACKUP_NAME", "small-1")
	second := with(base, "BACKUP_NAME", "small-2")
	template := filepath.Join(base["BACKUP_ROOT"], "template")
	must(t, verbBackup, with(first, "BACKUP_DIR", template), ReasonBackupSucceeded)
	fresh := func() { afresh(t, second, template) }
	killAtEachStep(t, verbBackup, second, ReasonBackupSucceeded, fresh, func(n int, steps []string,
		wrong func(string, ...any)) string {
		if n == 0 {
			mustHaveSteps(t, steps)
		}
		if err := intact(t, second); err != nil {
			wrong("a half file: %v", err)
		}
		all := states(t, second)
		if all["small-1"] != StateGood && all["small-2"] != StateGood {
			wrong("no good backup is there: %v", all)
		}
		o := runProgram(t, verbBackup, second)
		if !o.result.Succeeded {
			wrong("the next run: %s", o.result.Message)
		}
		if prepared := n >= slices.Index(steps, "prepared"); prepared != (o.result.Reason == ReasonAlreadyComplete) {
			wrong("the next run says %s", o.result.Reason)
		}
		if got := states(t, second); len(got) != 1 || got["small-2"] != StateGood {
			wrong("after the next run: %v", got)
		}
		if left := filesOf(t, second); len(left) != 3 {
			wrong("files after the next run: %v", left)
		}
		return fmt.Sprintf("found %v, the next run: %s", all, o.result.Reason)
	})
}

func mustHaveSteps(t *testing.T, steps []string) {
	t.Helper()
	for _, step := range []string{
		"snapshot", "dumping", "dumped", "globals", "prepared", "rename .dump", "rename .json", "renamed",
		"verified", "remove .dump", "remove .json", "removed", "result"} {
		if !strings.Contains(strings.Join(steps, "\n"), step) {
			t.Fatalf("step %q is missing in %q", step, steps)
		}
	}
}

// afresh replaces the files of a backup with the files of the template folder.
func afresh(t *testing.T, settings map[string]string, template string) {
	t.Helper()
	if err := os.RemoveAll(settings["BACKUP_DIR"]); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(settings["BACKUP_DIR"], os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	p, _ := workplace()
	_ = filepath.Walk(settings["BACKUP_DIR"], func(path string, _ os.FileInfo, _ error) error {
		p.give(t, path)
		return nil
	})
}

// A restore is killed at every step: the target is the old database, or the complete new database. The next run
// finishes the restore.
func TestRestoreKilledAtEveryStep(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_RESTORE_UID", "restore-1")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	for name, test := range map[string]struct{ before, overwrite, old string }{ // old: databaseState of the old database
		"missing":   {"", "false", "missing"},
		"empty":     {"CREATE DATABASE victim_empty;", "false", "no rows"},
		"overwrite": {"CREATE DATABASE victim_overwrite;", "true", "old"},
	} {
		t.Run(name, func(t *testing.T) {
			victim := "victim_" + name
			into := with(settings, "BACKUP_DATABASE", victim, "BACKUP_OVERWRITE", test.overwrite)
			fresh := func() {
				sql(t, "postgres", "DROP DATABASE IF EXISTS "+victim+" WITH (FORCE);\n"+test.before)
				if test.old == "old" {
					sql(t, victim, "CREATE TABLE old (a int);")
				}
			}
			dropAfter(t, victim)
			aside, replaced := asideNames(Config{Owner: into["BACKUP_OWNER"], Name: into["BACKUP_NAME"], Database: victim})
			killAtEachStep(t, verbRestore, into, ReasonRestoreSucceeded, fresh, func(_ int, _ []string,
				wrong func(string, ...any)) string {
				found := databaseState(t, victim)
				if found != test.old && found != "restored" {
					wrong("found %s", found)
				}
				o := runProgram(t, verbRestore, into)
				if o.result.Reason != ReasonRestoreSucceeded || o.result.Restored == nil || o.result.Restored.Rows != 100 ||
					o.result.Restored.Replaced != (name == "overwrite") {
					wrong("the next run: %s: %s", o.result.Reason, o.result.Message)
				}
				if got := databaseState(t, victim); got != "restored" {
					wrong("in the end %s", got)
				}
				if got := sql(t, "postgres", "SELECT count(*) FROM pg_database WHERE datname IN ('"+aside+"', '"+replaced+
					"');"); got != "0" {
					wrong("%s or %s was left", aside, replaced)
				}
				return "found " + found
			})
		})
	}
}

// databaseState is the state of a target of a restore: missing, old, restored, or its number of rows.
func databaseState(t *testing.T, name string) string {
	t.Helper()
	if sql(t, "postgres", "SELECT count(*) FROM pg_database WHERE datname = '"+name+"';") == "0" {
		return "missing"
	}
	switch sql(t, name, "SELECT coalesce(to_regclass('old')::text, to_regclass('t')::text, 'none');") {
	case "old":
		return "old"
	case "none":
		return "no rows"
	}
	if rows := sql(t, name, "SELECT count(*) FROM t;"); rows != "100" {
		return rows + " rows"
	}
	return "restored"
}

// A scratch process that is killed ends its server too: the run fails without evidence against the dump, and the next
// process removes the remaining files.
func TestScratchProcessIsKilled(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_SCRATCH", folder(t), "BACKUP_VERIFY", "Restore",
		"BACKUP_QUERY", "SELECT pg_sleep(600)")
	process := startScratchProcess(t, settings)
	var out, errs bytes.Buffer
	cmd := start(t, verbBackup, settings, &out, &errs)
	awaitQuery(t, process)
	tools := children(process.Process.Pid)
	_ = process.Process.Kill()
	_ = process.Wait()
	_ = cmd.Wait()
	if !strings.Contains(errs.String(), "pgbackup backup: ScratchFailed: no answer from the scratch container") ||
		states(t, settings)[settings["BACKUP_NAME"]] != StateUnverifiable {
		t.Errorf("%s, states %v", errs.String(), states(t, settings))
	}
	for id := range tools {
		await(t, "the end of "+tools[id], func() bool { return syscall.Kill(id, 0) != nil })
	}
	if left, _ := filepath.Glob(settings["BACKUP_SCRATCH"] + "/" + scratchPrefix + "*"); len(left) != 1 {
		t.Fatalf("directories: %v", left)
	}
	startScratchProcess(t, settings)
	must(t, verbBackup, with(settings, "BACKUP_QUERY", "SELECT 1"), ReasonAlreadyComplete)
	noScratchLeft(t, settings)
}
