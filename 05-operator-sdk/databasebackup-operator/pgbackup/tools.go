package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"
)

// grace is how long a tool may take to end after SIGTERM.
const grace = 5 * time.Second

// server is a PostgreSQL server as the tools see it: only by their environment.
type server struct {
	environ []string
	hide    func(string) string // filters a line of a tool; nil shows the whole line
}

// targetServer is the server of the settings. It gets only the variables that libpq and the programs need, and no
// variable of libpq that names another database or another encoding of messages.
func targetServer(c Config) server {
	s := server{environ: plainEnvironment(c.environ), hide: newFilter(c).fromTool}
	dropped := []string{"PGDATABASE", "PGDATA", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE",
		"PGHOSTADDR", "PGCLIENTENCODING", "PGHOST", "PGPORT", "PGAPPNAME"}
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

// withEncoding is the server for tools that send and receive text in an encoding; without an encoding, tools use the
// encoding of the database.
func (s server) withEncoding(encoding string) server {
	s.environ = slices.DeleteFunc(slices.Clone(s.environ), func(pair string) bool {
		return strings.HasPrefix(pair, "PGCLIENTENCODING=")
	})
	if encoding != "" {
		s.environ = append(s.environ, "PGCLIENTENCODING="+encoding)
	}
	return s
}

// textEncoding is the encoding in which text of a database is read: UTF-8, unless PostgreSQL cannot convert the text to
// it.
func textEncoding(encoding string) string {
	if encoding == "SQL_ASCII" || encoding == "MULE_INTERNAL" {
		return encoding
	}
	return "UTF8"
}

// plainEnvironment is the environment of every tool, without credentials.
func plainEnvironment(environ []string) []string {
	kept := []string{"LC_ALL=C"} // messages are recognized by their English text
	for _, pair := range environ {
		key, _, _ := strings.Cut(pair, "=")
		if slices.Contains([]string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"}, key) {
			kept = append(kept, pair)
		}
	}
	return kept
}

// databaseOption names a database to a tool. libpq would take a name with = or :// in it as a connection string, so the
// name is always passed inside a connection string.
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

// command prepares a program that ends with ctx, and with it all processes that it started.
func (s server) command(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, failf(ReasonToolMissing,
			"%s is not in PATH %s: use an image with the PostgreSQL server programs", name, os.Getenv("PATH"))
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = s.environ
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd, nil
}

// run calls a program and waits for its end.
func (s server) run(ctx context.Context, t tool) error {
	cmd, err := s.command(ctx, t.name, t.args...)
	if err != nil {
		return err
	}
	var stderr errorLines
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.stdin, t.stdout, &stderr
	if err := cmd.Start(); err != nil {
		return failf(ReasonToolMissing, "start %s: %w", t.name, err)
	}
	if t.started != nil {
		t.started()
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // processes that the program left; usually none
	if err := ctx.Err(); err != nil {
		return err
	}
	if err != nil {
		return &toolError{name: t.name, lines: stderr.found(), err: err, hide: s.hide}
	}
	return nil
}

// query runs SQL from standard input, where no other process sees it, and returns what it prints: unaligned tuples.
func (s server) query(ctx context.Context, database, sql string) (string, error) {
	var out bytes.Buffer
	in := strings.NewReader(quietSearch + sql)
	err := s.run(ctx, tool{name: "psql", args: psqlArgs(database), stdin: in, stdout: &out})
	return strings.TrimSuffix(out.String(), "\n"), err
}

// quietSearch prevents functions of users from hiding functions of PostgreSQL.
const quietSearch = "SET search_path = pg_catalog;\n"

func psqlArgs(database string) []string {
	return []string{"--no-psqlrc", "--no-password", "--quiet", "--tuples-only", "--no-align",
		"--set=ON_ERROR_STOP=1", databaseOption("dbname", database)}
}

// version returns the version that a program prints, and its major number.
func (s server) version(ctx context.Context, name string) (version string, major int, err error) {
	var out bytes.Buffer
	if err := s.run(ctx, tool{name: name, args: []string{"--version"}, stdout: &out}); err != nil {
		return "", 0, err
	}
	version = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(out.String()), name+" (PostgreSQL)"))
	if _, err := fmt.Sscanf(version, "%d", &major); err != nil {
		return "", 0, failf(ReasonToolMissing, "%s prints no version, but %q", name, version)
	}
	return version, major, nil
}
