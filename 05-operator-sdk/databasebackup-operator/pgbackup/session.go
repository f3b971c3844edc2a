package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// session is a psql that stays connected. It holds the snapshot that pg_dump dumps and the rows are counted
// in: a snapshot lives no longer than the transaction that exported it.
type session struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	mark   string
	stderr errorLines
	hide   func(string) string
	closed bool
}

// dial starts a session. It does not wait for the connection: the first call of ask does.
func (s server) dial(ctx context.Context, database string) (*session, error) {
	s = s.withEncoding("") // sessionSettings set it, when the encoding of the database is known
	cmd, err := s.command(ctx, "psql", psqlArgs(database)...)
	if err != nil {
		return nil, err
	}
	c := &session{cmd: cmd, mark: rand.Text(), hide: s.hide}
	cmd.Stderr = &c.stderr
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, failf(ReasonToolMissing, "start psql: %w", err)
	}
	return c, nil
}

// ask sends statements and returns the lines that they print.
func (c *session) ask(ctx context.Context, sql string) ([]string, error) {
	// If psql has ended, its output explains the error better than the broken pipe.
	_, _ = fmt.Fprintf(c.in, "%s\n\\echo %s\n", sql, c.mark)
	var lines []string
	for {
		line, err := c.out.ReadString('\n')
		line = strings.TrimSuffix(line, "\n")
		if err != nil {
			return nil, c.ended(ctx)
		}
		if line == c.mark {
			return lines, nil
		}
		lines = append(lines, line)
	}
}

// ended is the error of a session that ended too early.
func (c *session) ended(ctx context.Context) error {
	err := c.close()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		err = errors.New("ended too early")
	}
	return &toolError{name: "psql", lines: c.stderr.found(), err: err, hide: c.hide}
}

// close ends the session and its transaction.
func (c *session) close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	_ = c.in.Close()
	err := c.cmd.Wait()
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	return err
}

// connect opens a session. It tries again while the server may still be starting.
func (p *program) connect(ctx context.Context, database string) (opened *session, err error) {
	limit := min(p.config.Wait, defaultWait)
	var last error
	connected, err := poll(ctx, limit, func() (bool, error) {
		if opened, err = p.target.dial(ctx, database); err != nil {
			return false, err
		}
		if _, err = opened.ask(ctx, sessionSettings); err == nil {
			return true, nil
		}
		doing := fmt.Sprintf("connect to database %q at %s:%s", database, p.config.Host, p.config.Port)
		last = classify(err, doing, ReasonTargetNotReady, connectionPatterns, database, p.config.User)
		if reasonOf(last) != ReasonTargetNotReady {
			return false, last
		}
		p.step("refused")
		return false, nil
	})
	if err == nil && !connected {
		return nil, failf(ReasonTargetNotReady, "tried for %s: %w", limit, last)
	}
	return opened, err
}

// sessionSettings are the settings of pg_dump (setup_connection in its source): they keep the server from ending a
// session that waits, from filtering rows, and from finding functions of users. Two encodings cannot be converted to
// UTF-8.
const sessionSettings = `
SELECT NULL FROM pg_catalog.set_config('search_path', '', false);
SELECT NULL FROM set_config('client_encoding', CASE WHEN current_setting('server_encoding') IN
  ('SQL_ASCII', 'MULE_INTERNAL') THEN current_setting('server_encoding') ELSE 'UTF8' END, false);
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET row_security = off;
SELECT NULL FROM set_config('idle_session_timeout', '0', false)
WHERE current_setting('server_version_num')::int >= 140000;
SELECT NULL FROM set_config('transaction_timeout', '0', false)
WHERE current_setting('server_version_num')::int >= 170000;
`
