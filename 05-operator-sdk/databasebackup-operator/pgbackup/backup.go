package main

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// The files of snapshots, and those in the scratch directory.
const (
	dumpFile     = "dump"
	verifiedFile = "verified"
)

// backup takes a backup, unless an earlier pod of the same Job has taken it, and reads it as the mode of verification
// demands.
func (p *program) backup(ctx context.Context) error {
	if err := p.openRepository(ctx, true); err != nil {
		return err
	}
	reason := ReasonAlreadyComplete
	taken, err := p.find(ctx)
	if err != nil && faultOf(err).reason == ReasonSnapshotNotFound {
		reason = ReasonBackupSucceeded
		if err = p.dump(ctx); err == nil {
			taken, err = p.find(ctx)
		}
	}
	if err != nil {
		return err
	}
	b := taken.facts()
	p.result.Backup = b
	switch p.config.Verify {
	case ModeArchive:
		read := tool{args: []string{"--file=/dev/null"}, env: p.environment()}
		if err := (archive{program: p, snapshot: taken}).read(ctx, read); err != nil {
			return err
		}
		b.Verified = &Verified{ModeArchive, now()}
	case ModeRestore: // for the container verify
		_, err := p.restic(ctx, "dump", "--target="+filepath.Join(p.config.Scratch, dumpFile), taken.ID, dumpFile)
		if code(err) != 0 && noSpace(p.config.Scratch) {
			return because(err, ReasonScratchFailed)
		}
		if err := p.repositoryFault(ctx, err, ReasonRepositoryDamaged); err != nil {
			return err
		}
	}
	p.succeed(reason, "snapshot %s of database %q has %d bytes, of which the repository stored %d", b.Snapshot, b.Database,
		b.Size, b.Stored)
	return nil
}

// dump dumps the database into the repository. A tag says whether only superusers own objects, in the state that pg_dump
// dumps: a restore by a superuser relies on that.
func (p *program) dump(ctx context.Context) error {
	open, err := p.connect(ctx, p.config.Database)
	if err != nil {
		return err
	}
	defer open.close()
	if server := open.version(); server > p.config.Image && p.config.Image > 0 {
		return because(nil, ReasonVersionMismatch, fmt.Sprintf("%d and %d", server, p.config.Image))
	} else if server < p.config.Image {
		p.warn("the server has PostgreSQL %d: a restore needs one of %d, which the image has, or newer", server, p.config.Image)
	}
	if err := open.do(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"); err != nil {
		return err
	}
	exported, err := open.column(ctx, "SELECT pg_export_snapshot()")
	if err != nil {
		return err
	}
	tags, err := p.describe(ctx, open)
	if err != nil {
		return err
	}
	err = p.save(ctx, tags, dumpFile, "pg_dump", "--format=custom", "--compress=0", "--no-password",
		"--encoding="+open.parameter("server_encoding"), "--snapshot="+exported[0],
		fmt.Sprintf("--lock-wait-timeout=%d", p.config.wait().Milliseconds()), databaseOption("dbname", p.config.Database))
	if code(err) == 0 || ctx.Err() != nil {
		return err
	}
	if fault := p.openRepository(ctx, false); fault != nil { // a look at each side shows whose fault it is
		return fault
	}
	return p.dumpFault(ctx, err)
}

// describe returns the tags of a dump, and warns of what no tool can change.
func (p *program) describe(ctx context.Context, s *session) ([]string, error) {
	tags := []string{tagDump, tagVersion + url.QueryEscape(strings.Fields(s.parameter("server_version"))[0])}
	others, err := s.is(ctx, otherOwners)
	if err == nil && !others {
		tags = append(tags, tagSuperusers)
	}
	if err != nil {
		return nil, err
	}
	lost, err := s.column(ctx, extensionRows)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 {
		p.warn("pg_dump leaves out the rows of tables that belong to extensions: %s", list(lost))
	}
	fixed, err := s.column(ctx, fixedSettings)
	if len(fixed) > 0 {
		p.warn("settings of the role or the database that the user may not override apply to the dump: %s", list(fixed))
	}
	return tags, err
}

// dumpFault finds the reason why pg_dump failed.
func (p *program) dumpFault(ctx context.Context, err error) error {
	open, fault := p.connect(ctx, p.config.Database)
	if fault != nil {
		return fault
	}
	defer open.close()
	denied, fault := open.column(ctx, deniedTables)
	if fault != nil {
		return fault
	}
	if len(denied) > 0 {
		return because(err, ReasonPermissionDenied, "it may not read "+list(denied))
	}
	locked, fault := open.column(ctx, heldLocks)
	if fault == nil && len(locked) > 0 {
		return because(err, ReasonDumpFailed, "it may have waited too long for the lock of "+list(locked))
	}
	return because(err, ReasonDumpFailed)
}

// version is the major version of the server.
func (s *session) version() (major uint16) {
	_, _ = fmt.Sscan(s.parameter("server_version"), &major)
	return major
}

// deniedTables selects the tables that pg_dump dumps and the user may not read.
const deniedTables = `
SELECT c.oid::regclass FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE c.oid >= 16384 AND relkind IN ('r', 'p', 'S') AND relpersistence <> 't' AND nspname !~ '^pg_'
  AND NOT has_table_privilege(c.oid, 'SELECT')
  AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')`

// extensionRows selects the tables of extensions that have rows, and that the extension does not declare as
// configuration.
const extensionRows = `
SELECT c.oid::regclass FROM pg_depend d JOIN pg_class c ON c.oid = d.objid JOIN pg_extension e ON e.oid = d.refobjid
WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass AND relkind = 'r'
  AND NOT c.oid = ANY(coalesce(extconfig, '{}')) AND pg_relation_size(c.oid) > 0`

// fixedSettings selects settings of the role or the database that only a superuser may override.
const fixedSettings = `
SELECT name FROM pg_settings WHERE context LIKE 'superuser%' AND source IN ('database', 'user', 'database user')
  AND name !~ '^(log|track|auto_explain)_' AND NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)`

// heldLocks selects tables on which a session holds a lock for which pg_dump must wait.
const heldLocks = `
SELECT format('%s, which session %s (%s) holds', relation::regclass, pid, application_name)
FROM pg_locks JOIN pg_stat_activity USING (pid) JOIN pg_database d ON d.oid = database
WHERE mode = 'AccessExclusiveLock' AND granted AND relation >= 16384 AND d.datname = current_database()`

// otherOwners selects whether roles without SUPERUSER own objects of the database.
const otherOwners = `
SELECT EXISTS (SELECT FROM pg_shdepend JOIN pg_database d ON d.oid = dbid JOIN pg_roles r ON r.oid = refobjid
WHERE refclassid = 'pg_authid'::regclass AND deptype = 'o' AND datname = current_database() AND NOT rolsuper)`
