package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// restoreAside restores under another name, and then gives the new database the name of the target.
func (p *program) restoreAside(
	ctx context.Context, dump string, facts *factsFile, old targetState,
) (tables map[string]int64, err error) {
	properties := archived{}
	if !old.ownProperties {
		if properties, err = p.readProperties(ctx, dump); err != nil {
			return nil, err
		}
	}
	aside, replaced := asideNames(p.config)
	if err := p.dropLeft(ctx, aside, replaced); err != nil {
		return nil, err
	}
	p.step("aside")
	err = p.target.createDatabase(ctx, aside, old, collationFor(old, facts))
	if err != nil {
		return nil, classify(err, fmt.Sprintf("create database %q", p.config.Database), ReasonRestoreFailed, workPatterns)
	}
	defer func() {
		if err != nil { // also after a signal
			if left := p.drop(context.WithoutCancel(ctx), aside); left != nil {
				p.log.Warn("Failed to drop the unfinished database", "database", aside, "error", left.Error())
			}
		}
	}()
	made, err := p.createdOID(ctx, aside)
	if err != nil {
		return nil, err
	}
	if tables, err = p.fill(ctx, aside, dump, facts); err != nil {
		return nil, err
	}
	if !old.ownProperties {
		refused, err := p.restoreProperties(ctx, properties, aside)
		if err != nil {
			return nil, err
		}
		if len(refused) > 0 {
			p.warn("the server refused to restore: " + strings.Join(refused, "; ") +
				": create the roles and run these statements")
		}
	}
	p.step("restored")
	// A signal must not interrupt the next steps: it would be unknown which of the two databases has the name.
	ctx = context.WithoutCancel(ctx)
	if err = p.swap(ctx, aside, made, replaced, old); err != nil {
		return nil, err
	}
	p.step("named")
	if err := p.drop(ctx, replaced); err != nil {
		p.warn(fmt.Sprintf("the replaced database is still there, as %s: %s", replaced, p.line(err)))
	}
	p.step("dropped")
	return tables, nil
}

// dropLeft drops the databases that a killed run left.
func (p *program) dropLeft(ctx context.Context, names ...string) error {
	for _, left := range names {
		if err := p.drop(ctx, left); err != nil {
			return err
		}
	}
	return nil
}

// collationFor returns the encoding and the locale of the new database: those of the dumped database, unless the target
// is empty. So a user can prepare a database on a server that lacks the locale.
func collationFor(old targetState, facts *factsFile) collation {
	if !old.exists || !old.empty {
		return facts.collation
	}
	return old.source.collation()
}

// swapAttempts bounds how often the names are swapped. A disconnected client may reconnect first.
const swapAttempts = 10

// createdOID is the OID of the database that this run has created. The public cannot connect to it until it gets its
// grants.
func (p *program) createdOID(ctx context.Context, database string) (string, error) {
	oid, err := p.target.query(ctx, maintenance,
		"SELECT oid FROM pg_database WHERE datname ="+literal(database)+";\n"+
			"SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC',"+literal(database)+") \\gexec\n")
	return oid, classify(err, "look for the new database", ReasonRestoreFailed, workPatterns)
}

// copyProperties gives one database the grants, the settings, the connection limit and the comment of another. Settings
// that are lists of names are split, because SET reads a quoted list as one name. No part of a value runs as SQL,
// because owners of databases choose the values.
const copyProperties = `
SELECT format('REVOKE ALL ON DATABASE %I FROM PUBLIC, %I', datname, pg_get_userbyid(datdba))
FROM pg_database WHERE datname =$new \gexec
SELECT format('GRANT %s ON DATABASE %I TO %s%s', privilege_type,$new,
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END,
  CASE WHEN is_grantable THEN ' WITH GRANT OPTION' END)
FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba))) WHERE datname =$old \gexec
SELECT format('ALTER %s SET %I TO %s',
  CASE setrole WHEN 0 THEN format('DATABASE %I',$new)
    ELSE format('ROLE %I IN DATABASE %I', pg_get_userbyid(setrole),$new) END,
  name,
  CASE WHEN lower(name) IN ('search_path', 'temp_tablespaces', 'local_preload_libraries', 'session_preload_libraries',
      'shared_preload_libraries', 'unix_socket_directories')
    THEN coalesce((SELECT string_agg(quote_literal(coalesce(replace(m[1], '""', '"'), m[2])), ', ')
      FROM regexp_matches(value, '"((?:[^"]|"")*)"|([^", ]+)', 'g') m), '''''')
    ELSE quote_literal(value) END)
FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase, unnest(setconfig) c,
  LATERAL (SELECT split_part(c, '=', 1) AS name, substr(c, strpos(c, '=') + 1) AS value) s WHERE datname =$old \gexec
SELECT format('ALTER DATABASE %I CONNECTION LIMIT %s',$new, datconnlimit) FROM pg_database WHERE datname =$old \gexec
SELECT format('COMMENT ON DATABASE %I IS %L',$new, shobj_description(oid, 'pg_database'))
FROM pg_database WHERE datname =$old \gexec
`

// swap renames the old database, gives its name to the restored one, and sets the marker of this restore, in one
// transaction. It fails if the database that gets the name was not created by this run: another run may have created
// its own database of that name, which is still empty.
func (p *program) swap(ctx context.Context, aside, made, replaced string, old targetState) (err error) {
	sql := p.swapStatements(aside, made, replaced, old)
	for range swapAttempts {
		_, err = p.target.query(ctx, maintenance, sql)
		if err == nil || !strings.Contains(err.Error(), "is being accessed by other users") {
			break
		}
	}
	doing := fmt.Sprintf("give the restored database the name %q", p.config.Database)
	return classify(err, doing, ReasonRestoreFailed, workPatterns)
}

func (p *program) swapStatements(aside, made, replaced string, old targetState) string {
	database := p.config.Database
	rename := func(from, to string) string {
		return "SELECT format('ALTER DATABASE %I RENAME TO %I'," + literal(from) + "," + literal(to) + ") \\gexec\n"
	}
	sql := "BEGIN;\n"
	if old.ownProperties {
		sql += strings.NewReplacer("$old", literal(database), "$new", literal(aside)).Replace(copyProperties)
	}
	if old.exists {
		sql += "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname =" + literal(database) + ";\n" +
			rename(database, replaced)
	}
	sql += rename(aside, database)
	if p.config.RestoreUID != "" {
		word := markRestored
		if old.exists && !old.empty {
			word = markReplaced
		}
		sql += "SELECT format('ALTER ROLE %I IN DATABASE %I SET application_name = %L', current_user," +
			literal(database) + "," + p.marker(word, literal(made)) + ") \\gexec\n"
	}
	ours := "EXISTS (SELECT FROM pg_database WHERE oid = " + made + " AND datname =" + literal(database) + ")"
	return sql + "DO" + literal("BEGIN IF NOT "+ours+
		" THEN RAISE EXCEPTION 'another restore took the place of this one'; END IF; END") + ";\nCOMMIT;\n"
}

// warn adds a warning to the result, and to the log.
func (p *program) warn(text string) {
	p.log.Warn("Restored with a warning", "warning", text)
	p.result.Warning = strings.TrimPrefix(p.result.Warning+"; "+text, "; ")
}

// asideNames returns the name of the restored database before the swap, and the name of the replaced database after it.
// The names are the same for every try of a restore, so that a try finds the databases of a killed try.
func asideNames(c Config) (aside, replaced string) {
	hash := sha256.Sum256([]byte(c.Owner + "\x00" + c.Name + "\x00" + c.Database))
	id := hex.EncodeToString(hash[:8])
	return "pgbackup_restore_" + id, "pgbackup_replaced_" + id
}

// drop drops a database if it exists, and disconnects its clients.
func (p *program) drop(ctx context.Context, database string) error {
	err := p.target.run(ctx, tool{name: "dropdb", args: []string{"--no-password", "--if-exists", "--force",
		databaseOption("maintenance-db", maintenance), "--", database}})
	return classify(err, fmt.Sprintf("drop database %q", database), ReasonRestoreFailed, workPatterns)
}
