package main

import (
	"cmp"
	"context"
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
	from := archive{program: p, path: filepath.Join(p.config.Scratch, dumpFile)}
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
	if err := p.makeScratchDatabase(ctx, from); err != nil {
		return because(err, ReasonScratchFailed)
	}
	kept, restored := split(entries)
	p.result.Restored, restored.Database = restored, scratchDatabase
	err = from.restore(ctx, kept, p.environment(p.serverVariables()...), scratchDatabase)
	switch {
	case code(err) != 0 && noSpace(p.config.Scratch):
		return because(err, ReasonScratchFailed)
	case code(err) != 0:
		return because(err, ReasonScratchRestoreFailed)
	case err != nil:
		return err
	}
	if p.config.Query != "" {
		if err := p.ask(ctx); err != nil {
			return err
		}
	}
	p.succeed(ReasonVerificationPassed, "the dump was restored into a scratch server: %s", restored)
	return nil
}

// scratchOptions suit a server whose data need not survive a crash, in a small container, and a dump of many objects.
const scratchOptions = "-c listen_addresses= -c unix_socket_directories=. -c fsync=off -c wal_level=minimal " +
	"-c max_wal_senders=0 -c shared_buffers=32MB -c max_locks_per_transaction=1024 -c autovacuum=off"

// startScratch makes a server that only a socket in its directory reaches, and makes it the server of the settings.
func (p *program) startScratch(ctx context.Context, dir string) (stop func(), err error) {
	call := func(ctx context.Context, name string, args ...string) error {
		return p.run(ctx, tool{name: name, args: append(args, "--pgdata="+dir), env: p.environment(), stdout: p.errs})
	}
	stop = func() { _ = call(context.WithoutCancel(ctx), "pg_ctl", "stop", "--mode=immediate", "--silent") }
	err = call(ctx, "initdb", "--username="+scratchUser, "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8",
		"--locale=C", "--no-sync")
	if err == nil {
		err = call(ctx, "pg_ctl", "start", "--wait", "--options="+scratchOptions)
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

// makeScratchDatabase creates the database with the encoding and the locale of the dumped one. A locale that this image
// lacks is replaced by C: rows do not depend on it.
func (p *program) makeScratchDatabase(ctx context.Context, from archive) error {
	options, err := from.databaseOptions(ctx)
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
	rows, err := open.Query(ctx, p.config.Query)
	passes := err == nil && rows.Next() && !slices.Contains([]string{"", "f", "false", "0"}, string(rows.RawValues()[0]))
	rows.Close()
	if err = cmp.Or(err, rows.Err()); strings.HasPrefix(sqlState(err), "42") {
		return because(err, ReasonQueryInvalid)
	}
	if err != nil || !passes {
		return because(err, ReasonQueryFailed)
	}
	return nil
}
