//go:build linux

package main

import (
	"testing"
)

// A repository is made. A backup is taken, verified, listed, and restored into a new database of another name.
func TestRoundTrip(t *testing.T) {
	settings := target(t)
	settings["RESTIC_REPOSITORY"] += "-new"
	dropAfter(t, "copy")
	verify, finish := verified(t, with(settings, "BACKUP_QUERY", "SELECT count(*) FROM t"))
	if verify.result.Restored.Tables != 1 {
		t.Errorf("%+v", verify.result.Restored)
	}
	if b := finish.result.Backups; len(b) != 1 || b[0].Verified != ModeRestore || b[0].Size == 0 || b[0].Completed.IsZero() {
		t.Errorf("backups: %+v", b)
	}
	must(t, verbBackup, settings, ReasonAlreadyComplete)
	o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy", "BACKUP_RESTORE_UID", "r-1"), ReasonRestoreSucceeded)
	t.Log(o.result.Message)
	if rows := sql(t, "copy", "SELECT count(*), sum(a) FROM t"); rows != "100|5050" {
		t.Error(rows)
	}
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy", "BACKUP_RESTORE_UID", "r-1"), ReasonRestoreSucceeded)
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy", "BACKUP_RESTORE_UID", "r-2"), ReasonTargetNotEmpty)
	must(t, verbDelete, settings, ReasonDeleteSucceeded)
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy2"), ReasonSnapshotNotFound)
}

// The database is lost, and then restored under its name: owner, settings, grants, limit and comment are back.
func TestALostDatabaseComesBackWithItsProperties(t *testing.T) {
	settings := target(t)
	roles(t, "shop", "reader")
	const name = `o'brien "x", 1`
	database(t, name, `CREATE TABLE t AS SELECT 1 a;`)
	sql(t, "postgres", `ALTER DATABASE `+quote(name)+` SET work_mem = '7MB'; ALTER DATABASE `+quote(name)+` CONNECTION LIMIT 9;
		ALTER ROLE reader IN DATABASE `+quote(name)+` SET search_path = x, y; GRANT CREATE ON DATABASE `+quote(name)+` TO reader;
		COMMENT ON DATABASE `+quote(name)+` IS 'the shop'; ALTER DATABASE `+quote(name)+` OWNER TO shop;`)
	const properties = `SELECT pg_get_userbyid(datdba), datacl, datconnlimit, shobj_description(d.oid, 'pg_database'),
		(SELECT array_agg(setconfig ORDER BY setrole) FROM pg_db_role_setting WHERE setdatabase = d.oid)
		FROM pg_database d WHERE datname LIKE 'o''brien%'`
	before := sql(t, "postgres", properties)
	must(t, verbBackup, with(settings, "BACKUP_DATABASE", name), ReasonBackupSucceeded)
	sql(t, "postgres", "DROP DATABASE "+quote(name)+";")
	o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", ""), ReasonRestoreSucceeded)
	if after := sql(t, "postgres", properties); after != before || before == "" {
		t.Errorf("before: %s\nafter:  %s\n%s", before, after, o.result.Message)
	}
}
