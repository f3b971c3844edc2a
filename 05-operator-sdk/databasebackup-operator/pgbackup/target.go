package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// maintenance is the database to which a restore connects for creating and renaming others.
const maintenance = "postgres"

// lockTarget waits until no other run restores into the database. The server releases the lock of a run that was killed
// or has lost its connection. Even then swap refuses to give the name to a wrong database.
func (p *program) lockTarget(ctx context.Context) (unlock func(), err error) {
	deadline := time.Now().Add(p.config.Wait)
	held, err := p.connect(ctx, maintenance)
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
			return nil, classify(err, "lock the restore", ReasonRestoreFailed, workPatterns)
		}
		if strings.Join(lines, "") == "t" {
			return func() { _ = held.close() }, nil
		}
		if time.Now().After(deadline) {
			return nil, failf(ReasonBusy, "another run restored into database %q for more than %s",
				p.config.Database, p.config.Wait)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// targetState is the state of the database to restore into.
type targetState struct {
	exists, empty bool
	// ownProperties is true when the database has grants, settings, a connection limit or a comment, or belongs to
	// another user than the user of the restore. Then it keeps all of them. Otherwise the properties in the archive are
	// restored.
	ownProperties bool
	// finished is the first word of the marker that an earlier run of this restore left, empty without one.
	finished   string
	owner      string
	tablespace string   // empty for the tablespace of template0, which needs no permission
	source     snapshot // only the encoding and the locale
}

// These words begin a marker: the database was new or empty, or it replaced a database with data.
const (
	markRestored = "restored"
	markReplaced = "replaced"
)

// marker is SQL for the text by which a later run recognises that this restore has finished. It is the default
// application_name of the user of the restore in the database. The transaction that names the database can write it,
// and each user may set it: PostgreSQL permits custom settings only to superusers. A copy of the database has another
// OID.
func (p *program) marker(word, oid string) string {
	return "(" + literal(word+" "+p.config.RestoreUID+" ") + " || " + oid + ")"
}

// targetQuery reads one row about the database $name.
const targetQuery = `
SELECT json_build_object(
  'owner', pg_get_userbyid(d.datdba), 'tablespace', spcname,
  'source', json_build_object('encoding', pg_encoding_to_char(d.encoding), 'row', to_json(d)),
  'ownProperties', d.datacl IS NOT NULL OR d.datconnlimit <> -1 OR shobj_description(d.oid, 'pg_database') IS NOT NULL
    OR pg_get_userbyid(d.datdba) <> current_user OR EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) c
      WHERE setdatabase = d.oid AND c !~ '^application_name=(restored|replaced) '),
  'finished', (SELECT split_part(substr(c, 18), ' ', 1) FROM pg_db_role_setting, unnest(setconfig) c
    WHERE setdatabase = d.oid AND c IN ('application_name=' || $restored, 'application_name=' || $replaced) LIMIT 1))
FROM pg_database d JOIN pg_database template0 ON template0.datname = 'template0'
LEFT JOIN pg_tablespace s ON s.oid = d.dattablespace AND s.oid <> template0.dattablespace
WHERE d.datname =$name;
`

// inspect waits for the server and examines the target. The target is empty when no user has created an object in it:
// no relation, function, type, schema, extension or large object.
func (p *program) inspect(ctx context.Context) (targetState, error) {
	var found targetState
	open, err := p.connect(ctx, maintenance)
	if err != nil {
		return found, err
	}
	lines, err := open.ask(ctx, strings.NewReplacer("$name", literal(p.config.Database),
		"$restored", p.marker(markRestored, "d.oid"), "$replaced", p.marker(markReplaced, "d.oid")).Replace(targetQuery))
	_ = open.close()
	if err != nil {
		return found, classify(err, "look for the database", ReasonRestoreFailed, workPatterns)
	}
	if len(lines) == 0 {
		return found, nil
	}
	var row struct {
		Owner, Tablespace, Finished string
		OwnProperties               bool
		Source                      snapshot
	}
	if err := json.Unmarshal([]byte(strings.Join(lines, "")), &row); err != nil {
		return found, fmt.Errorf("read the properties of the database: %w", err)
	}
	found = targetState{exists: true, owner: row.Owner, tablespace: row.Tablespace, source: row.Source,
		ownProperties: row.OwnProperties}
	if p.config.RestoreUID != "" {
		found.finished = row.Finished
	}
	if open, err = p.connect(ctx, p.config.Database); err != nil {
		return found, err
	}
	defer func() { _ = open.close() }()
	if lines, err = open.ask(ctx, emptyQuery); err != nil {
		return found, classify(err, "look into the database", ReasonRestoreFailed, workPatterns)
	}
	found.empty = strings.Join(lines, "") == "t"
	return found, nil
}

// emptyQuery selects objects with OIDs above those of a new database (16384). Large objects may have any OID.
const emptyQuery = `
SELECT NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE c.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    WHERE p.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
    WHERE t.oid >= 16384 AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_namespace WHERE oid >= 16384 AND nspname <> 'public' AND nspname !~ '^pg_')
  AND NOT EXISTS (SELECT FROM pg_extension WHERE oid >= 16384)
  AND NOT EXISTS (SELECT FROM pg_largeobject_metadata);
`

// createRoles creates the roles that the dump needs and the server lacks. They get no login, attributes and
// memberships, because a restore should not grant rights. The globals beside the dump have them.
func (p *program) createRoles(ctx context.Context, roles []string) (created int, err error) {
	names, err := json.Marshal(roles)
	if err != nil {
		return 0, err
	}
	missing := "FROM json_array_elements_text(" + literal(string(names)) + "::json) AS r" +
		" WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r)"
	count, err := p.target.query(ctx, maintenance, "SELECT count(*) "+missing+";\n"+
		"SELECT format('CREATE ROLE %I NOLOGIN', r) "+missing+" \\gexec\n")
	if err != nil {
		return 0, classify(err, "create the roles that the dump needs", ReasonRestoreFailed, workPatterns)
	}
	_, err = fmt.Sscan(count, &created)
	return created, err
}
