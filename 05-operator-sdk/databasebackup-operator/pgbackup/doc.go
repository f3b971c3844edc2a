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
// README.md lists the settings, which are environment variables, and the exit codes. The result is one line of JSON, on
// standard output and in the pod's termination message: see Result. Its message is a sentence of this program. Texts of
// tools and servers go to standard error, the pod's log.
//
// These rules hold:
//
//   - A dump that ends early is no snapshot: restic saves none when its command fails.
//   - Reasons come from SQLSTATEs, exit codes and types of errors, because messages come in the server's language.
//   - No secret is an argument of a program: passwords are in files and variables.
//   - A restore runs code of the owners of tables. So a user who is or may become a superuser does not restore a dump in
//     which other roles own objects. In the scratch server such code runs as its superuser: the container of verify has
//     no credentials.
//   - Retention never removes the newest verified backup, and removes nothing when two clocks disagree.
//   - A run that is killed leaves no wrong state: no snapshot, or a database with a temporary name, which the next run
//     of the same restore drops. A lock of restic is removed by the next run.
package main
