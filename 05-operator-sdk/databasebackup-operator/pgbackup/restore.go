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
	from   archive
	facts  facts
	parts  map[part][]entry
	server *session // in the maintenance database
	super  bool     // the user of the settings is a superuser
	name   string   // of a new database until it is complete, and of the temporary role: the same for each run of a restore
	target string   // the database that the restore makes
	work   string   // the database that is filled: a new one under another name, or the target when that is empty
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
		name:   fmt.Sprintf("pgbackup_%.16x", sha256.Sum256([]byte(cmp.Or(p.config.RestoreUID, rand.Text()))))}
	if r.facts, err = p.readFacts(ctx, found); err != nil {
		return err
	}
	entries, err := r.from.contents(ctx)
	if err != nil {
		return err
	}
	p.result.Restored = &Restored{Database: r.target}
	r.parts, p.result.Restored.LeftOut = split(entries)
	options, owner, err := r.from.databaseStatement(ctx, entries)
	if err != nil {
		return err
	}
	if r.server, err = p.connect(ctx, maintenance); err != nil {
		return err
	}
	defer r.server.close()
	if err := r.prepare(ctx); err != nil {
		return err
	}
	exists, finished, err := r.inspectTarget(ctx)
	if err != nil {
		return err
	}
	if !finished {
		if err := r.make(ctx, exists, options, owner); err != nil {
			return err
		}
	}
	return r.complete(ctx, exists && !finished)
}

// make fills the target, or a new database that becomes the target.
func (r *restoration) make(ctx context.Context, exists bool, options, owner string) (err error) {
	if r.result.Restored.RolesCreated, err = r.server.createRoles(ctx, r.facts.Roles); err != nil {
		return err
	}
	r.work = r.target
	if exists {
		return r.fill(ctx)
	}
	r.work = r.name
	defer func() {
		if err != nil {
			r.sweep(context.WithoutCancel(ctx), r.name)
		}
	}()
	err = r.server.do(ctx, "CREATE DATABASE "+r.work+" "+options, "REVOKE CONNECT ON DATABASE "+r.work+" FROM PUBLIC")
	if err != nil && faultOf(err).reason == ReasonFailed {
		err = because(err, ReasonRestoreFailed, "it cannot create the database; it may lack the locale of the dumped one")
	}
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	if owner != "" && r.server.do(ctx, "ALTER DATABASE "+r.work+" OWNER TO "+owner) != nil {
		r.leaveOut("the owner of the database")
	}
	return r.server.do(ctx, "GRANT CONNECT ON DATABASE "+r.work+" TO PUBLIC",
		"ALTER DATABASE "+r.work+" RENAME TO "+quote(r.target))
}

func (r *restoration) leaveOut(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.log.Warn("Left out", "what", text)
	r.result.Restored.LeftOut = append(r.result.Restored.LeftOut, text)
}

// powerful selects the roles that may run programs on the server, or become roles that may.
const powerful = `SELECT rolname FROM pg_roles r WHERE rolsuper OR EXISTS (SELECT FROM pg_roles p
  WHERE (p.rolsuper OR p.rolname IN ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files'))
    AND pg_has_role(r.oid, p.oid, 'MEMBER'))`

// prepare refuses users who should not restore, waits for another run of this restore, and removes the roles and
// databases that killed runs left. The session holds the lock.
//
// A dump has code of the owners of its tables, and a restore runs it. A superuser is replaced by a temporary role for
// that. An ordinary user who may become a superuser would give that power to the code.
func (r *restoration) prepare(ctx context.Context) (err error) {
	if r.super, err = r.server.is(ctx, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"); err != nil {
		return err
	}
	risky, err := r.server.is(ctx, "SELECT current_user IN ("+powerful+")")
	if err != nil {
		return err
	}
	if risky && !r.super {
		return because(nil, ReasonPermissionDenied, "the user may become a superuser or use files of the server, and so could "+
			"code in the dump: restore as an ordinary user, or as a superuser, whom a temporary role replaces")
	}
	locked, err := poll(ctx, r.config.Wait, func() (bool, error) {
		return r.server.is(ctx, "SELECT pg_try_advisory_lock(hashtext($1))", r.name)
	})
	if err != nil {
		return err
	}
	if !locked {
		return because(nil, ReasonTargetNotReady, "another run of this restore is active")
	}
	left, err := r.server.column(ctx, `SELECT name FROM (SELECT datname FROM pg_database UNION SELECT rolname FROM pg_roles) n (name)
		WHERE name ~ '^pgbackup_[0-9a-f]{32}$' AND pg_try_advisory_lock(hashtext(name))`)
	for _, name := range left {
		r.sweep(ctx, name)
	}
	return serverFault(err)
}

// sweep removes the database and the role of a run that has ended.
func (r *restoration) sweep(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, 2*grace)
	defer cancel()
	err := r.server.do(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)", "DROP ROLE IF EXISTS "+name)
	if err != nil {
		r.log.Warn("Failed to remove the database or the role of a run that has ended", "name", name, "error", err)
	}
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
	rows, err := r.server.query(ctx, `SELECT datistemplate, $2 <> '' AND EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) c
		WHERE setdatabase = d.oid AND c = 'application_name=' || `+marker+`) FROM pg_database d WHERE datname = $1`,
		r.target, r.config.RestoreUID)
	if err != nil || len(rows) == 0 {
		return false, false, serverFault(err)
	}
	if rows[0][1] == "t" {
		return true, true, nil
	}
	open, err := r.connect(ctx, r.target)
	if err != nil {
		return true, false, err
	}
	defer open.close()
	empty, err := open.is(ctx, emptyDatabase)
	if err == nil && (!empty || rows[0][0] == "t") {
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

// complete gives the restored database its properties, and reports. A run after one that was killed here does it again.
func (r *restoration) complete(ctx context.Context, existed bool) (err error) {
	dumped := r.from.snapshot.tag(tagDatabase)
	if existed || r.target != dumped {
		r.leaveOut("settings, grants, connection limit and comment of the database %s", dumped)
	} else if err := r.restoreProperties(ctx); err != nil {
		return err
	}
	restored := r.result.Restored
	if restored.Tables, err = r.tables(ctx, r.target); err != nil {
		return err
	}
	r.succeed(ReasonRestoreSucceeded, "snapshot %s is restored into database %q: %d tables%s", r.from.snapshot.ID[:8],
		r.target, restored.Tables, notRestored(restored.LeftOut))
	return nil
}

// restoreProperties restores settings, grants, the connection limit and the comment of the database.
func (r *restoration) restoreProperties(ctx context.Context) error {
	for _, e := range r.parts[partDatabase] {
		if e.is("DATABASE") && !e.is("DATABASE PROPERTIES") {
			continue
		}
		t := tool{args: []string{"--create", databaseOption("dbname", r.target)}, env: r.environment(r.serverVariables()...)}
		resticErr, err := r.from.restore(ctx, []entry{e}, false, t)
		if code(resticErr) != 0 || code(err) != 0 {
			r.leaveOut("the %s of the database", map[bool]string{true: "settings and the connection limit",
				false: strings.ToLower(strings.Fields(e.text)[0])}[e.is("DATABASE PROPERTIES")])
		} else if err != nil {
			return err
		}
	}
	return nil
}
