//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// held starts a restore, and returns when it has reached a step. release lets it continue,
// and returns its exit code and standard error.
func held(t *testing.T, into map[string]string, step string) (release func() (code int, errs string)) {
	t.Helper()
	dir := folder(t)
	hold, steps := filepath.Join(dir, "hold"), filepath.Join(dir, "steps")
	overwrite(t, hold, nil)
	var out, errs bytes.Buffer
	cmd := start(t, verbRestore,
		with(into, holdAt, step+":"+hold, stepsFile, steps, "BACKUP_RESULT", filepath.Join(dir, "result")), &out, &errs)
	await(t, "step "+step, func() bool { text, _ := os.ReadFile(steps); return strings.Contains(string(text), step+"\n") })
	return func() (int, string) {
		_ = os.Remove(hold)
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode(), errs.String()
	}
}

// A server has enough locks to dump tables that it cannot create in one transaction: each new table also needs locks
// for its index and its TOAST table. The test runs alone, because the dump needs most of the locks.
func TestRestoreOfManyTables(t *testing.T) {
	settings := with(target(t), "BACKUP_DATABASE", "many")
	database(t, "many", `DO $$ BEGIN
  FOR i IN 1..1000 LOOP EXECUTE 'CREATE TABLE t' || i || ' (a text PRIMARY KEY)'; COMMIT; END LOOP;
END $$;`)
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	dropAfter(t, "many_too")
	o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", "many_too"), ReasonRestoreSucceeded)
	if o.result.Restored.Tables != 1000 {
		t.Errorf("restored: %+v", o.result.Restored)
	}
}

// Two restores into one database at once: the second waits for the first, and fails when that takes too long.
func TestTwoRestoresAtOnce(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	database(t, "twice", "CREATE TABLE old (a int);")
	into := with(settings, "BACKUP_DATABASE", "twice", "BACKUP_OVERWRITE", "true")
	release := held(t, into, "restored")
	must(t, verbRestore, with(into, "BACKUP_WAIT_SECONDS", "0"), ReasonBusy)
	dropAfter(t, "once")
	must(t, verbRestore, with(into, "BACKUP_WAIT_SECONDS", "0", "BACKUP_DATABASE", "once"), ReasonRestoreSucceeded)
	if got := databaseState(t, "twice"); got != "old" {
		t.Errorf("while it is restored: %s", got)
	}
	if code, errs := release(); code != 0 {
		t.Errorf("the first: code %d: %s", code, errs)
	}
	if got := databaseState(t, "twice"); got != "restored" {
		t.Errorf("in the end: %s", got)
	}
}

// Another client may replace the unfinished database with another database, with or without the lock: that database
// never gets the name.
func TestRestoreNamesNoDatabaseThatItDidNotMake(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	database(t, "mistaken", "CREATE TABLE old (a int);")
	into := with(settings, "BACKUP_DATABASE", "mistaken", "BACKUP_OVERWRITE", "true")
	aside, _ := asideNames(Config{Owner: into["BACKUP_OWNER"], Name: into["BACKUP_NAME"], Database: "mistaken"})
	release := held(t, into, "restored")
	sql(t, "postgres", "DROP DATABASE "+aside+" WITH (FORCE);\nCREATE DATABASE "+aside+";")
	dropAfter(t, aside)
	code, errs := release()
	if got := databaseState(t, "mistaken"); got != "old" {
		t.Errorf("in the end: %s", got)
	}
	if code != exitFailed || !strings.Contains(errs, "another restore took the place of this one") {
		t.Errorf("code %d: %s", code, errs)
	}
}

// A restore without BACKUP_OVERWRITE replaces no data, even if each table has as many rows as the backup.
func TestRestoreRefusesOtherDataWithAsManyRows(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_DATABASE", "bank", "BACKUP_RESTORE_UID", "restore-1")
	database(t, "bank", "CREATE TABLE accounts AS SELECT n AS id, 100 AS balance FROM generate_series(1, 10) n;")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	sql(t, "bank", "UPDATE accounts SET balance = 0;")
	total := func() string { return sql(t, "bank", "SELECT sum(balance) FROM accounts;") }
	if o := must(t, verbRestore, settings, ReasonTargetNotEmpty); o.code != exitFinal || total() != "0" {
		t.Errorf("code %d, total %s: %s", o.code, total(), o.result.Message)
	}
	must(t, verbRestore, with(settings, "BACKUP_OVERWRITE", "true"), ReasonRestoreSucceeded)
	if total() != "1000" {
		t.Errorf("total after the restore: %s", total())
	}
}

// A database is empty when the restore begins. A table that another client creates in it meanwhile is not replaced
// without BACKUP_OVERWRITE.
func TestRestoreKeepsWhatWasCreatedMeanwhile(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	database(t, "filling")
	release := held(t, with(settings, "BACKUP_DATABASE", "filling"), "restored")
	sql(t, "filling", "CREATE TABLE old (a int);")
	code, errs := release()
	if got := databaseState(t, "filling"); got != "old" || code != exitFinal || !strings.Contains(errs, "TargetNotEmpty") {
		t.Errorf("code %d, in the end %s: %s", code, got, errs)
	}
}

// A later try of a finished restore changes nothing. Another restore, and a copy of the database, do not count as
// finished.
func TestRestoreRecognisesItsOwnEnd(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	for name, overwrite := range map[string]string{"again": "false", "again_over": "true"} {
		database(t, name)
		if overwrite == "true" {
			sql(t, name, "CREATE TABLE old (a int);")
		}
		into := with(settings, "BACKUP_DATABASE", name, "BACKUP_OVERWRITE", overwrite, "BACKUP_RESTORE_UID", "restore-1")
		first := must(t, verbRestore, into, ReasonRestoreSucceeded)
		sql(t, name, "DELETE FROM t WHERE a = 1;")
		second := must(t, verbRestore, into, ReasonRestoreSucceeded)
		if diff := cmp.Diff(first.result.Restored, second.result.Restored); diff != "" {
			t.Errorf("%s (-first +second):\n%s", name, diff)
		}
		got := databaseState(t, name)
		if got != "99 rows" || !strings.Contains(second.result.Message, "nothing was changed") {
			t.Errorf("%s: %s: %s", name, got, second.result.Message)
		}
		other := with(into, "BACKUP_OVERWRITE", "false", "BACKUP_RESTORE_UID", "restore-2")
		must(t, verbRestore, other, ReasonTargetNotEmpty)
		must(t, verbRestore, with(other, "BACKUP_RESTORE_UID", ""), ReasonTargetNotEmpty)
		if dump := schemaOf(t, name); strings.Contains(dump, "restore-1") {
			t.Errorf("a dump has the marker:\n%s", dump)
		}
	}
	settings = with(settings, "BACKUP_DATABASE", "again", "BACKUP_RESTORE_UID", "restore-1")
	must(t, verbBackup, with(settings, "BACKUP_NAME", "later"), ReasonBackupSucceeded)
	sql(t, "postgres", "DROP DATABASE again WITH (FORCE);")
	must(t, verbRestore, with(settings, "BACKUP_NAME", "later", "BACKUP_RESTORE_UID", ""), ReasonRestoreSucceeded)
	must(t, verbRestore, settings, ReasonTargetNotEmpty)
}

// Every new database is a copy of a template, and restores connect to postgres: a restore replaces none of them, also
// when the database that was dumped is the default.
func TestRestoreRefusesADatabaseThatTheServerNeeds(t *testing.T) {
	t.Parallel()
	settings := with(backedUp(t), "BACKUP_OVERWRITE", "true")
	database(t, "pattern", "CREATE TABLE old (a int); ALTER DATABASE pattern IS_TEMPLATE true;")
	t.Cleanup(func() { sql(t, "postgres", "ALTER DATABASE pattern IS_TEMPLATE false;") })
	databases := func() string {
		return sql(t, "postgres", "SELECT oid FROM pg_database WHERE datname "+
			"IN ('template0', 'template1', 'postgres', 'pattern') ORDER BY 1;")
	}
	before := databases()
	for _, name := range []string{"template0", "template1", "postgres", "pattern"} {
		o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", name), ReasonInvalidSettings)
		if !strings.Contains(o.result.Message, `"`+name+`"`) || !strings.Contains(o.result.Message, "databaseName") {
			t.Errorf("message: %s", o.result.Message)
		}
	}
	editFacts(t, settings, func(s *factsFile) { s.Database = "template1" })
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", ""), ReasonInvalidSettings)
	if after := databases(); after != before {
		t.Errorf("databases before: %s, after: %s", before, after)
	}
}

// An owner of a database who is not a superuser can replace the database, and restore it when it is lost.
func TestOverwriteByAnOwner(t *testing.T) {
	t.Parallel()
	settings := target(t)
	sql(t, "postgres", "CREATE ROLE tenant LOGIN CREATEDB PASSWORD 'tenant-word'; CREATE DATABASE rented OWNER tenant;")
	t.Cleanup(func() { sql(t, "postgres", "DROP DATABASE rented WITH (FORCE);\nDROP ROLE tenant;") })
	sql(t, "rented", `SET ROLE tenant; CREATE TABLE t AS SELECT generate_series(1, 100) AS a;
REVOKE CONNECT ON DATABASE rented FROM PUBLIC; ALTER DATABASE rented SET work_mem = '5MB';`)
	settings = with(settings, "BACKUP_DATABASE", "rented", "PGUSER", "tenant", "PGPASSWORD", "tenant-word")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	sql(t, "rented", "DELETE FROM t;")
	must(t, verbRestore, with(settings, "BACKUP_OVERWRITE", "true"), ReasonRestoreSucceeded)
	if got := databaseState(t, "rented"); got != "restored" {
		t.Errorf("in the end: %s", got)
	}
	properties := func() string {
		return sql(t, "postgres", `SELECT (SELECT string_agg(a::text, ' ' ORDER BY a::text) FROM unnest(datacl) a), setconfig
  FROM pg_database d JOIN pg_db_role_setting ON setdatabase = d.oid AND setrole = 0 WHERE datname = 'rented';`)
	}
	const want = "=T/tenant tenant=CTc/tenant|{work_mem=5MB}"
	if got := properties(); got != want {
		t.Errorf("grants and settings: %s", got)
	}
	sql(t, "postgres", "ALTER DATABASE rented SET log_statement = 'all';") // which only a superuser may restore
	must(t, verbRestore, with(settings, "BACKUP_OVERWRITE", "true"), ReasonPermissionDenied)
	if got := properties(); got != "=T/tenant tenant=CTc/tenant|{work_mem=5MB,log_statement=all}" {
		t.Errorf("grants and settings after a restore that failed: %s", got)
	}
	sql(t, "postgres", "DROP DATABASE rented WITH (FORCE);")
	for range 2 {
		must(t, verbRestore, with(settings, "BACKUP_RESTORE_UID", "restore-1"), ReasonRestoreSucceeded)
		if got := properties(); got != want {
			t.Errorf("grants and settings of the lost database: %s", got)
		}
	}
}
