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
