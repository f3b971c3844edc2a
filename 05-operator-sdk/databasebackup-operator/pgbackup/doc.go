// Command pgbackup takes backups of PostgreSQL databases, verifies and prunes them, and restores them. It runs in the
// pods of Jobs, in an image with the PostgreSQL client and server programs. It does not use Kubernetes: settings come
// from the environment, and the result is a file.
//
// # Verbs
//
// The only argument says what to do:
//
//	backup   dump, record the facts, verify in the mode BACKUP_VERIFY, prune. A BACKUP_NAME that exists is not
//	         dumped again: only missing verification and retention are done, and the reason is
//	         AlreadyComplete. A broken backup is dumped again.
//	restore  restore BACKUP_NAME into BACKUP_DATABASE, or into the database that was dumped
//	delete   remove all files of BACKUP_OWNER; BACKUP_NAME does not matter
//	scratch  restore the dumps that backup sends, until it is stopped: see Verification
//
// # Settings
//
//	variable                     verbs             default           meaning
//	BACKUP_ROOT                  all but scratch   required          where the volume is mounted, absolute
//	BACKUP_DIR                   all but scratch   required          a directory inside BACKUP_ROOT, absolute
//	BACKUP_OWNER                 all but scratch   required          UID of the resource that owns the backups
//	BACKUP_NAME                  backup, restore   required          name of the backup, like orders-29012345
//	BACKUP_DATABASE              backup            required          the database that is dumped
//	                             restore           the dumped one    the database that is restored into
//	PGHOST, PGUSER               backup, restore   required          server and user
//	PGPORT                       backup, restore   5432              port of the server
//	PGPASSWORD                   backup, restore   none              the password
//	BACKUP_VERIFY                backup            Archive           None, Archive or Restore
//	BACKUP_QUERY                 backup            none              SQL that Restore runs in the restored database
//	BACKUP_CHECK_AGAIN           backup            none              names of backups that a restore found damaged,
//	                                                                 separated by commas: see Verification
//	BACKUP_SCRATCH               scratch; Restore  required          directory that scratch shares with the other
//	                                                                 container: space for the whole database, a
//	                                                                 short path, writable
//	BACKUP_KEEP_LAST             backup            7                 see Keep
//	BACKUP_KEEP_DAILY, _WEEKLY,
//	_MONTHLY                     backup            0                 see Keep
//	BACKUP_MAX_AGE_DAYS          backup            0: no limit       see Keep
//	BACKUP_TIME_ZONE             backup            UTC               zone in which days, weeks and months begin
//	BACKUP_OVERWRITE             restore           false             replace a database that is not empty
//	BACKUP_RESTORE_UID           restore           none              UID of the resource that asks for the restore: a
//	                                                                 later run with it recognises that it has finished
//	BACKUP_WAIT_SECONDS          all but scratch   120               how long to wait for another run, and for the
//	                                                                 server (that at most 120)
//	BACKUP_RESULT                all               /dev/termination-log, for the result
//
// Other variables of libpq (PGSSLMODE, PGSSLROOTCERT, PGREQUIREAUTH, PGCONNECT_TIMEOUT, PGOPTIONS, …) are passed on,
// except variables that name a database, a service, an encoding or a file of passwords. PGHOST is one host, not a list.
// libpq before 16 does not know PGREQUIREAUTH and ignores it: use an image of PostgreSQL 16 or later if a server
// might ask for the password itself. Settings returns an error for the first invalid variable, with the reason
// and the fix.
//
// The process must run as a user that is in /etc/passwd of the image, and not as root: initdb refuses other users (use
// 999 in Debian's images of PostgreSQL, 70 in Alpine's). The volume's group should be the pod's fsGroup: files get mode
// 0660, directories 0770. The PostgreSQL of the image must be as new as the server, and 14 or later. The root file
// system may be read-only; for restore the volume may be read-only too.
//
// # Result and exit code
//
// The result is written to BACKUP_RESULT as JSON of at most ResultLimit bytes. Lists in it are shortened, and Omitted
// counts the elements that are left out. Standard output has the same line. Standard error has the log; if a run
// fails, its last line is "pgbackup VERB: Reason: message". If the default result file does not exist, it is not
// created. A run that was killed (SIGKILL) leaves no result.
//
//	0  succeeded
//	1  failed; another try may succeed
//	2  the program itself crashed (Go's code for a panic); another try may succeed
//	3  failed, and will fail again until a user fixes the cause: InvalidSettings, ToolMissing, VersionMismatch,
//	   BackupNotFound, FileMissing, QueryInvalid, TargetNotEmpty
//
// The Reasons are constants of this package. SIGTERM stops the PostgreSQL programs and removes unfinished files, within
// about five seconds; the reason is Interrupted.
//
// # Secrets
//
// PGUSER, PGPASSWORD and PGSSLPASSWORD come from Secrets: none of them is on a command line, in the log, or in the
// result. PGUSER is among them, because a wrong reference may put a password there. A line of a PostgreSQL program that
// contains such a value, a line of it, eight bytes of it, or an escaped form of it, is withheld completely, before it
// is cut. If such a line were shown with stars, the rest of a known message would give a common word away. A line about
// the identity of the user is always replaced by a sentence of this package. In sentences of this package, stars
// replace a value of at least eight bytes. Names that the resource shows (host, database, path) stay readable.
//
// # Files
//
// Each owner has a folder BACKUP_DIR/BACKUP_OWNER, so that resources that share a volume cannot change each other's
// files, even if they have the same name. For each backup the folder contains:
//
//	NAME.dump         pg_dump, custom format
//	NAME.globals.sql  pg_dumpall --globals-only: roles without their passwords, tablespaces
//	NAME.json         the facts: sizes, SHA-256, times, versions, rows of each table, owner and grants, verification
//
// It also contains .lock, and during a run temporary files such as NAME.dump.XXXXXXXX.tmp. All three files are synced
// to disk under temporary names before the first gets its final name. The facts get their final name last; only then is
// the backup complete. A run that is killed before all files are synced leaves temporary files. The next run of the
// same name removes them at once, and any other backup of the owner after a day. If a run is killed later, the next
// backup of the owner finishes its work. The lock allows only one run at a time, and the kernel releases it when the
// process that holds it ends.
//
// The rows of each table are counted in the snapshot that pg_dump dumps (pg_export_snapshot), so that the counts match
// even if the database is busy. That reads each table twice. With BACKUP_VERIFY=None they are not counted. They are
// counted when the backup is complete, and a table that cannot be counted costs nothing: the facts and the result have
// the reason, and a restore does not compare its rows. Examples are an index over a function that is not found with the
// search_path of pg_dump, an unlogged table on a hot standby, and a table that was truncated after the snapshot.
//
// A dump has the encoding of the database, so its bytes are those of the database, whether or not they are UTF-8. In
// names and messages of a database in SQL_ASCII, a byte that is not UTF-8 is written as \xNN.
//
// # Verification
//
// Archive compares size and SHA-256 of both files with the facts, and reads the table of contents (pg_restore
// --list): it must not be empty, and must have the data of as many tables as were counted.
//
// Restore does the same, has pg_restore read the dump to its end, and then sends the dump to the process of the verb
// scratch, through a unix socket in BACKUP_SCRATCH. That process makes a PostgreSQL server, by initdb in
// BACKUP_SCRATCH, with a unix socket and without TCP. The server is always removed afterwards. The process creates the
// roles that the dump needs, restores the dump, and compares the rows of each table and the number of large objects
// with those of the facts. Then BACKUP_QUERY runs, as a user who may read all data and change nothing. The query passes when
// it returns at least one row whose first value is not false, NULL, empty or 0.
//
// A restore runs code of the database: a CHECK or an index may call functions, and the scratch server restores them as
// its superuser, who may start programs. So a user who may create tables in the database can run any program in the
// container of the scratch server. Run the verb scratch in a separate container, with neither the volume nor the
// credentials, and with separate process IDs. Such a program can also send a false result, and so decide whether its
// own database counts as verified. The length of the result and its possible reasons are limited.
//
// The outcome is recorded in the facts: Verified when it passed, otherwise Failure. The dump is Broken only with
// evidence against it: ChecksumMismatch, ArchiveUnreadable, ArchiveIncomplete. With any other reason it is
// Unverifiable. The scratch server is not the server that was dumped: it may lack a locale, a dictionary, an extension,
// a role, space or memory. It also runs code of the dump. So no report of the scratch server is evidence. A backup that
// passed an equally strong verification before stays Good. A run that was stopped records nothing.
//
// A restore that finds evidence against a dump cannot record it, because its volume may be read-only. The next backup
// with the name in BACKUP_CHECK_AGAIN verifies that backup again (Archive), before retention.
//
// # Retention
//
// Keep decides from the files that exist. Each backup has a State: it is Good if it passed its last verification and
// its files have the recorded size. The newest good backup is never removed, and neither is the newest dump, even if
// it is broken. Backups that were not or could not be verified are kept by the same rules, but are counted
// separately: they replace no good backup, and no good backup replaces them. With BACKUP_VERIFY=None no backup is
// good, and the rules apply to unverified backups. Retention also runs after a verification that failed, because a
// broken dump does not count, and when the volume is full, so that the next try may find space. The backup of the
// present run stays until the next run, even if the clock is wrong. If a file cannot be removed, the
// run succeeds with a Warning.
//
// # Restore
//
// The dump is verified (Archive) before anything is changed. Roles that the dump needs and the server lacks are created
// without login, attributes and memberships; the globals have those, and a user decides. A database that is not empty
// is refused (TargetNotEmpty), unless BACKUP_OVERWRITE is true: before the work, and again before the new database gets
// the name. A template and the database postgres are always refused (InvalidSettings): the server copies a template
// into every new database.
//
// The backup is restored into a new database (pgbackup_restore_ and a number). The new database has the encoding and
// the locale of the dumped database, or those of the empty database that it replaces. When it has all its rows, the
// restore ends the connections to an old database. In one transaction, the old database is renamed (pgbackup_replaced_
// and the number) and the new one gets its name. Then the old database is dropped. The volume of the server needs space
// for both. The next run of the restore drops the databases that a killed run left. The user must be allowed to create
// databases, to own them, to make their settings, and to create extensions and roles if the dump needs them.
//
// Besides its content a database has properties: an owner, grants (GRANT CONNECT), settings (ALTER DATABASE … SET,
// ALTER ROLE … IN DATABASE … SET), a connection limit and a comment. If the old database has any of these, or belongs
// to another user than the user of the restore, the new database gets all of them from the old database. Otherwise,
// and without an old database, they come from the facts. Properties that an earlier restore took from a backup, and
// that no user has changed since, do not count: so the right backup can replace a wrong one. A statement that the
// server refuses, such as a grant to a role that does not exist, is in the Warning of the result. If it was about a
// property of the old database, the restore fails instead. The new database has the tablespace of the old database.
// Security labels are not restored. The public cannot connect to the new database until it has its grants.
//
// A run can be killed when the database has its name and the result is not written. So the transaction that gives the
// name also sets a marker in the database: the default application_name of the user of the restore becomes "restored"
// or "replaced", BACKUP_RESTORE_UID, the OID of the database, and a checksum of the properties that came from the
// facts. A run that finds the marker of its UID and this OID succeeds and changes nothing, so that later writes of
// users are kept. Rows are never compared for this. Without BACKUP_RESTORE_UID no marker is written. An archive of the
// database contains the marker as a setting. In a database that is made from it the marker counts for nothing, because
// that database has another OID.
//
// Restores into one database run one after the other: each holds an advisory lock in the database postgres, and
// a run that does not get it within BACKUP_WAIT_SECONDS fails with Busy. Even if the lock is lost, only the database
// that the run has created can get the name.
package main
