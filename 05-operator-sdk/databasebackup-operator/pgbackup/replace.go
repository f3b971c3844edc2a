package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// restoreAside restores under another name, and then gives the new database the name of the target.
func (p *program) restoreAside(ctx context.Context, dump string, facts *factsFile, old targetState) (err error) {
	aside, replaced := asideNames(p.config)
	if err := p.drop(ctx, aside, replaced); err != nil { // a killed run may have left them
		return err
	}
	p.step("aside")
	like := collationFor(old, facts)
	if err = p.target.createDatabase(ctx, aside, old.Tablespace, like); err != nil {
		return classify(err, fmt.Sprintf("create database %q", p.config.Database), ReasonRestoreFailed, workPatterns)
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
		return err
	}
	created, err := p.target.createRoles(ctx, aside, like.Encoding, facts.Roles)
	if err != nil {
		return classify(err, "create the roles that the dump needs", ReasonRestoreFailed, workPatterns)
	}
	p.step("roles")
	tables, err := p.fill(ctx, aside, dump, facts)
	if err != nil {
		return err
	}
	given, err := p.giveProperties(ctx, aside, like.Encoding, facts, old)
	if err != nil {
		return err
	}
	p.step("restored")
	if !p.config.Overwrite { // another client may have filled an empty database since
		now, err := p.inspect(ctx)
		if err = cmp.Or(err, p.refuseData(now)); err != nil {
			return err
		}
	}
	// A signal must not interrupt the next steps: it would be unknown which of the two databases has the name.
	ctx = context.WithoutCancel(ctx)
	if err = p.swap(ctx, aside, made, replaced, given, old); err != nil {
		return err
	}
	p.step("named")
	if err := p.drop(ctx, replaced); err != nil {
		p.warn(fmt.Sprintf("the replaced database is still there, as %s: %s", replaced, p.line(err)))
	}
	p.step("dropped")
	r := p.restored(tables)
	r.Replaced, r.RolesCreated = old.exists && !old.Empty, created
	return nil
}

// giveProperties gives the new database the properties of the old one, or of the dumped one. The old one would lose a
// property that the server refuses, so such a restore fails. given is the checksum of the properties that came from the
// backup. It is empty when they are those of the old database.
func (p *program) giveProperties(
	ctx context.Context, aside, encoding string, facts *factsFile, old targetState,
) (given string, err error) {
	properties := facts.Properties
	if old.OwnProperties {
		properties = old.Properties
	}
	refused, given, err := p.restoreProperties(ctx, aside, encoding, properties)
	statements := strings.Join(refused, "; ")
	switch {
	case err != nil:
		return "", err
	case old.OwnProperties && statements != "":
		return "", failf(ReasonPermissionDenied, "the server refused to restore: %s", statements)
	case old.OwnProperties:
		return "", nil
	case len(properties) == 0: // TestRestoreOfABackupOfAnEarlierVersion
		p.warn("the backup does not have the owner, the grants and the settings of the database, so only its owner may " +
			"connect: pg_restore --create prints them from the dump")
	case statements != "":
		p.warn("the server refused to restore: " + statements + ": create the roles and run these statements")
	}
	return given, nil
}

// collationFor returns the encoding and the locale of the new database: those of the dumped database, unless the target
// is empty. So a user can prepare a database on a server that lacks the locale.
func collationFor(old targetState, facts *factsFile) collation {
	if !old.exists || !old.Empty {
		return facts.collation
	}
	return old.collation()
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

// swap renames the old database, gives its name to the restored one, and sets the marker of this restore, in one
// transaction. It fails if the database that gets the name was not created by this run: another run may have created
// its own database of that name, which is still empty.
func (p *program) swap(ctx context.Context, aside, made, replaced, given string, old targetState) (err error) {
	sql := p.swapStatements(aside, made, replaced, given, old)
	for range swapAttempts {
		_, err = p.target.query(ctx, maintenance, sql)
		if err == nil || !strings.Contains(err.Error(), "is being accessed by other users") {
			break
		}
	}
	doing := fmt.Sprintf("give the restored database the name %q", p.config.Database)
	return classify(err, doing, ReasonRestoreFailed, workPatterns)
}

func (p *program) swapStatements(aside, made, replaced, given string, old targetState) string {
	database := p.config.Database
	rename := func(from, to string) string {
		return "SELECT format('ALTER DATABASE %I RENAME TO %I'," + literal(from) + "," + literal(to) + ") \\gexec\n"
	}
	sql := "BEGIN;\n"
	if old.exists {
		sql += "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname =" + literal(database) + ";\n" +
			rename(database, replaced)
	}
	sql += rename(aside, database)
	if p.config.RestoreUID != "" {
		word := markRestored
		if old.exists && !old.Empty {
			word = markReplaced
		}
		sql += "SELECT format('ALTER ROLE %I IN DATABASE %I SET application_name = %L', current_user," +
			literal(database) + "," + literal(p.marker(word, made, given)) + ") \\gexec\n"
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

// drop drops databases that exist, and disconnects their clients.
func (p *program) drop(ctx context.Context, databases ...string) error {
	for _, database := range databases {
		err := p.target.run(ctx, tool{name: "dropdb", args: []string{"--no-password", "--if-exists", "--force",
			databaseOption("maintenance-db", maintenance), "--", database}})
		if err != nil {
			return classify(err, fmt.Sprintf("drop database %q", database), ReasonRestoreFailed, workPatterns)
		}
	}
	return nil
}
