package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// heir is the role that owns the objects whose owner was a superuser, when a temporary role restored them: code of
// other owners may have changed them during the restore, so they do not become a superuser's again.
const heir = "pgbackup_restored"

// loader is a pg_restore that restores into a database and ends at the first error.
func (p *program) loader(database string) tool {
	return tool{env: p.environment(p.serverVariables()...), args: []string{"--exit-on-error", "--no-owner", "--no-acl",
		databaseOption("dbname", database)}}
}

// fill restores into the work database. Code of an owner runs while rows are loaded: in a constraint, a generated
// column, an index. Such code can undo SET ROLE and SET SESSION AUTHORIZATION, so a superuser does not load rows: a temporary
// role does, which has rights in this database only. It is not needed when only superusers own objects.
func (r *restoration) fill(ctx context.Context) error {
	open, err := r.connect(ctx, r.work)
	if err != nil {
		return err
	}
	defer open.close()
	load := r.loader(r.work)
	if err := r.restorePart(ctx, partFirst, false, load); err != nil {
		return err
	}
	temporary := r.super && (len(r.facts.Owners) == 0 ||
		slices.ContainsFunc(r.facts.Owners, func(o owned) bool { return !o.Superuser }))
	if temporary {
		variables, createErr := r.createTemporary(ctx, open)
		load.env = append(load.env, variables...)
		err = createErr
	}
	if err == nil {
		err = r.restorePart(ctx, partMain, true, load)
	}
	if err == nil {
		err = r.giveOwners(ctx, open, temporary)
	}
	if temporary {
		err = errors.Join(err, r.dropTemporary(context.WithoutCancel(ctx), open))
	}
	if err != nil {
		return err
	}
	resticErr, err := r.from.restore(ctx, r.parts[partLast], false, tool{env: r.environment(r.serverVariables()...),
		args: []string{"--no-owner", databaseOption("dbname", r.work)}})
	if code(resticErr) != 0 || code(err) != 0 {
		r.leaveOut("some grants, publications or comments, see the log")
	} else if err != nil {
		return err
	}
	return r.mark(ctx, open)
}

// restorePart restores a part of the dump.
func (r *restoration) restorePart(ctx context.Context, which part, whole bool, load tool) error {
	resticErr, err := r.from.restore(ctx, r.parts[which], whole, load)
	if err == nil {
		return r.repositoryFault(ctx, resticErr, ReasonRepositoryDamaged)
	}
	if code(err) == 0 || ctx.Err() != nil {
		return err
	}
	if fault := r.openRepository(ctx, false); fault != nil { // a look at each side shows whose fault it is
		return fault
	}
	if _, fault := r.tables(ctx, r.work); fault != nil {
		return fault
	}
	return because(err, ReasonRestoreFailed)
}

// createTemporary creates the temporary role, and returns the variables with which a tool connects as this role. The
// role may create and fill tables; nothing else belongs to it.
func (r *restoration) createTemporary(ctx context.Context, open *session) ([]string, error) {
	secret := rand.Text()
	return []string{"PGUSER=" + r.name, "PGPASSWORD=" + secret}, open.do(ctx,
		"SET log_statement = 'none'", "SET log_min_duration_statement = -1",
		"CREATE ROLE "+r.name+" LOGIN NOSUPERUSER BYPASSRLS PASSWORD '"+secret+"'",
		"GRANT CREATE, CONNECT, TEMPORARY ON DATABASE "+quote(r.work)+" TO "+r.name,
		strings.ReplaceAll(grantAll, "$role", r.name))
}

// grantAll gives the temporary role what the first part created: it creates tables in schemas, fills tables of
// extensions, and creates foreign tables.
const grantAll = `DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
    EXECUTE 'GRANT ALL ON SCHEMA ' || name || ' TO $role';
    EXECUTE 'GRANT ALL ON ALL TABLES IN SCHEMA ' || name || ' TO $role';
    EXECUTE 'GRANT ALL ON ALL SEQUENCES IN SCHEMA ' || name || ' TO $role';
  END LOOP;
  FOR name IN SELECT quote_ident(srvname) FROM pg_foreign_server LOOP
    EXECUTE 'GRANT USAGE ON FOREIGN SERVER ' || name || ' TO $role';
  END LOOP;
END $$`

// giveOwners gives each object its owner. When a temporary role restored them, no object gets a powerful owner.
func (r *restoration) giveOwners(ctx context.Context, open *session, temporary bool) error {
	protected, err := open.column(ctx, powerful)
	if err != nil {
		return serverFault(err)
	}
	var kept []string
	for _, o := range r.facts.Owners {
		if temporary && (o.Superuser || slices.Contains(protected, o.Role)) {
			kept = append(kept, o.Object)
			continue
		}
		err := open.do(ctx, "ALTER "+o.Object+" OWNER TO "+quote(o.Role))
		switch state := sqlState(err); {
		case slices.Contains([]string{"42P01", "42704", "42883", "3F000"}, state): // the object was left out
		case state != "":
			kept = append(kept, o.Object)
		case err != nil:
			return err
		}
	}
	if len(kept) > 0 {
		r.leaveOut("the owner of %d objects (%s)", len(kept), list(kept))
	}
	return nil
}

// dropTemporary drops the temporary role. What it still owns goes to a role without any right.
func (r *restoration) dropTemporary(ctx context.Context, open *session) error {
	owns, err := open.is(ctx, `SELECT EXISTS (SELECT FROM pg_shdepend JOIN pg_database d ON d.oid = dbid
		WHERE datname = current_database() AND deptype = 'o' AND refclassid = 'pg_authid'::regclass
		AND refobjid = (SELECT oid FROM pg_roles WHERE rolname = $1))`, r.name)
	if err != nil {
		return err
	}
	if owns {
		if _, err := open.createRoles(ctx, []string{heir}); err != nil {
			return err
		}
		if err := open.do(ctx, fmt.Sprintf("REASSIGN OWNED BY %s TO %s", r.name, heir)); err != nil {
			return err
		}
		r.leaveOut("objects without another owner belong to the role %s", heir)
	}
	return open.do(ctx, "DROP OWNED BY "+r.name, "DROP ROLE "+r.name)
}

// mark leaves the marker of a restore that has finished.
func (r *restoration) mark(ctx context.Context, open *session) error {
	if r.config.RestoreUID == "" {
		return nil
	}
	statements, err := open.column(ctx, `SELECT format('ALTER ROLE %I IN DATABASE %I SET application_name = %L', current_user, $1::text,
		`+marker+`) FROM pg_database d WHERE datname = $1`, r.work, r.config.RestoreUID)
	if err != nil {
		return serverFault(err)
	}
	return open.do(ctx, statements...)
}
