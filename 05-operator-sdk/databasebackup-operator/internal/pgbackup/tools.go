package pgbackup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// grace is how long a tool may take to end after SIGTERM.
const grace = 5 * time.Second

// server is a PostgreSQL server as the tools see it: by their environment alone.
type server struct {
	environ []string
	tools   string // directory of the tools; empty for PATH
	hide    func(string) string
}

// targetServer is the server of the settings. Of the variables only those pass that libpq and the programs
// need, and of libpq's none that would name another database or another encoding of messages.
func targetServer(c Config) server {
	s := server{environ: plainEnvironment(c.environ), tools: c.Tools, hide: hider(c.secrets())}
	dropped := []string{"PGDATABASE", "PGDATA", "PGSERVICE", "PGSERVICEFILE", "PGHOSTADDR", "PGCLIENTENCODING", "PGHOST", "PGPORT", "PGAPPNAME"}
	for _, pair := range c.environ {
		key, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(key, "PG") && !slices.Contains(dropped, key) {
			s.environ = append(s.environ, pair)
		}
	}
	s.environ = append(s.environ, "PGHOST="+c.Host, "PGPORT="+c.Port, "PGAPPNAME=pgbackup", "PGCLIENTENCODING=UTF8")
	if !slices.ContainsFunc(s.environ, func(pair string) bool { return strings.HasPrefix(pair, "PGCONNECT_TIMEOUT=") }) {
		s.environ = append(s.environ, "PGCONNECT_TIMEOUT=10")
	}
	return s
}

// plainEnvironment is what every tool gets: no credentials.
func plainEnvironment(environ []string) []string {
	kept := []string{"LC_ALL=C"} // messages are told apart by their English text
	for _, pair := range environ {
		key, _, _ := strings.Cut(pair, "=")
		if slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"}, key) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// databaseOption names a database to a tool. A bare name with = or :// in it would be taken for a connection
// string, so it is always given as one.
func databaseOption(option, database string) string {
	return "--" + option + "=dbname='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(database) + "'"
}

// literal is a text as a constant of SQL, whatever standard_conforming_strings says. psql replaces no
// variables inside of it.
func literal(text string) string {
	return " E'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

// tool is one call of a PostgreSQL program. No shell is involved.
type tool struct {
	name   string
	args   []string
	stdin  io.Reader
	stdout io.Writer
	// started is called when the program runs.
	started func()
}

// toolError tells that a program failed, by the lines in which it complained.
type toolError struct {
	name  string
	lines []string
	err   error
}

func (e *toolError) Error() string {
	if len(e.lines) == 0 {
		return fmt.Sprintf("%s: %v", e.name, e.err)
	}
	return strings.Join(e.lines, ", ")
}

func (e *toolError) Unwrap() error { return e.err }

// command prepares a program that ends with ctx, with all that it started.
func (s server) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	path, err := s.find(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = s.environ
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd, nil
}

// find looks for a program in the directory of the tools, or in the PATH that the tools get.
func (s server) find(name string) (string, error) {
	folders := []string{s.tools}
	if s.tools == "" {
		folders = nil
		for _, pair := range s.environ {
			if path, ok := strings.CutPrefix(pair, "PATH="); ok {
				folders = filepath.SplitList(path)
			}
		}
	}
	for _, folder := range folders {
		path := filepath.Join(folder, name)
		if info, err := os.Stat(path); filepath.IsAbs(path) && err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", failf(ReasonToolMissing, "%s is not in %s: use an image with the PostgreSQL server programs, or set BACKUP_TOOLS",
		name, strings.Join(folders, ":"))
}

// run calls a program and waits for its end.
func (s server) run(ctx context.Context, t tool) error {
	cmd, err := s.command(ctx, t.name, t.args...)
	if err != nil {
		return err
	}
	complained := complaints{hide: s.hide}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.stdin, t.stdout, &complained
	if err := cmd.Start(); err != nil {
		return failf(ReasonToolMissing, "start %s: %w", t.name, err)
	}
	if t.started != nil {
		t.started()
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left behind; most often nothing
	if err := ctx.Err(); err != nil {
		return err
	}
	if err != nil {
		return &toolError{name: t.name, lines: complained.found(), err: err}
	}
	return nil
}

// query runs SQL from standard input, where nobody sees it, and returns what it prints: unaligned tuples.
func (s server) query(ctx context.Context, database, sql string) (string, error) {
	var out bytes.Buffer
	err := s.run(ctx, tool{name: "psql", args: psqlArgs(database), stdin: strings.NewReader(quietSearch + sql), stdout: &out})
	return strings.TrimSuffix(out.String(), "\n"), err
}

// quietSearch keeps functions of users from hiding those of PostgreSQL.
const quietSearch = "SET search_path = pg_catalog;\n"

func psqlArgs(database string) []string {
	return []string{"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align",
		"--set=ON_ERROR_STOP=1", databaseOption("dbname", database)}
}

// complaints keeps the lines of standard error that say what went wrong, and the last line for want of any.
// Details are left out: they may show rows of the database.
type complaints struct {
	hide    func(string) string // nil where no secret is known
	partial []byte
	lines   []string
	last    string
}

const (
	complaintLines = 4
	complaintLimit = 300
)

func (c *complaints) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case b == '\n':
			c.line(string(c.partial))
			c.partial = c.partial[:0]
		case len(c.partial) < 4096:
			c.partial = append(c.partial, b)
		}
	}
	return len(p), nil
}

func (c *complaints) line(text string) {
	if c.hide != nil {
		text = c.hide(text) // before anything is cut off or folded, behind which a secret is not known again
	}
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if text == "" {
		return
	}
	c.last = text
	for _, sign := range []string{"error: ", "ERROR: ", "FATAL: ", "PANIC: ", "fatal: ", "detail: Error message from server: "} {
		if strings.Contains(text, sign) && len(c.lines) < complaintLines {
			c.lines = append(c.lines, shorten(text, complaintLimit))
			return
		}
	}
}

func (c *complaints) found() []string {
	c.line(string(c.partial))
	c.partial = nil
	if len(c.lines) == 0 && c.last != "" {
		return []string{shorten(c.last, complaintLimit)}
	}
	return c.lines
}

// sign tells a reason by a part of a message.
type sign struct {
	text   string
	reason Reason
}

// connectionSigns are what libpq and the server say about a connection that a retry would not mend.
var connectionSigns = []sign{
	{"password authentication failed", ReasonAuthenticationFailed},
	{"no password supplied", ReasonAuthenticationFailed},
	{"authentication failed for user", ReasonAuthenticationFailed},
	{"no pg_hba.conf entry", ReasonAuthenticationFailed},
	{"pg_hba.conf rejects connection", ReasonAuthenticationFailed},
	{`role "?" does not exist`, ReasonAuthenticationFailed},
	{`role "?" is not permitted to log in`, ReasonAuthenticationFailed},
	{`database "?" does not exist`, ReasonDatabaseNotFound},
	{`permission denied for database "?"`, ReasonPermissionDenied},
}

// workSigns are what the tools say when they fail in the middle of their work.
var workSigns = []sign{
	{"server version mismatch", ReasonVersionMismatch},
	{"permission denied", ReasonPermissionDenied},
	{"must be owner of", ReasonPermissionDenied},
	{"must be superuser", ReasonPermissionDenied},
	{"must be member of role", ReasonPermissionDenied},
	{"query would be affected by row-level security", ReasonPermissionDenied},
	{"server closed the connection", ReasonConnectionLost},
	{"connection to server", ReasonConnectionLost},
	{"terminating connection", ReasonConnectionLost},
	{"the database system is", ReasonConnectionLost},
}

// volumeSigns are what a tool says when it cannot write a file of its own. The server says the same of its
// own files, after ERROR.
var volumeSigns = []sign{
	{"No space left on device", ReasonVolumeFull},
	{"Disk quota exceeded", ReasonVolumeFull},
	{"File too large", ReasonVolumeFull},
	{"Permission denied", ReasonVolumeNotWritable},
	{"Read-only file system", ReasonVolumeNotWritable},
}

// classify gives the error of a tool a reason, and another one when no sign is in its text. The names in the
// message come from users: they are taken out before it is read.
func classify(err error, doing string, otherwise Reason, signs []sign, names ...string) error {
	t, ok := errors.AsType[*toolError](err)
	if !ok {
		return err
	}
	if exit, ok := errors.AsType[*exec.ExitError](t.err); ok && exit.ExitCode() == -1 {
		return failf(ReasonToolKilled, "%s: %s ended by %w", doing, t.name, exit)
	}
	reason := otherwise
	for _, line := range t.lines {
		if found := look(line, signs, names); found != "" {
			reason = found
			break
		}
	}
	return failf(reason, "%s: %w", doing, err)
}

func look(line string, signs []sign, names []string) Reason {
	for _, name := range names {
		line = strings.ReplaceAll(line, `"`+name+`"`, `"?"`)
	}
	for _, s := range signs {
		if strings.Contains(line, s.text) {
			return s.reason
		}
	}
	if strings.Contains(line, "ERROR: ") || strings.Contains(line, "FATAL: ") {
		return ""
	}
	for _, s := range volumeSigns {
		if strings.Contains(line, s.text) {
			return s.reason
		}
	}
	return ""
}

// dumpVersion is the version of pg_dump as it tells it, and its major number.
func (s server) dumpVersion(ctx context.Context) (version string, major int, err error) {
	var out bytes.Buffer
	if err := s.run(ctx, tool{name: "pg_dump", args: []string{"--version"}, stdout: &out}); err != nil {
		return "", 0, err
	}
	version = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(out.String()), "pg_dump (PostgreSQL)"))
	if _, err := fmt.Sscanf(version, "%d", &major); err != nil {
		return "", 0, failf(ReasonToolMissing, "pg_dump tells no version, but %q", version)
	}
	return version, major, nil
}
