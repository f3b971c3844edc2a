package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	scratchUser     = "pgbackup_scratch"
	scratchDatabase = "pgbackup_restored"
)

// verify restores the dump that backup left into a server in the scratch directory, and asks the query. It has no
// credentials. The server runs code of the dump as its superuser, so nothing else is in the container.
func (p *program) verify(ctx context.Context) error {
	from := archive{p: p, path: filepath.Join(p.config.Scratch, dumpFile)}
	if _, err := os.Stat(from.path); err != nil {
		return because(err, ReasonScratchFailed, "backup has left no dump")
	}
	entries, err := from.contents(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(p.config.Scratch, "server-")
	if err != nil {
		return because(err, ReasonScratchFailed)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	stop, err := p.startScratch(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	if err := p.makeScratchDatabase(ctx, from, entries); err != nil {
		return because(err, ReasonScratchFailed)
	}
	kept, leftOut := split(entries)
	kept = slices.DeleteFunc(kept, func(e entry) bool { return e.is("USER MAPPING") }) // passwords of other servers
	_, err = from.restore(ctx, kept, true, p.loader(scratchDatabase, "--no-owner", "--no-acl", "--no-publications"))
	if code(err) != 0 {
		if noSpace(p.config.Scratch) {
			return because(err, ReasonScratchFailed)
		}
		return because(err, ReasonScratchRestoreFailed)
	}
	if err != nil {
		return err
	}
	tables, err := p.tables(ctx, scratchDatabase)
	if err != nil {
		return err
	}
	p.result.Restored = &Restored{Database: scratchDatabase, Tables: tables, LeftOut: leftOut}
	if p.config.Query != "" {
		if err := p.ask(ctx); err != nil {
			return err
		}
	}
	p.succeed(ReasonVerificationPassed, "the dump was restored into a scratch server: %d tables%s", tables, notRestored(leftOut))
	return nil
}

// notRestored is the part of a message about entries that were left out.
func notRestored(leftOut []string) string {
	if len(leftOut) == 0 {
		return ""
	}
	return "; not restored: " + list(leftOut)
}

// tables is the number of tables of users in a database.
func (p *program) tables(ctx context.Context, database string) (n int, err error) {
	open, err := p.connect(ctx, database)
	if err != nil {
		return 0, err
	}
	defer open.close()
	values, err := open.column(ctx, `SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
		WHERE relkind IN ('r', 'p') AND nspname !~ '^pg_' AND nspname <> 'information_schema'`)
	if err == nil {
		_, err = fmt.Sscan(values[0], &n)
	}
	return n, serverFault(err)
}

// scratchSettings suit a server whose data need not survive a crash, and for many objects from one process.
const scratchSettings = `
listen_addresses = ''
unix_socket_directories = '.'
fsync = off
full_page_writes = off
synchronous_commit = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 256MB
shared_buffers = 32MB
max_connections = 10
max_locks_per_transaction = 1024
autovacuum = off
jit = off
max_parallel_workers = 0
`

// startScratch makes a server that only a socket in its directory reaches, and makes it the server of the settings.
func (p *program) startScratch(ctx context.Context, dir string) (stop func(), err error) {
	call := func(ctx context.Context, name string, args ...string) error {
		return p.run(ctx, tool{name: name, args: append(args, "--pgdata="+dir), env: p.environment(), stdout: p.errs})
	}
	stop = func() { _ = call(context.WithoutCancel(ctx), "pg_ctl", "stop", "--mode=immediate", "--silent") }
	err = call(ctx, "initdb", "--username="+scratchUser, "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8",
		"--locale=C", "--no-sync")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "postgresql.auto.conf"), []byte(scratchSettings), 0o600)
	}
	if err == nil {
		err = call(ctx, "pg_ctl", "start", "--wait")
	}
	if err != nil {
		stop()
		if ctx.Err() != nil || faultOf(err).reason != ReasonFailed {
			return nil, err
		}
		return nil, because(err, ReasonScratchFailed)
	}
	p.config.Host, p.config.Port, p.config.User = dir, 5432, scratchUser
	return stop, nil
}

var encodingForm = regexp.MustCompile(`ENCODING = '[^']*'`)

// makeScratchDatabase creates the database with the encoding and the locale of the dumped one, and the roles that the
// dump names. A locale that this image lacks is replaced by C: rows do not depend on it.
func (p *program) makeScratchDatabase(ctx context.Context, from archive, entries []entry) error {
	options, _, err := from.databaseStatement(ctx, entries)
	if err != nil {
		return err
	}
	open, err := p.connect(ctx, maintenance)
	if err != nil {
		return err
	}
	defer open.close()
	err = open.do(ctx, "CREATE DATABASE "+scratchDatabase+" "+options)
	if sqlState(err) != "" {
		err = open.do(ctx, fmt.Sprintf("CREATE DATABASE %s TEMPLATE template0 LOCALE 'C' %s", scratchDatabase,
			encodingForm.FindString(options)))
	}
	if err != nil {
		return err
	}
	var roles []string
	text, err := os.ReadFile(filepath.Join(p.config.Scratch, rolesFile))
	if err == nil {
		err = json.Unmarshal(text, &roles)
	}
	if err == nil {
		_, err = open.createRoles(ctx, roles)
	}
	return err
}

// ask runs the query of the settings. It passes when it returns a row whose first value is neither false, NULL nor 0. So
// it may be a condition, a count, or rows that must exist.
func (p *program) ask(ctx context.Context) error {
	open, err := p.connect(ctx, scratchDatabase)
	if err != nil {
		return err
	}
	defer open.close()
	if err := open.do(ctx, "SET search_path = public", "SET default_transaction_read_only = on"); err != nil {
		return err
	}
	rows, err := open.query(ctx, p.config.Query)
	if strings.HasPrefix(sqlState(err), "42") {
		return because(err, ReasonQueryInvalid)
	}
	if err != nil || len(rows) == 0 || slices.Contains([]string{"", "f", "false", "0"}, rows[0][0]) {
		return because(err, ReasonQueryFailed)
	}
	return nil
}
