package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
)

// maintenance is the database to which a restore connects for creating and renaming others.
const maintenance = "postgres"

// serverDatabases are the databases that a server needs under their names, so no restore replaces them: new databases
// are copies of the templates, and clients that create databases connect to postgres, as a restore does.
var serverDatabases = []string{"template0", "template1", maintenance}

// refusedTarget is the error for a database that no restore replaces.
func refusedTarget(database, why string) error {
	return failf(ReasonInvalidSettings, "a restore does not replace database %q, because %s: "+
		"name another database (databaseName, BACKUP_DATABASE)", database, why)
}

// lockTarget waits until no other run restores into the database. The session holds the lock: the server releases the
// lock of a run that was killed or has lost its connection. Even then swap refuses to give the name to a wrong database.
func (p *program) lockTarget(ctx context.Context) (*session, error) {
	held, err := p.connect(ctx, maintenance)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte("pgbackup restore\x00" + p.config.Database))
	try := fmt.Sprintf("SELECT pg_try_advisory_lock(%d);", int64(binary.BigEndian.Uint64(hash[:])))
	locked, err := poll(ctx, p.config.Wait, func() (bool, error) {
		lines, err := held.ask(ctx, try)
		return strings.Join(lines, "") == "t", classify(err, "lock the restore", ReasonRestoreFailed, workPatterns)
	})
	if err == nil && !locked {
		err = failf(ReasonBusy, "another run restored into database %q for more than %s", p.config.Database, p.config.Wait)
	}
	if err != nil {
		_ = held.close()
		return nil, err
	}
	return held, nil
}

// targetState is the state of the database to restore into, and its properties, encoding and locale.
type targetState struct {
	snapshot
	exists bool
	Empty  bool
	// OwnProperties is true when the database has grants, settings, a connection limit or a comment, or belongs to
	// another user than the user of the restore. Then it keeps all of them. Otherwise, and when it still has the
	// properties that an earlier restore took from a backup, it gets those of the database that was dumped.
	OwnProperties bool
	// Finished is the first word of the marker that an earlier run of this restore left, empty without one.
	Finished   string
	Tablespace string // empty for the tablespace of template0, which needs no permission
}

// These words begin a marker: the database was new or empty, or it replaced a database with data.
const (
	markRestored = "restored"
	markReplaced = "replaced"
)

// marker is the text by which a later run recognises that this restore has finished. It is the default
// application_name of the user of the restore in the database. The transaction that names the database can write it,
// and each user may set it: PostgreSQL permits custom settings only to superusers. A copy of the database has another
// OID. given is propertiesSum of the properties that came from the backup: a later restore may replace them. All of it
// has 63 bytes, the longest application_name.
func (p *program) marker(word, oid, given string) string {
	return strings.TrimSpace(word + " " + p.config.RestoreUID + " " + oid + " " + given)
}

// targetQuery examines the current database. It is empty when no user has created an object in it: no relation,
// function, type, schema, extension or large object. Objects of users have OIDs above those of a new database (16384).
// Large objects may have any OID.
const targetQuery = `
SELECT json_build_object(
  'encoding', pg_encoding_to_char(d.encoding), 'row', to_json(d), 'tablespace', spcname,
  'properties', (` + selectProperties + `),
  'ownProperties', (d.datacl IS NOT NULL OR d.datconnlimit <> -1 OR shobj_description(d.oid, 'pg_database') IS NOT NULL
      OR pg_get_userbyid(d.datdba) <> current_user OR EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) c
        WHERE setdatabase = d.oid AND c !~ '^application_name=(restored|replaced) '))
    AND NOT EXISTS (SELECT FROM pg_db_role_setting, unnest(setconfig) c
      WHERE setdatabase = d.oid AND c ~ ('^application_name=(restored|replaced) [^ ]+ ' || d.oid || ' ' || ` +
	propertiesSum + ` || '$')),
  'finished', (SELECT split_part(substr(c, 18), ' ', 1) FROM pg_db_role_setting, unnest(setconfig) c
    WHERE setdatabase = d.oid AND c ~ ('^application_name=(restored|replaced) ' || $uid || ' ' || d.oid || '( |$)')
    LIMIT 1),
  'empty', NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
      WHERE c.oid >= 16384 AND nspname !~ '^pg_')
    AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
      WHERE p.oid >= 16384 AND nspname !~ '^pg_')
    AND NOT EXISTS (SELECT FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace
      WHERE t.oid >= 16384 AND nspname !~ '^pg_')
    AND NOT EXISTS (SELECT FROM pg_namespace WHERE oid >= 16384 AND nspname <> 'public' AND nspname !~ '^pg_')
    AND NOT EXISTS (SELECT FROM pg_extension WHERE oid >= 16384)
    AND NOT EXISTS (SELECT FROM pg_largeobject_metadata))
FROM pg_database d JOIN pg_database template0 ON template0.datname = 'template0'
LEFT JOIN pg_tablespace s ON s.oid = d.dattablespace AND s.oid <> template0.dattablespace
WHERE d.datname = current_database();
`

// refuseData is the error for a target with data that the restore may not replace.
func (p *program) refuseData(target targetState) error {
	if !target.exists || target.Empty || p.config.Overwrite {
		return nil
	}
	return failf(ReasonTargetNotEmpty, "database %q is not empty, and this restore did not write its data: "+
		"restore into another database, or set overwrite (BACKUP_OVERWRITE=true) to replace it", p.config.Database)
}

// inspect examines the target.
func (p *program) inspect(ctx context.Context) (targetState, error) {
	var found targetState
	oid, err := p.target.query(ctx, maintenance,
		"SELECT oid FROM pg_database WHERE datname ="+literal(p.config.Database)+";")
	if err != nil {
		return found, classify(err, "look for the database", ReasonRestoreFailed, workPatterns)
	}
	if oid == "" {
		return found, nil
	}
	open, err := p.connect(ctx, p.config.Database)
	if err != nil {
		return found, err
	}
	defer func() { _ = open.close() }()
	lines, err := open.ask(ctx, strings.ReplaceAll(targetQuery, "$uid", literal(p.config.RestoreUID)))
	if err != nil {
		return found, classify(err, "look into the database", ReasonRestoreFailed, workPatterns)
	}
	if err := json.Unmarshal(validJSON(lines), &found); err != nil {
		return found, fmt.Errorf("read the properties of the database: %w", err)
	}
	found.exists = true
	if p.config.RestoreUID == "" {
		found.Finished = ""
	}
	return found, nil
}

// createRoles creates the roles that a dump needs and the server lacks. They get no login, attributes and memberships,
// because a restore should not grant rights. The globals beside the dump have them. It works in the database that is
// restored, because the names have its encoding.
func (s server) createRoles(
	ctx context.Context, database, encoding string, roles []string,
) (created int, err error) {
	names, err := json.Marshal(roles)
	if err != nil {
		return 0, err
	}
	missing := "FROM json_array_elements_text(" + literal(string(names)) + "::json) AS r" +
		" WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = r)"
	count, err := s.withEncoding(textEncoding(encoding)).query(ctx, database, "SELECT count(*) "+missing+";\n"+
		"SELECT format('CREATE ROLE %I NOLOGIN', r) "+missing+" \\gexec\n")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(count, &created)
	return created, err
}
