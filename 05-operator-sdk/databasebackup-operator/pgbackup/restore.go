package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
)

// restoration is one restore.
type restoration struct {
	*program
	from    archive
	entries []entry
	server  *session // in the maintenance database
	name    string   // of a new database until it is complete: the same for each run of a restore
	target  string   // the database that the restore makes
	owners  bool     // objects get their owners
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
	r := &restoration{program: p, from: archive{p: p, snapshot: found},
		target: cmp.Or(p.config.Database, found.tag(tagDatabase)),
		name:   fmt.Sprintf("pgbackup_%x", sha256.Sum256([]byte(cmp.Or(p.config.RestoreUID, rand.Text()))))[:40]}
	if r.entries, err = r.from.contents(ctx); err != nil {
		return err
	}
	p.result.Restored = &Restored{Database: r.target}
	if r.server, err = p.connect(ctx, maintenance); err != nil {
		return err
	}
	defer r.server.close()
	// A newer pg_restore sends settings that an older server refuses, such as transaction_timeout.
	if server, image, err := p.versions(ctx, r.server, "pg_restore"); err != nil || server < image {
		return cmp.Or(err, because(nil, ReasonVersionMismatch, fmt.Sprintf("%d and %d", server, image)))
	}
	if err := r.checkUser(ctx); err != nil {
		return err
	}
	exists, finished, err := r.inspectTarget(ctx)
	if err != nil {
		return err
	}
	if !finished {
		if err := r.make(ctx, exists); err != nil {
			return err
		}
	}
	return r.complete(ctx, exists && !finished)
}

func (r *restoration) leaveOut(text string) {
	r.log.Warn("Left out", "what", text)
	r.result.Restored.LeftOut = append(r.result.Restored.LeftOut, text)
}

// powerful selects whether the user may become a superuser, or run programs on the server.
const powerful = `SELECT EXISTS (SELECT FROM pg_roles WHERE (rolsuper
  OR rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files'))
  AND pg_has_role(current_user, oid, 'MEMBER'))`

// checkUser refuses a user with more rights than the owners of the objects. A dump has code of the owners of tables,
// in constraints, generated columns and indexes. A restore runs it, and it can undo SET ROLE and SET SESSION AUTHORIZATION.
func (r *restoration) checkUser(ctx context.Context) error {
	risky, err := r.server.is(ctx, powerful)
	if err == nil && risky && !slices.Contains(r.from.snapshot.Tags, tagSuperusers) {
		return because(nil, ReasonPermissionDenied, "roles without SUPERUSER own objects of the dump, and their code would run with "+
			"the rights of this user, who is or may become a superuser: restore as a user without such rights, with CREATEDB and "+
			"a member of the owners")
	}
	if err != nil {
		return err
	}
	owners := r.from.snapshot.tags(tagRoleOwner)
	r.owners, err = r.server.is(ctx, `SELECT coalesce(bool_and(pg_has_role(current_user, oid, 'MEMBER')), true)
		FROM pg_roles WHERE rolname = ANY(string_to_array($1, chr(1)))`, strings.Join(owners, "\x01"))
	if !risky { // the role that initdb made has no tag
		r.owners = r.owners && !slices.ContainsFunc(r.entries, func(e entry) bool { return !e.belongsTo(append(owners, "pg_database_owner", "")) })
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

// marker is the default application_name of the user of the restore in a restored database. It shows a later run of the
// same restore that this one has finished. Each user may set it; a copy of the database has another OID.
const marker = `'restored ' || $2::text || ' ' || d.oid`

// inspectTarget examines the target: it may be missing, empty, or finished by an earlier run of this restore.
func (r *restoration) inspectTarget(ctx context.Context) (exists, finished bool, err error) {
	rows, err := r.server.query(ctx, `SELECT $2 <> '' AND EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) c
		WHERE setdatabase = d.oid AND c = 'application_name=' || `+marker+`) FROM pg_database d WHERE datname = $1`,
		r.target, r.config.RestoreUID)
	if err != nil || len(rows) == 0 || rows[0][0] == "t" {
		return len(rows) > 0, len(rows) > 0, serverFault(err)
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

// createRoles creates the roles that the server lacks. They get no login, attributes and memberships, because a restore
// should not grant rights: the globals beside the dump have them.
func (s *session) createRoles(ctx context.Context, roles []string) (created int, err error) {
	known, err := s.column(ctx, "SELECT rolname FROM pg_roles")
	if err != nil {
		return 0, serverFault(err)
	}
	missing := slices.DeleteFunc(slices.Clone(roles), func(role string) bool { return slices.Contains(known, role) })
	for _, role := range missing {
		err := s.do(ctx, "CREATE ROLE "+quote(role)+" NOLOGIN")
		if sqlState(err) == "42501" {
			return created, because(err, ReasonRolesMissing, list(missing))
		}
		if err != nil && sqlState(err) != "42710" { // another run has created it
			return created, err
		}
		created++
	}
	return created, nil
}

// make fills the target, or a new database that becomes the target. A new database has the encoding, the locale and the
// owner of the dumped one.
func (r *restoration) make(ctx context.Context, exists bool) (err error) {
	tags := r.from.snapshot
	r.result.Restored.RolesCreated, err = r.server.createRoles(ctx, append(tags.tags(tagRole), tags.tags(tagRoleOwner)...))
	if err != nil {
		return err
	}
	if exists {
		return r.fill(ctx, r.target)
	}
	options, owner, err := r.from.databaseStatement(ctx, r.entries)
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
	if r.server.do(ctx, "ALTER DATABASE "+r.name+" OWNER TO "+owner) != nil {
		r.leaveOut("the owner of the database")
	}
	return r.server.do(ctx, "ALTER DATABASE "+r.name+" RENAME TO "+quote(r.target))
}

// loader is a pg_restore that restores into a database and ends at the first error.
func (p *program) loader(database string, args ...string) tool {
	return tool{env: p.environment(p.serverVariables()...),
		args: append(args, "--exit-on-error", "--no-tablespaces", databaseOption("dbname", database))}
}

// fill restores into a database, and leaves the marker of this restore. The owner of a table needs the right to create
// tables in its schema, while an ordinary user gives it the table. So each role has it in a new database until the grants
// of schema public are restored.
func (r *restoration) fill(ctx context.Context, database string) error {
	kept, leftOut := split(r.entries)
	r.result.Restored.LeftOut = leftOut
	var grants []entry
	load := r.loader(database)
	if !r.owners {
		load.args = append(load.args, "--no-owner")
		r.leaveOut("owners of objects, because the user is not a member of all of them")
	} else if database == r.name {
		if err := r.doIn(ctx, database, "GRANT CREATE ON SCHEMA public TO PUBLIC"); err != nil {
			return err
		}
		isGrant := func(e entry) bool { return strings.HasPrefix(e.text, "ACL - SCHEMA public ") }
		grants, kept = only(kept, isGrant), slices.DeleteFunc(kept, isGrant)
	}
	if err := r.load(ctx, kept, load); err != nil {
		return err
	}
	if r.owners && database == r.name {
		if err := r.doIn(ctx, database, "REVOKE CREATE ON SCHEMA public FROM PUBLIC"); err != nil {
			return err
		}
		if err := r.load(ctx, grants, r.loader(database)); err != nil {
			return err
		}
	}
	return r.mark(ctx, database)
}

// doIn runs a statement in a database.
func (r *restoration) doIn(ctx context.Context, database, statement string) error {
	open, err := r.connect(ctx, database)
	if err != nil {
		return err
	}
	defer open.close()
	return open.do(ctx, statement)
}

// load has pg_restore restore entries.
func (r *restoration) load(ctx context.Context, entries []entry, t tool) error {
	resticErr, err := r.from.restore(ctx, entries, true, t)
	if err == nil {
		return r.repositoryFault(ctx, resticErr, ReasonRepositoryDamaged)
	}
	if code(err) == 0 || ctx.Err() != nil {
		return err
	}
	if fault := r.openRepository(ctx, false); fault != nil { // a look at each side shows whose fault it is
		return fault
	}
	return because(err, ReasonRestoreFailed)
}

// mark leaves the marker of a restore that has finished.
func (r *restoration) mark(ctx context.Context, database string) error {
	if r.config.RestoreUID == "" {
		return nil
	}
	statements, err := r.server.column(ctx, `SELECT format('ALTER ROLE %I IN DATABASE %I SET application_name = %L', current_user,
		$1::text, `+marker+`) FROM pg_database d WHERE datname = $1`, database, r.config.RestoreUID)
	if err != nil {
		return serverFault(err)
	}
	return r.server.do(ctx, statements...)
}

// complete gives the restored database its settings, grants, connection limit and comment, and reports. A run after one
// that was killed here does it again.
func (r *restoration) complete(ctx context.Context, existed bool) (err error) {
	if dumped := r.from.snapshot.tag(tagDatabase); existed || r.target != dumped {
		r.leaveOut("settings, grants, connection limit and comment of database " + dumped)
	} else {
		properties := only(r.entries, func(e entry) bool {
			return e.is("DATABASE PROPERTIES", "DATABASE", "ACL - DATABASE") && !strings.HasPrefix(e.text, "DATABASE - ")
		})
		resticErr, err := r.from.restore(ctx, properties, false, tool{env: r.environment(r.serverVariables()...),
			args: []string{"--create", databaseOption("dbname", r.target)}})
		if code(resticErr) != 0 || code(err) != 0 {
			r.leaveOut("some settings or grants of the database, or its comment; see the log")
		} else if err != nil {
			return err
		}
	}
	restored := r.result.Restored
	if restored.Tables, err = r.tables(ctx, r.target); err != nil {
		return err
	}
	r.succeed(ReasonRestoreSucceeded, "snapshot %s is restored into database %q: %d tables%s", r.from.snapshot.ID[:8],
		r.target, restored.Tables, notRestored(restored.LeftOut))
	return nil
}
