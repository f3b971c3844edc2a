package pgbackup

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// restore restores one backup into the database of the settings.
//
// An empty database is restored into as it is, in one transaction. One that is missing, or that is to be
// overwritten, is restored under another name first; only when all rows are there, the new one takes the name, and
// the old one is dropped after that. So no restore that fails costs what was there, or leaves nothing there.
func (p *program) restore(ctx context.Context) error {
	s, err := p.open(false)
	if err != nil {
		return err
	}
	unlock, err := s.lock(ctx, true, p.config.Wait)
	if err != nil {
		return err
	}
	defer unlock()
	found, err := p.named(s)
	if err != nil {
		return err
	}
	if err := p.checkArchive(ctx, s, found.facts); err != nil {
		return err
	}
	if p.config.Database == "" {
		p.config.Database = found.facts.Database
	}
	unlockTarget, err := p.lockTarget(ctx)
	if err != nil {
		return err
	}
	defer unlockTarget()
	return p.restoreFound(ctx, s, found)
}

// restoreFound restores a backup that is whole, while no other run restores into the same database.
func (p *program) restoreFound(ctx context.Context, s *store, found backup) error {
	target, err := p.inspect(ctx)
	if err != nil {
		return err
	}
	if target.exists && !target.empty && !p.config.Overwrite {
		return p.restoredAlready(ctx, found.facts)
	}
	created, err := p.createRoles(ctx, found.facts.Roles)
	if err != nil {
		return err
	}
	p.step("roles")
	dump := s.path(found.Name, suffixDump)
	var tables map[string]int64
	if target.exists && target.empty {
		tables, err = p.restoreInto(ctx, p.config.Database, dump, found.facts)
	} else {
		tables, err = p.restoreAside(ctx, dump, found.facts, target)
	}
	if err != nil {
		return err
	}
	r := p.restored(tables)
	r.Replaced, r.RolesCreated = target.exists && !target.empty, created
	p.succeed(ReasonRestoreSucceeded, "backup %s was restored into database %q: %d tables, %d rows", found.Name, r.Database, r.Tables, r.Rows)
	return nil
}

// restored notes what is in the database now.
func (p *program) restored(tables map[string]int64) *Restored {
	r := &Restored{Database: p.config.Database, Tables: len(tables)}
	for _, rows := range tables {
		r.Rows += rows
	}
	p.result.Restored = r
	return r
}

// restoredAlready looks at a database that is not empty and must not be replaced. A run that was killed after its
// last step left it so, with the rows of the backup: then nothing is missing. Any other is refused.
func (p *program) restoredAlready(ctx context.Context, facts *sidecar) error {
	tables, err := compareRows(ctx, p.target, p.config.Database, facts)
	if err != nil && reasonOf(err) != ReasonRowsDiffer {
		return err
	}
	if err != nil {
		return failf(ReasonTargetNotEmpty, "database %q is not empty: restore into another one, or set BACKUP_OVERWRITE=true to replace it", p.config.Database)
	}
	r := p.restored(tables)
	p.succeed(ReasonRestoreSucceeded, "database %q was restored already: each table has as many rows as in backup %s, %d tables, %d rows; nothing was changed",
		r.Database, facts.Name, r.Tables, r.Rows)
	return nil
}

// lockTarget waits until no other run restores into the database. The server frees the lock of a run that was killed.
// PostgreSQL counts such locks for each database apart, so all runs must use the same maintenance database; that no
// wrong database gets the name when they do not, swap sees to.
func (p *program) lockTarget(ctx context.Context) (unlock func(), err error) {
	deadline := time.Now().Add(p.config.Wait)
	held, err := p.connect(ctx, p.config.MaintenanceDatabase)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = held.close()
		}
	}()
	hash := sha256.Sum256([]byte("pgbackup restore\x00" + p.config.Database))
	try := fmt.Sprintf("SELECT pg_try_advisory_lock(%d);", int64(binary.BigEndian.Uint64(hash[:])))
	for {
		lines, err := held.ask(ctx, try)
		if err != nil {
			return nil, classify(err, "lock the restore", ReasonRestoreFailed, workSigns)
		}
		if strings.Join(lines, "") == "t" {
			return func() { _ = held.close() }, nil
		}
		if time.Now().After(deadline) {
			return nil, failf(ReasonBusy, "another run restored into database %q for more than %s", p.config.Database, p.config.Wait)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// state of the database that is restored into.
type targetState struct {
	exists, empty bool
	owner         string
}

// inspect waits for the server and looks at the target. It is empty when nothing in it was made by a user:
// no relation, function, type, schema, extension or large object.
func (p *program) inspect(ctx context.Context) (targetState, error) {
	var found targetState
	open, err := p.connect(ctx, p.config.MaintenanceDatabase)
	if err != nil {
		return found, err
	}
	lines, err := open.ask(ctx, "SELECT to_json(pg_get_userbyid(datdba)) FROM pg_database WHERE datname ="+literal(p.config.Database)+";")
	_ = open.close()
	if err != nil {
		return found, classify(err, "look for the database", ReasonRestoreFailed, workSigns)
	}
	if len(lines) == 0 {
		return found, nil
	}
	if err := json.Unmarshal([]byte(strings.Join(lines, "")), &found.owner); err != nil {
		return found, fmt.Errorf("read the owner of the database: %w", err)
	}
	found.exists = true
	if open, err = p.connect(ctx, p.config.Database); err != nil {
		return found, err
	}
	defer func() { _ = open.close() }()
	if lines, err = open.ask(ctx, emptyQuery); err != nil {
		return found, classify(err, "look into the database", ReasonRestoreFailed, workSigns)
	}
	found.empty = strings.Join(lines, "") == "t"
	return found, nil
}

// emptyQuery asks for objects with numbers above those that a new database is made with (16384). Large objects
// may have any number.
const emptyQuery = `
SELECT NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE p.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE t.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_namespace WHERE oid >= 16384 AND nspname <> 'public' AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_extension WHERE oid >= 16384)
  AND NOT EXISTS (SELECT FROM pg_largeobject_metadata);
`

// createRoles makes the roles that the dump needs and the server lacks: without login, attributes and
// memberships, which nobody should get by a restore. The globals beside the dump tell what they had.
func (p *program) createRoles(ctx context.Context, roles []string) (created int, err error) {
	names, err := json.Marshal(roles)
	if err != nil {
		return 0, err
	}
	missing := "FROM json_array_elements_text(" + literal(string(names)) + "::json) AS r WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r)"
	count, err := p.target.query(ctx, p.config.MaintenanceDatabase, "SELECT count(*) "+missing+";\n"+
		"SELECT format('CREATE ROLE %I NOLOGIN', r) "+missing+" \\gexec\n")
	if err != nil {
		return 0, classify(err, "create the roles that the dump needs", ReasonRestoreFailed, workSigns)
	}
	_, err = fmt.Sscan(count, &created)
	return created, err
}

// restoreInto restores into an empty database.
func (p *program) restoreInto(ctx context.Context, database, dump string, facts *sidecar) (map[string]int64, error) {
	p.step("restoring")
	if err := p.target.restore(ctx, database, dump, true); err != nil {
		return nil, classify(err, fmt.Sprintf("restore into database %q", p.config.Database), ReasonRestoreFailed, workSigns)
	}
	p.step("filled")
	return compareRows(ctx, p.target, database, facts)
}

// restoreAside restores under another name and then puts the database in the place of the old one.
func (p *program) restoreAside(ctx context.Context, dump string, facts *sidecar, old targetState) (tables map[string]int64, err error) {
	aside, replaced := asideNames(p.config)
	for _, left := range []string{aside, replaced} { // by a run that was killed
		if err := p.drop(ctx, left); err != nil {
			return nil, err
		}
	}
	p.step("aside")
	err = p.target.createDatabase(ctx, p.config.MaintenanceDatabase, aside, old.owner, facts)
	if err != nil {
		return nil, classify(err, fmt.Sprintf("create database %q", p.config.Database), ReasonRestoreFailed, workSigns)
	}
	defer func() {
		if err != nil { // also after a signal
			if left := p.drop(context.WithoutCancel(ctx), aside); left != nil {
				p.log.Warn("Failed to drop the unfinished database", "database", aside, "error", left.Error())
			}
		}
	}()
	made, err := p.oidOf(ctx, aside, old.exists)
	if err != nil {
		return nil, err
	}
	if tables, err = p.restoreInto(ctx, aside, dump, facts); err != nil {
		return nil, err
	}
	p.step("restored")
	// From here on it is not to be stopped: a signal must not leave it open which of the two has the name.
	ctx = context.WithoutCancel(ctx)
	if err = p.swap(ctx, aside, made, replaced, old.exists); err != nil {
		return nil, err
	}
	p.step("named")
	if err := p.drop(ctx, replaced); err != nil {
		p.result.Warning = fmt.Sprintf("the replaced database is still there, as %s: %s", replaced, p.line(err))
		p.log.Warn("Failed to drop the replaced database", "database", replaced, "error", p.line(err))
	}
	p.step("dropped")
	return tables, nil
}

// swaps is how often the names are tried to be swapped: who was disconnected may be back before that.
const swaps = 10

// oidOf is the number of the database that this run has made. When it is to replace one, it is closed to the public
// until it gets the grants of that one: the rows may be for few eyes.
func (p *program) oidOf(ctx context.Context, database string, closed bool) (string, error) {
	sql := "SELECT oid FROM pg_database WHERE datname =" + literal(database) + ";\n"
	if closed {
		sql += "SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC'," + literal(database) + ") \\gexec\n"
	}
	oid, err := p.target.query(ctx, p.config.MaintenanceDatabase, sql)
	return oid, classify(err, "look for the new database", ReasonRestoreFailed, workSigns)
}

// copyProperties gives one database the grants and the settings of another. Lists of names are taken apart, or each
// setting would become one name. Nothing of a value runs as SQL: owners of databases choose them.
const copyProperties = `
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC, %I', datname, pg_get_userbyid(datdba)) FROM pg_database WHERE datname =$new \gexec
SELECT format('GRANT %s ON DATABASE %I TO %s%s', privilege_type,$new, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba))) WHERE datname =$old \gexec
SELECT format('ALTER %s SET %I TO %s', CASE setrole WHEN 0 THEN format('DATABASE %I',$new) ELSE format('ROLE %I IN DATABASE %I', pg_get_userbyid(setrole),$new) END,
  name, CASE WHEN lower(name) IN ('search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries', 'shared_preload_libraries', 'unix_socket_directories')
    THEN coalesce((SELECT string_agg(quote_literal(coalesce(replace(m[1], '""', '"'), m[2])), ', ') FROM regexp_matches(value, '"((?:[^"]|"")*)"|([^", ]+)', 'g') m), '''''')
    ELSE quote_literal(value) END)
FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase, unnest(setconfig) c,
  LATERAL (SELECT split_part(c, '=', 1) AS name, substr(c, strpos(c, '=') + 1) AS value) s WHERE datname =$old \gexec
`

// swap gives a restored database its name, and the one that had it another, and copies what belongs to the database
// itself: all in one transaction, or nothing. It fails when the one that gets the name is not the one that this run
// made: another run may have put its own there, which is empty yet.
func (p *program) swap(ctx context.Context, aside, made, replaced string, exists bool) (err error) {
	rename := func(from, to string) string {
		return "SELECT format('ALTER DATABASE %I RENAME TO %I'," + literal(from) + "," + literal(to) + ") \\gexec\n"
	}
	sql := "BEGIN;\n"
	if exists {
		sql += strings.NewReplacer("$old", literal(p.config.Database), "$new", literal(aside)).Replace(copyProperties) +
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname =" + literal(p.config.Database) + ";\n" +
			rename(p.config.Database, replaced)
	}
	sql += rename(aside, p.config.Database) + "DO" + literal("BEGIN IF NOT EXISTS (SELECT FROM pg_database WHERE oid = "+made+
		" AND datname ="+literal(p.config.Database)+") THEN RAISE EXCEPTION 'another restore took the place of this one'; END IF; END") + ";\nCOMMIT;\n"
	for range swaps {
		_, err = p.target.query(ctx, p.config.MaintenanceDatabase, sql)
		if err == nil || !strings.Contains(err.Error(), "is being accessed by other users") {
			break
		}
	}
	return classify(err, fmt.Sprintf("give the restored database the name %q", p.config.Database), ReasonRestoreFailed, workSigns)
}

// asideNames are the names of the restored database before it gets its own, and of the replaced one after it lost
// its. They are the same for every try of one restore, so that the next one finds what a killed one left.
func asideNames(c Config) (aside, replaced string) {
	hash := sha256.Sum256([]byte(c.Owner + "\x00" + c.Name + "\x00" + c.Database))
	id := hex.EncodeToString(hash[:8])
	return "pgbackup_restore_" + id, "pgbackup_replaced_" + id
}

// drop drops a database if it exists. Who is connected to it is disconnected.
func (p *program) drop(ctx context.Context, database string) error {
	err := p.target.run(ctx, tool{name: "dropdb", args: []string{"--no-password", "--if-exists", "--force",
		databaseOption("maintenance-db", p.config.MaintenanceDatabase), "--", database}})
	return classify(err, fmt.Sprintf("drop database %q", database), ReasonRestoreFailed, workSigns)
}
