package pgbackup

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// session is a psql that stays connected. It holds the snapshot that pg_dump dumps and the rows are counted
// in: a snapshot lives no longer than the transaction that exported it.
type session struct {
	cmd        *exec.Cmd
	in         io.WriteCloser
	out        *bufio.Reader
	mark       string
	complained complaints
	names      []string // of users, that may appear in messages
	closed     bool
}

// dial starts a session. It does not wait for the connection: the first question does.
func (s server) dial(ctx context.Context, database string, names ...string) (*session, error) {
	cmd, err := s.command(ctx, "psql", psqlArgs(database)...)
	if err != nil {
		return nil, err
	}
	c := &session{cmd: cmd, mark: rand.Text(), names: append(names, database), complained: complaints{hide: s.hide}}
	cmd.Stderr = &c.complained
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
	// A psql that has ended tells why below: what it printed, not that the pipe is broken.
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
	return &toolError{name: "psql", lines: c.complained.found(), err: err}
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

// pauses between tries to connect.
const (
	firstPause = 250 * time.Millisecond
	lastPause  = 10 * time.Second
)

// connect opens a session, and tries again for so long as the server may yet come up.
func (p *program) connect(ctx context.Context, database string) (*session, error) {
	c := p.config
	limit := min(c.Wait, defaultWait)
	deadline := time.Now().Add(limit)
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		opened, err := p.target.dial(ctx, database, c.User)
		if err != nil {
			return nil, err
		}
		if _, err = opened.ask(ctx, sessionSettings); err == nil {
			return opened, nil
		}
		doing := fmt.Sprintf("connect to database %q at %s:%s", database, c.Host, c.Port)
		err = classify(err, doing, ReasonTargetNotReady, connectionSigns, database, c.User)
		if reasonOf(err) != ReasonTargetNotReady {
			return nil, err
		}
		p.step("refused")
		if time.Until(deadline) < pause {
			return nil, failf(ReasonTargetNotReady, "tried for %s: %w", limit, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// sessionSettings keep the server from ending a session that waits for pg_dump or holds a lock, and from filtering rows.
const sessionSettings = quietSearch + `
SET client_encoding = 'UTF8';
SET statement_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET row_security = off;
SELECT NULL FROM set_config('idle_session_timeout', '0', false) WHERE current_setting('server_version_num')::int >= 140000;
SELECT NULL FROM set_config('transaction_timeout', '0', false) WHERE current_setting('server_version_num')::int >= 170000;
`

// snapshot is what is known of a database in the transaction that pg_dump joins.
type snapshot struct {
	ID            string   `json:"id"`
	Version       string   `json:"version"`
	VersionNumber int      `json:"versionNumber"`
	LargeObjects  int64    `json:"largeObjects"`
	Roles         []string `json:"roles"`
	Encoding      string   `json:"encoding"`
	// Row is that of pg_database. Its columns for locales differ between versions.
	Row struct {
		Collate   string  `json:"datcollate"`
		CType     string  `json:"datctype"`
		Provider  string  `json:"datlocprovider"` // from 15
		Locale    *string `json:"datlocale"`      // from 17
		ICULocale *string `json:"daticulocale"`   // 15 and 16
	} `json:"row"`
}

// Roles are those that objects of the database belong or are granted to. The one of the bootstrap superuser
// (10) is never noted as a dependency.
const snapshotQuery = `
BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;
SELECT json_build_object(
  'id', pg_export_snapshot(),
  'version', current_setting('server_version'),
  'versionNumber', current_setting('server_version_num')::int,
  'largeObjects', (SELECT count(*) FROM pg_largeobject_metadata),
  'encoding', pg_encoding_to_char(d.encoding),
  'roles', (SELECT json_agg(DISTINCT r.rolname) FROM pg_roles r WHERE r.oid = 10 OR r.oid IN (
     SELECT refobjid FROM pg_shdepend WHERE dbid = d.oid AND refclassid = 'pg_authid'::regclass)),
  'row', to_json(d))
FROM pg_database d WHERE datname = current_database();
`

// countQuery counts the rows of every table that pg_dump dumps: not those of the system, of temporary
// schemas, or of extensions, which come with CREATE EXTENSION. Each line is a JSON object, so that no name
// can break it. What psql runs by \gexec it takes as it is.
const countQuery = `
SELECT format('SELECT json_build_object(''table'', %L, ''rows'', count(*)) FROM ONLY %I.%I',
  quote_ident(n.nspname) || '.' || quote_ident(c.relname), n.nspname, c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY 1 \gexec
`

// begin opens the transaction and exports its snapshot.
func (c *session) begin(ctx context.Context) (snapshot, error) {
	var found snapshot
	lines, err := c.ask(ctx, snapshotQuery)
	if err != nil {
		return found, classify(err, "export a snapshot", ReasonDumpFailed, workSigns, c.names...)
	}
	if err := json.Unmarshal([]byte(strings.Join(lines, "\n")), &found); err != nil || found.ID == "" {
		return found, failf(ReasonDumpFailed, "export a snapshot: the server's answer cannot be read (%v)", err)
	}
	return found, nil
}

// count is the number of rows of each table, by its name quoted as in SQL.
func (c *session) count(ctx context.Context) (map[string]int64, error) {
	lines, err := c.ask(ctx, countQuery)
	if err != nil {
		return nil, err
	}
	return parseCounts(lines)
}

func parseCounts(lines []string) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, line := range lines {
		var one struct {
			Table string `json:"table"`
			Rows  int64  `json:"rows"`
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			return nil, fmt.Errorf("read the number of rows: %w", err)
		}
		counts[one.Table] = one.Rows
	}
	return counts, nil
}

// largeObjects is how many there are.
func (c *session) largeObjects(ctx context.Context) (int64, error) {
	lines, err := c.ask(ctx, "SELECT count(*) FROM pg_largeobject_metadata;")
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscan(strings.Join(lines, ""), &n)
	return n, err
}
