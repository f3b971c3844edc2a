package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
)

// restoration is one restore.
type restoration struct {
	*program
	from    archive
	entries []entry  // those to restore
	server  *session // in the maintenance database
	target  string   // the database that the restore makes
	name    string   // of a new database until it is complete: the same for each run of a restore
	marker  string   // the comment on the database that this restore has filled
}

// restore restores one snapshot into a database that is new or empty. A new database gets its name in one statement,
// when it is complete. So a run that fails leaves no database that looks restored.
func (p *program) restore(ctx context.Context) error {
	if err := p.openRepository(ctx, false); err != nil {
		return err
	}
	found, err := p.find(ctx)
	if err != nil {
		return err
	}
	p.result.Backup = found.facts()
	r := &restoration{program: p, from: archive{program: p, snapshot: found},
		target: cmp.Or(p.config.Database, found.tag(tagDatabase)),
		name:   fmt.Sprintf("pgbackup_%x", sha256.Sum256([]byte(cmp.Or(p.config.RestoreUID, rand.Text()))))[:40]}
	r.marker = fmt.Sprintf("restored from snapshot %s by %s", found.ID[:8], r.name)
	entries, err := r.from.contents(ctx)
	if err != nil {
		return err
	}
	if r.server, err = p.connect(ctx, maintenance); err != nil {
		return err
	}
	defer r.server.close()
	// A newer pg_restore sends settings that an older server refuses, such as transaction_timeout.
	if server := r.server.version(); server < p.config.Image {
		return because(nil, ReasonVersionMismatch, fmt.Sprintf("%d and %d", server, p.config.Image))
	}
	if err := r.checkUser(ctx); err != nil {
		return err
	}
	r.entries, p.result.Restored = split(entries)
	p.result.Restored.Database = r.target
	exists, finished, err := r.inspectTarget(ctx)
	if err == nil && !finished {
		err = r.make(ctx, exists)
	}
	if err != nil {
		return err
	}
	p.succeed(ReasonRestoreSucceeded, "snapshot %s is restored into database %q: %s", found.ID[:8], r.target, p.result.Restored)
	return nil
}

// powerful selects whether the user may become a superuser, or run programs on the server.
const powerful = `SELECT EXISTS (SELECT FROM pg_roles WHERE (rolsuper
  OR rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files'))
  AND pg_has_role(current_user, oid, 'MEMBER'))`

// checkUser refuses a user with more rights than the owners of the objects had. A dump has code of the owners of tables, in
// constraints, generated columns and indexes. A restore runs it with the rights of its user, whatever the role of the session.
func (r *restoration) checkUser(ctx context.Context) error {
	risky, err := r.server.is(ctx, powerful)
	if err == nil && risky && !slices.Contains(r.from.snapshot.Tags, tagSuperusers) {
		return because(nil, ReasonPermissionDenied, "roles without SUPERUSER own objects of the dump, and their code would run "+
			"with the rights of this user, who is or may become a superuser: restore as a user without such rights, with CREATEDB")
	}
	return err
}

// emptyDatabase selects whether no user has created an object in the current database. Objects of users have OIDs above
// those of a new database; large objects may have any.
const emptyDatabase = `
SELECT NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE c.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
    WHERE t.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_proc WHERE oid >= 16384) AND NOT EXISTS (SELECT FROM pg_extension WHERE oid >= 16384)
  AND NOT EXISTS (SELECT FROM pg_namespace WHERE oid >= 16384 AND nspname <> 'public' AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_event_trigger) AND NOT EXISTS (SELECT FROM pg_largeobject_metadata)`

// inspectTarget examines the target: it may be missing, empty, or finished by an earlier run of this restore. A comment
// on a database stays with it when its name changes, and a copy of the database does not have it.
func (r *restoration) inspectTarget(ctx context.Context) (exists, finished bool, err error) {
	comment, err := r.server.column(ctx,
		"SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = $1", r.target)
	if err != nil || len(comment) == 0 {
		return false, false, err
	}
	if comment[0] == r.marker {
		return true, true, nil
	}
	open, err := r.connect(ctx, r.target)
	if err != nil {
		return true, false, err
	}
	defer open.close()
	empty, err := open.is(ctx, emptyDatabase)
	if err == nil && !empty {
		err = because(nil, ReasonTargetNotEmpty)
	}
	return true, false, err
}

// make fills the target, or a new database that becomes the target. A new database has the encoding and the locale of the
// dumped one.
func (r *restoration) make(ctx context.Context, exists bool) error {
	if exists {
		return r.fill(ctx, r.target)
	}
	options, err := r.from.databaseOptions(ctx)
	if err != nil {
		return err
	}
	drop := "DROP DATABASE IF EXISTS " + r.name + " WITH (FORCE)" // of a run that was killed
	if err := r.server.do(ctx, drop, "CREATE DATABASE "+r.name+" "+options); err != nil {
		if faultOf(err).reason == ReasonFailed {
			return because(err, ReasonRestoreFailed, "it cannot create the database; it may lack the locale of the dumped one")
		}
		return err
	}
	if err := r.fill(ctx, r.name); err != nil {
		if dropErr := r.server.do(context.WithoutCancel(ctx), drop); dropErr != nil {
			r.log.Warn("Failed to drop an incomplete database; the next run drops it", "error", dropErr)
		}
		return err
	}
	return r.server.do(ctx, "ALTER DATABASE "+r.name+" RENAME TO "+quote(r.target))
}

// fill restores into a database, and leaves the marker of this restore.
func (r *restoration) fill(ctx context.Context, database string) error {
	err := r.from.restore(ctx, r.entries, r.environment(r.serverVariables()...), database)
	if err != nil && faultOf(err).reason == ReasonArchiveUnreadable {
		if fault := r.openRepository(ctx, false); fault != nil { // a look at each side shows whose fault it is
			return fault
		}
		return because(err, ReasonRestoreFailed)
	}
	if err != nil {
		return err
	}
	open, err := r.connect(ctx, database)
	if err != nil {
		return err
	}
	defer open.close()
	if err := open.do(ctx, fmt.Sprintf("COMMENT ON DATABASE %s IS '%s'", quote(database), r.marker)); err != nil {
		r.log.Warn("Failed to mark the database, which belongs to another user", "error", err)
	}
	return nil
}
