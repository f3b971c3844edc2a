// Package pgbackup takes backups of PostgreSQL databases, verifies, prunes and restores them. It is the
// program pgbackup, which runs in the pods of Jobs, in an image with the PostgreSQL client and server
// programs. It knows nothing of Kubernetes: settings come from the environment, the result is a file.
//
// # Verbs
//
// The one argument says what to do:
//
//	backup   dump, record the facts, verify as BACKUP_VERIFY asks, prune. When BACKUP_NAME is there already it
//	         is not dumped again: what is missing (verification, retention) is made up for, and the reason is
//	         AlreadyComplete. One that was found to be broken is dumped anew.
//	verify   verify BACKUP_NAME as BACKUP_VERIFY asks (Archive or Restore) and record the outcome
//	prune    apply retention alone
//	restore  restore BACKUP_NAME into BACKUP_DATABASE, or into the database that was dumped
//	delete   remove all files of BACKUP_OWNER; BACKUP_NAME does not matter
//	list     print the facts of each backup of BACKUP_OWNER as a line of JSON, newest first
//
// # Settings
//
//	variable                     verbs                    default               meaning
//	BACKUP_ROOT                  all                      required              where the volume is mounted, absolute
//	BACKUP_DIR                   all                      required              a directory inside BACKUP_ROOT, absolute, no ..
//	BACKUP_OWNER                 all                      required              UID of the resource that the backups belong to
//	BACKUP_NAME                  backup, verify, restore  required              name of the backup, like orders-29012345
//	BACKUP_DATABASE              backup, restore          restore: the one      database that is dumped (required), or restored
//	                                                      that was dumped       into
//	PGHOST, PGUSER               backup, restore          required              server and user
//	PGPORT                       backup, restore          5432                  port of the server
//	PGPASSWORD or PGPASSFILE     backup, restore          none                  credentials
//	BACKUP_VERIFY                backup, verify           Archive               None, Archive or Restore
//	BACKUP_QUERY                 backup, verify           none                  SQL that Restore asks of the restored database
//	BACKUP_KEEP_LAST             backup, prune            7                     see Keep
//	BACKUP_KEEP_DAILY, _WEEKLY,
//	_MONTHLY                     backup, prune            0                     see Keep
//	BACKUP_MAX_AGE_DAYS          backup, prune            0: no limit           see Keep
//	BACKUP_TIME_ZONE             backup, prune            UTC                   zone in which days, weeks and months begin
//	BACKUP_OVERWRITE             restore                  false                 replace a database that is not empty
//	BACKUP_MAINTENANCE_DATABASE  restore                  postgres              database to connect to for making others; the
//	                                                                            same for all restores into one server
//	BACKUP_WAIT_SECONDS          all                      120                   how long to wait for another run, and for the server (that at most 120)
//	BACKUP_SCRATCH               backup, verify           TMPDIR, then /tmp     where Restore makes its server: room for the
//	                                                                            whole database, a short path, writable
//	BACKUP_TOOLS                 all                      PATH                  directory of the PostgreSQL programs
//	BACKUP_RESULT                all                      /dev/termination-log  where the result goes
//
// Other variables of libpq (PGSSLMODE, PGSSLROOTCERT, PGCONNECT_TIMEOUT, PGOPTIONS, …) pass through; those that
// name a database, a service or an encoding do not. Settings tells the first variable that is wrong, the
// reason, and the cure.
//
// libpq ignores a password file that its group may read, and with fsGroup the files of Secrets are such:
// PGPASSWORD from the Secret is the simple way.
//
// The process runs as a user that /etc/passwd of the image knows, not root: initdb refuses others, and Restore
// needs it (999 in Debian's images of PostgreSQL, 70 in Alpine's). The volume's group should be the pod's
// fsGroup: files get mode 0660, directories 0770. The PostgreSQL of the image must be as new as the server,
// and 14 or later. Root may be read-only when BACKUP_SCRATCH and BACKUP_DIR are writable; restore and list
// work with the volume mounted read-only.
//
// # Result and exit code
//
// Result is written to BACKUP_RESULT as JSON of at most ResultLimit bytes; lists in it are cut from their ends,
// and Omitted counts what is left out. Standard output has the same line (list prints the facts instead).
// Standard error has the log; when a run fails its last line is "pgbackup VERB: Reason: sentence".
// A default result file that does not exist is not made. A run that was killed (SIGKILL) leaves no result.
//
//	0  succeeded
//	1  failed, and may go well another time
//	2  the program itself crashed (Go's code for a panic); another try may survive
//	3  failed, and will again until somebody changes something: InvalidSettings, ToolMissing, VersionMismatch,
//	   BackupNotFound, FileMissing, QueryInvalid, TargetNotEmpty
//
// The Reasons are constants of this package. No password is on a command line, in the log, or in the result.
// SIGTERM stops the PostgreSQL programs and removes what is unfinished, within about five seconds; the
// reason is Interrupted.
//
// # Files
//
// Each owner has a folder BACKUP_DIR/BACKUP_OWNER, so that resources that share a volume cannot touch each
// other's files, even when they have the same name. In it lie, for each backup:
//
//	NAME.dump         pg_dump, custom format
//	NAME.globals.sql  pg_dumpall --globals-only: roles without their passwords, tablespaces
//	NAME.json         the facts: sizes, SHA-256, times, versions, rows of each table, verification
//
// and .lock, and during a run NAME.dump.XXXXXXXX.tmp and its like. All three are durable under temporary names
// before the first gets its final one; the facts get theirs last and make the backup complete. A run that is
// killed before all are durable leaves temporary files, which the next run of the same name removes at once
// and any run of the owner after a day. One that is killed later is finished by the next run of the owner
// (backup, verify or prune). The lock keeps two runs apart and is free when its holder is dead.
//
// The rows of each table are counted in the snapshot that pg_dump dumps (pg_export_snapshot), so that they
// match however busy the database is. That reads each table twice.
//
// # Verification
//
// Archive compares size and SHA-256 of both files with the facts, and reads the table of contents
// (pg_restore --list): it must not be empty, and hold data of as many tables as were counted.
//
// Restore does that, and then restores into a server of its own: initdb in BACKUP_SCRATCH, a unix socket and
// no TCP, without credentials of the target, removed afterwards in any case. The roles of the globals are made
// there, the dump is restored, and the rows of each table and the number of large objects must be those of
// the facts. Then BACKUP_QUERY runs, as a user who reads everything and changes nothing. It passes when it
// returns at least one row whose first value is not false, NULL, empty or 0.
//
// Restore runs code of the database: a CHECK or an index may call functions, and the scratch server restores them
// as its superuser, who may start programs. So whoever may make tables in the database can run what they like in the
// pod of the Job, as its user, beside the volume with all backups that lie there. They do not find the password: the
// programs of the scratch server do not get it, and no process of the same user may read the environment of this one
// (PR_SET_DUMPABLE); a password file they could read, so use PGPASSWORD with Restore. Where the owners of tables are
// not trusted that far, use Archive.
//
// The outcome is recorded in the facts: Verified when it passed, Failure when the dump is at fault
// (ChecksumMismatch, ArchiveUnreadable, ArchiveIncomplete, RestoreFailed, RowsDiffer, QueryFailed). What only
// the run lacked (ScratchFailed: no room, no memory, an extension that the image lacks; QueryInvalid;
// Interrupted) is not held against the dump; that Archive passed before it is recorded.
//
// # Retention
//
// Keep decides, by the files that are there. State tells what each is worth: Good are those that passed
// their last verification and have the recorded size. The newest good one is never removed, and neither is the newest
// dump of all, broken or not. With
// BACKUP_VERIFY=None none is good, and the rules work on the unverified ones. After a verification that
// failed retention runs all the same: a broken dump counts for nothing in it; and when the volume is full, so that
// the next try may find room. What a run has just taken stays until the next one, whatever its clock says. A file
// that cannot be removed fails prune, but not backup: that succeeds with a Warning.
//
// # Restore
//
// The dump is verified (Archive) before anything is touched. Roles that the dump needs and the server lacks
// are made without login, attributes and memberships; the globals tell what they had, and a person decides. An
// empty database is restored into in one transaction. A missing one is made with the encoding and locale of
// the dumped one. One that is not empty is refused (TargetNotEmpty), unless each of its tables has as many rows as the
// backup: so a run leaves it that was killed after its last step, and RestoreSucceeded says that it was restored
// already and nothing was changed. (Rows are counted, not compared: one that was merely edited since counts as
// restored; to get the old rows back, overwrite.) With BACKUP_OVERWRITE=true it is replaced:
// the backup is restored into a new database beside it (pgbackup_restore_ and a number), and only when all its
// rows are there, the connections to the old one are ended, and the new one takes its name, in the transaction in
// which the old one gets another (pgbackup_replaced_ and the number). Then the old one is dropped. The new one
// has the same owner, and gets the grants and the settings that the old one has itself (GRANT CONNECT, ALTER DATABASE …
// SET, ALTER ROLE … IN DATABASE … SET) in that transaction; the public cannot connect to it before. Its comment,
// connection limit, security labels and tablespace are lost. The volume of the server needs room for both. The next
// try drops what a killed one left. The user must be allowed to create databases, to own them, to make those settings,
// and to create extensions and roles if need be.
//
// Restores into one database run one after the other: each holds an advisory lock in the maintenance database, and who
// does not get it within BACKUP_WAIT_SECONDS fails with Busy. Should the lock be lost, no other database than the one
// that the run has made gets the name.
package pgbackup
