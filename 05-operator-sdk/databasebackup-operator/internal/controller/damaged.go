package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
)

// stateBroken is the state of a backup with evidence against its dump, in the words of pgbackup.
const stateBroken = "Broken"

// evidence are the reasons of a failed restore that are evidence against the dump.
var evidence = []string{"ChecksumMismatch", "ArchiveUnreadable", "ArchiveIncomplete"}

// observeDamaged returns the backups of a DatabaseBackup that a restore found damaged.
func (r *DatabaseBackupReconciler) observeDamaged(
	ctx context.Context, b *databasesv1.DatabaseBackup,
) (names []string, err error) {
	list := &databasesv1.DatabaseRestoreList{}
	if err := r.List(ctx, list, client.InNamespace(b.Namespace), asCached); err != nil {
		return nil, fmt.Errorf("list DatabaseRestores: %w", err)
	}
	return damagedBackups(b, list.Items), nil
}

// damagedBackups returns the names of the backups against which a restore has evidence. Of several restores of one
// backup, the last decides. A DatabaseRestore that a user deletes is no evidence any more.
func damagedBackups(b *databasesv1.DatabaseBackup, restores []databasesv1.DatabaseRestore) (names []string) {
	slices.SortFunc(restores, func(x, y databasesv1.DatabaseRestore) int {
		return timeOf(x.Status.CompletionTime).Compare(timeOf(y.Status.CompletionTime))
	})
	for _, restore := range restores {
		name, owner := restore.Spec.BackupName, restore.Spec.BackupOwnerUID
		if restore.Spec.DatabaseBackupName != b.Name || owner != "" && owner != string(b.UID) {
			continue
		}
		end := condition(restore.Status.Conditions, databasesv1.ConditionSucceeded)
		isEvidence := slices.Contains(evidence, end.Reason)
		if end.Status == metav1.ConditionTrue || isEvidence {
			names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		}
		if isEvidence {
			names = append(names, name)
		}
	}
	return names
}

// markDamaged gives damaged backups their state. The facts on the volume may still call them Good: a restore mounts the
// volume read-only. The next run checks the broken backups of the status again, and records what it finds.
func markDamaged(backups []databasesv1.Backup, damaged []string) {
	for i := range backups {
		if slices.Contains(damaged, backups[i].Name) {
			backups[i].State = stateBroken
		}
	}
}

// brokenNames lists the broken backups of a status, separated by commas.
func brokenNames(backups []databasesv1.Backup) string {
	var names []string
	for _, backup := range backups {
		if backup.State == stateBroken {
			names = append(names, backup.Name)
		}
	}
	return strings.Join(names, ",")
}

// mapToRestored returns the DatabaseBackup whose backup a DatabaseRestore restores.
func mapToRestored(_ context.Context, obj client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(),
		Name: obj.(*databasesv1.DatabaseRestore).Spec.DatabaseBackupName}}}
}
