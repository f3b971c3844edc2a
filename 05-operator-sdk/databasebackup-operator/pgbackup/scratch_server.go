package main

import (
	"context"
	"errors"
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
)

// scratch is a PostgreSQL server in a temporary directory, reachable by a unix socket in it alone.
type scratch struct {
	server
	dir      string
	postgres *exec.Cmd
	ended    chan struct{} // closed when postgres has ended
	said     errorLines
}

// startScratch creates a server and waits until it responds. Even with an error it may return a server, which the
// caller must remove.
func (p *program) startScratch(ctx context.Context) (*scratch, error) {
	dir, err := os.MkdirTemp(p.config.Scratch, scratchPrefix)
	if err != nil {
		return nil, failf(ReasonScratchFailed, "make a directory in BACKUP_SCRATCH: %w", err)
	}
	s := &scratch{dir: dir, ended: make(chan struct{})}
	s.server = server{environ: append(plainEnvironment(p.config.environ),
		"PGHOST="+dir, "PGPORT=5432", "PGUSER="+scratchUser, "PGCLIENTENCODING=UTF8", "PGAPPNAME=pgbackup")}
	data := filepath.Join(dir, "data")
	err = s.run(ctx, tool{name: "initdb", args: []string{"--pgdata=" + data, "--username=" + scratchUser,
		"--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=C", "--no-sync"}})
	if err != nil {
		return s, scratchFault("make the scratch server", err)
	}
	// The data need not survive a crash. Many objects may be restored, by one process.
	args := []string{"-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "full_page_writes=off",
		"-c", "synchronous_commit=off", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "max_wal_size=256MB",
		"-c", "shared_buffers=32MB", "-c", "max_connections=10", "-c", "max_locks_per_transaction=1024",
		"-c", "autovacuum=off", "-c", "jit=off", "-c", "max_parallel_maintenance_workers=0",
		"-c", "max_parallel_workers_per_gather=0"}
	// The server is not bound to ctx: remove stops it. PGCLIENTENCODING would be its default for clients, also of a
	// database whose encoding cannot be converted.
	postgres := s.withEncoding("")
	if s.postgres, err = postgres.command(context.WithoutCancel(ctx), "postgres", args...); err != nil {
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
	var last error
	ready, err := poll(ctx, scratchStart, func() (bool, error) {
		if _, last = s.query(ctx, maintenance, "SELECT 1;"); last == nil {
			return true, nil
		}
		select {
		case <-s.ended:
			return false, failf(ReasonScratchFailed, "the scratch server ended at once: %s", strings.Join(s.said.found(), ", "))
		default:
			return false, nil
		}
	})
	if err == nil && !ready {
		return scratchFault("wait for the scratch server", last)
	}
	return err
}

// remove stops the server and removes its directory, also after an error.
func (s *scratch) remove() error {
	if s.postgres != nil {
		group := -s.postgres.Process.Pid
		_ = syscall.Kill(s.postgres.Process.Pid, syscall.SIGQUIT) // at once, because the data is removed
		select {
		case <-s.ended:
		case <-time.After(grace):
		}
		_ = syscall.Kill(group, syscall.SIGKILL)
		<-s.ended
	}
	if err := os.RemoveAll(s.dir); err != nil {
		return failf(ReasonScratchFailed, "remove the scratch server: %w", err)
	}
	return nil
}

// makeDatabase creates the database with the encoding and the locale of the dumped database. A locale that this image
// lacks is replaced by C: rows do not depend on it. A restore into the real server demands the locale.
func (s *scratch) makeDatabase(ctx context.Context, facts *factsFile) error {
	err := s.createDatabase(ctx, scratchDatabase, "", facts.collation)
	if _, failed := errors.AsType[*toolError](err); failed {
		plain := collation{Encoding: facts.Encoding, Collate: "C", CType: "C"}
		err = s.createDatabase(ctx, scratchDatabase, "", plain)
	}
	return scratchFault("make the scratch database", err)
}
