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

// lockTarget waits until no other run restores into the database. The server frees the lock of a run that was killed.
// Such a lock belongs to one database, so all runs must use the same maintenance database. If they do not, swap still
// refuses to give the name to a wrong database.
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

// state of the database that is restored into.
type targetState struct {
	exists, empty bool
	owner         string
	tablespace    string // empty for that of template0, for which no permission is needed
}

// inspect waits for the server and examines the target. It is empty when nothing in it was made by a user:
// no relation, function, type, schema, extension or large object.
func (p *program) inspect(ctx context.Context) (targetState, error) {
	var found targetState
	open, err := p.connect(ctx, p.config.MaintenanceDatabase)
	if err != nil {
		return found, err
	}
	lines, err := open.ask(ctx, "SELECT json_build_object('owner', pg_get_userbyid(d.datdba), 'tablespace', spcname)"+
		" FROM pg_database d JOIN pg_database template0 ON template0.datname = 'template0'"+
		" LEFT JOIN pg_tablespace s ON s.oid = d.dattablespace AND s.oid <> template0.dattablespace"+
		" WHERE d.datname ="+literal(p.config.Database)+";")
	_ = open.close()
	if err != nil {
		return found, classify(err, "look for the database", ReasonRestoreFailed, workPatterns)
	}
	if len(lines) == 0 {
		return found, nil
	}
	var row struct{ Owner, Tablespace string }
	if err := json.Unmarshal([]byte(strings.Join(lines, "")), &row); err != nil {
		return found, fmt.Errorf("read the properties of the database: %w", err)
	}
	found.owner, found.tablespace = row.Owner, row.Tablespace
	found.exists = true
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
	count, err := p.target.query(ctx, p.config.MaintenanceDatabase, "SELECT count(*) "+missing+";\n"+
		"SELECT format('CREATE ROLE %I NOLOGIN', r) "+missing+" \\gexec\n")
	if err != nil {
		return 0, classify(err, "create the roles that the dump needs", ReasonRestoreFailed, workPatterns)
	}
	_, err = fmt.Sscan(count, &created)
	return created, err
}
