package pgbackup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	scratchPrefix   = "pgbackup-scratch-"
	scratchUser     = "pgbackup_scratch"
	scratchReader   = "pgbackup_reader"
	scratchDatabase = "pgbackup_restored"
	// scratchStart is how long a new server may take to answer.
	scratchStart = time.Minute
	// socketLimit is how long the path of a unix socket may be.
	socketLimit = 107
)

// scratch is a server in a temporary directory, reachable by a unix socket in it alone. Its tools get no
// credentials: what a dump holds may run there.
type scratch struct {
	server
	dir      string
	lock     *os.File // held while the directory is in use
	postgres *exec.Cmd
	ended    chan struct{} // closed when postgres has ended
	said     complaints
}

// checkRestore restores a dump into a scratch server, and compares what is there with what was dumped.
func (p *program) checkRestore(ctx context.Context, s *store, facts *sidecar) (err error) {
	server, err := p.startScratch(ctx)
	if server != nil {
		defer func() { err = explain(err, server.remove()) }()
	}
	if err != nil {
		return err
	}
	p.step("scratch")
	if err := server.makeRoles(ctx, s.path(facts.Name, suffixGlobals)); err != nil {
		return err
	}
	if err := server.makeDatabase(ctx, facts); err != nil {
		return err
	}
	err = server.restore(ctx, scratchDatabase, s.path(facts.Name, suffixDump), false)
	if err != nil {
		return classify(err, "restore into the scratch server", ReasonRestoreFailed, scratchSigns)
	}
	p.step("restored")
	if _, err := compareRows(ctx, server.server, scratchDatabase, facts); err != nil {
		return err
	}
	if p.config.Query == "" {
		return nil
	}
	return server.ask(ctx, p.config.Query)
}

// startScratch makes a server and waits until it answers. With an error it may return what is to be removed.
func (p *program) startScratch(ctx context.Context) (*scratch, error) {
	removeLeftScratch(p.config.Scratch)
	dir, err := os.MkdirTemp(p.config.Scratch, scratchPrefix)
	if err != nil {
		return nil, failf(ReasonScratchFailed, "make a directory in BACKUP_SCRATCH: %w", err)
	}
	s := &scratch{dir: dir, ended: make(chan struct{})}
	if s.lock, err = lockDir(dir); err != nil {
		return s, failf(ReasonScratchFailed, "lock the scratch directory: %w", err)
	}
	if socket := filepath.Join(dir, ".s.PGSQL.5432"); len(socket) > socketLimit {
		return s, failf(ReasonScratchFailed, "the socket %s is longer than %d bytes: set BACKUP_SCRATCH to a shorter path", socket, socketLimit)
	}
	s.server = server{tools: p.config.Tools, environ: append(plainEnvironment(p.config.environ),
		"PGHOST="+dir, "PGPORT=5432", "PGUSER="+scratchUser, "PGCLIENTENCODING=UTF8", "PGAPPNAME=pgbackup")}
	data := filepath.Join(dir, "data")
	err = s.run(ctx, tool{name: "initdb", args: []string{"--pgdata=" + data, "--username=" + scratchUser,
		"--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--no-sync"}})
	if err != nil {
		return s, scratchFault("make the scratch server", err)
	}
	// No crash has to be survived: what fails is thrown away. Many objects may be restored, by one process.
	args := []string{"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "synchronous_commit=off", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "max_wal_size=256MB",
		"-c", "shared_buffers=32MB", "-c", "max_connections=10", "-c", "max_locks_per_transaction=1024",
		"-c", "autovacuum=off", "-c", "jit=off", "-c", "max_parallel_maintenance_workers=0", "-c", "max_parallel_workers_per_gather=0"}
	// It is not bound to ctx: remove stops it in order.
	if s.postgres, err = s.command(context.WithoutCancel(ctx), "postgres", args...); err != nil {
		return s, err
	}
	s.postgres.Stderr = &s.said
	if err := s.postgres.Start(); err != nil {
		s.postgres = nil
		return s, failf(ReasonToolMissing, "start postgres: %w", err)
	}
	go func() {
		_ = s.postgres.Wait()
		close(s.ended)
	}()
	return s, s.awaitReady(ctx)
}

func (s *scratch) awaitReady(ctx context.Context) error {
	deadline := time.Now().Add(scratchStart)
	for {
		_, err := s.query(ctx, "postgres", "SELECT 1;")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.ended:
			return failf(ReasonScratchFailed, "the scratch server ended at once: %s", strings.Join(s.said.found(), ", "))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return scratchFault("wait for the scratch server", err)
		}
	}
}

// remove stops the server and removes its directory, whatever has happened.
func (s *scratch) remove() error {
	if s.postgres != nil {
		group := -s.postgres.Process.Pid
		_ = syscall.Kill(s.postgres.Process.Pid, syscall.SIGQUIT) // at once: the data goes anyway
		select {
		case <-s.ended:
		case <-time.After(grace):
		}
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-s.ended
	}
	err := os.RemoveAll(s.dir)
	if s.lock != nil {
		_ = s.lock.Close()
	}
	if err != nil {
		return failf(ReasonScratchFailed, "remove the scratch server: %w", err)
	}
	return nil
}

// removeLeftScratch removes the directories of killed runs: those that nobody holds a lock of.
func removeLeftScratch(parent string) {
	left, _ := filepath.Glob(filepath.Join(parent, scratchPrefix+"*"))
	for _, dir := range left {
		if lock, err := lockDir(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Close()
		}
	}
}

func lockDir(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// scratchFault is the error of a step before the dump is touched: it says nothing about the dump.
func scratchFault(doing string, err error) error {
	if _, ok := errors.AsType[*toolError](err); !ok {
		return err // no program, or stopped
	}
	return failf(ReasonScratchFailed, "%s: %w", doing, err)
}

// scratchSigns are what a restore says that fails for want of room, of memory or of an extension in the image.
// The dump may be good.
var scratchSigns = []sign{
	{"No space left on device", ReasonScratchFailed},
	{"Disk quota exceeded", ReasonScratchFailed},
	{"out of memory", ReasonScratchFailed},
	{"out of shared memory", ReasonScratchFailed},
	{"server closed the connection", ReasonScratchFailed},
	{"terminating connection", ReasonScratchFailed},
	{"the database system is", ReasonScratchFailed},
	{"is not available", ReasonScratchFailed}, // an extension
	{"could not access file", ReasonScratchFailed},
	{"shared_preload_libraries", ReasonScratchFailed},
}

// makeRoles makes the roles of the globals. It goes on behind a statement that fails there, such as a
// setting that an extension would define: when a role is missing, the restore tells.
func (s *scratch) makeRoles(ctx context.Context, globals string) error {
	text, err := os.ReadFile(globals)
	if err != nil {
		return volumeFault("read the globals", err)
	}
	err = s.run(ctx, tool{name: "psql", stdin: strings.NewReader(roleStatements(string(text))),
		args: append(psqlArgs("postgres"), "--set=ON_ERROR_STOP=0")})
	return scratchFault("make the roles", err)
}

// roleStatements are the statements about roles in the output of pg_dumpall, and nothing else: psql would
// also run commands of its own that someone hid in a name.
func roleStatements(globals string) string {
	var kept strings.Builder
	for line := range strings.Lines(globals) {
		for _, begin := range []string{"CREATE ROLE ", "ALTER ROLE ", "GRANT "} {
			if strings.HasPrefix(line, begin) && isStatement(line) {
				kept.WriteString(line)
			}
		}
	}
	return kept.String()
}

// isStatement reports whether a line is one whole statement: all quotes closed, no backslash outside of them,
// nothing behind the semicolon.
func isStatement(line string) bool {
	line = strings.TrimRight(line, "\r\n")
	quote := byte(0)
	for i := range len(line) {
		char := line[i]
		switch {
		case quote != 0:
			if char == quote {
				quote = 0
			}
		case char == '"' || char == '\'':
			quote = char
		case char == '\\':
			return false
		case char == ';' && i != len(line)-1:
			return false
		}
	}
	return quote == 0 && strings.HasSuffix(line, ";")
}

// makeDatabase makes the database with the encoding and the locale of the dumped one. A locale that this
// image lacks is replaced by C: rows do not depend on it, and a restore into a real server insists on it.
func (s *scratch) makeDatabase(ctx context.Context, facts *sidecar) error {
	err := s.createDatabase(ctx, "postgres", scratchDatabase, "", facts)
	if _, failed := errors.AsType[*toolError](err); failed {
		err = s.createDatabase(ctx, "postgres", scratchDatabase, "", &sidecar{Encoding: facts.Encoding, Collate: "C", CType: "C"})
	}
	return scratchFault("make the scratch database", err)
}

// createDatabase makes an empty database with the encoding and the locale of the dumped one.
func (s server) createDatabase(ctx context.Context, maintenance, name, owner string, facts *sidecar) error {
	args := []string{"--no-password", databaseOption("maintenance-db", maintenance), "--template=template0",
		"--encoding=" + facts.Encoding, "--lc-collate=" + facts.Collate, "--lc-ctype=" + facts.CType}
	switch {
	case facts.Locale == "":
	case facts.Provider == "i":
		args = append(args, "--locale-provider=icu", "--icu-locale="+facts.Locale)
	case facts.Provider == "b":
		args = append(args, "--locale-provider=builtin", "--builtin-locale="+facts.Locale)
	}
	if owner != "" {
		args = append(args, "--owner="+owner)
	}
	return s.run(ctx, tool{name: "createdb", args: append(args, "--", name)})
}

// restore runs pg_restore, which ends at the first error.
func (s server) restore(ctx context.Context, database, dump string, oneTransaction bool) error {
	args := []string{"--no-password", "--exit-on-error", "--no-tablespaces"}
	if oneTransaction {
		args = append(args, "--single-transaction")
	}
	return s.run(ctx, tool{name: "pg_restore", args: append(args, databaseOption("dbname", database), dump)})
}

// compareRows counts what was restored and compares it with what was dumped.
func compareRows(ctx context.Context, s server, database string, facts *sidecar) (map[string]int64, error) {
	open, err := s.dial(ctx, database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = open.close() }()
	if _, err := open.ask(ctx, sessionSettings); err != nil {
		return nil, failf(ReasonConnectionLost, "count the restored rows: %w", err)
	}
	tables, err := open.count(ctx)
	if err != nil {
		return nil, classify(err, "count the restored rows", ReasonConnectionLost, workSigns)
	}
	large, err := open.largeObjects(ctx)
	if err != nil {
		return nil, classify(err, "count the restored large objects", ReasonConnectionLost, workSigns)
	}
	if what := difference(facts, tables, large); what != "" {
		return tables, failf(ReasonRowsDiffer, "not what was dumped: %s", what)
	}
	return tables, nil
}

// difference tells the first thing, by name, that is not as it was dumped; empty when there is none.
func difference(facts *sidecar, tables map[string]int64, largeObjects int64) string {
	for _, table := range sortedKeys(facts.Tables) {
		rows, there := tables[table]
		switch {
		case !there:
			return fmt.Sprintf("table %s is missing", table)
		case rows != facts.Tables[table]:
			return fmt.Sprintf("table %s has %d rows, and %d were dumped", table, rows, facts.Tables[table])
		}
	}
	for _, table := range sortedKeys(tables) {
		if _, there := facts.Tables[table]; !there {
			return fmt.Sprintf("table %s was not dumped", table)
		}
	}
	if largeObjects != facts.LargeObjects {
		return fmt.Sprintf("%d large objects are there, and %d were dumped", largeObjects, facts.LargeObjects)
	}
	return ""
}

// ask runs the query of the settings as a user who can read everything and change nothing.
func (s *scratch) ask(ctx context.Context, sql string) error {
	_, err := s.query(ctx, "postgres", "CREATE ROLE "+scratchReader+" LOGIN BYPASSRLS IN ROLE pg_read_all_data;")
	if err != nil {
		return scratchFault("make the user of the query", err)
	}
	reader := s.server
	reader.environ = append(append([]string{}, s.environ...), "PGUSER="+scratchReader, "PGOPTIONS=-c default_transaction_read_only=on")
	var answer strings.Builder
	err = reader.run(ctx, tool{name: "psql", stdout: &answer,
		args: append(psqlArgs(scratchDatabase), "--field-separator=\t", "--command="+sql)})
	if err != nil {
		return classify(err, "run BACKUP_QUERY", ReasonQueryInvalid, nil)
	}
	return judge(answer.String())
}

// judge passes an answer of at least one row whose first value is neither false, NULL nor 0: so a test may
// be a condition, a count, or rows that must be there.
func judge(answer string) error {
	row, _, there := strings.Cut(answer, "\n")
	if !there {
		return failf(ReasonQueryFailed, "BACKUP_QUERY returned no row")
	}
	switch first, _, _ := strings.Cut(row, "\t"); first {
	case "", "f", "false", "0":
		return failf(ReasonQueryFailed, "BACKUP_QUERY returned %q", first)
	}
	return nil
}
