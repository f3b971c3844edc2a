// Pgbackup backs up PostgreSQL databases into a restic repository. It drives restic, pg_dump, pg_restore, initdb and
// postgres, and is the program in the Jobs of the DatabaseBackup operator. It does not use Kubernetes.
//
// Each verb is a container of a pod:
//
//	backup   dumps the database into the repository, unless the run's snapshot exists, and reads the dump back: with
//	         pg_restore (mode Archive), or into the scratch directory (mode Restore)
//	verify   restores the dump in the scratch directory into a server that only this container reaches, and asks the query
//	finish   checks the repository, records the verification, removes old backups, lists the backups
//	restore  restores a snapshot into a database that is new or empty
//	delete   removes all backups of an owner
//
// README.md lists the settings, the exit codes and the rules.
package main
