package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// grace is how long a tool may take to end after SIGTERM.
const grace = 5 * time.Second

// tool is one call of a program. No shell is involved, and no secret is among its arguments. The text that it writes to
// its standard error goes to the log.
type tool struct {
	name   string
	args   []string
	env    []string
	stdin  io.Reader
	stdout io.Writer
}

// toolError is the error of a tool that ended with a code other than 0. A tool that a signal ended has the code -1.
type toolError struct {
	name string
	code int
}

func (e *toolError) Error() string { return fmt.Sprintf("%s ended with code %d", e.name, e.code) }

// code is the exit code of a tool, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*toolError](err); ok {
		return e.code
	}
	return 0
}

// environment are the variables of all tools: no credentials. A tool's texts are English, for the log.
func (p *program) environment(more ...string) []string {
	return append(p.variables("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"), append(more, "LC_ALL=C")...)
}

// variables returns those of the named variables that are set.
func (p *program) variables(names ...string) (env []string) {
	for _, name := range names {
		if value := p.config.environ[name]; value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// serverVariables are the variables of a tool that connects to the server.
func (p *program) serverVariables() []string {
	return append(p.variables("PGPASSWORD", "PGSSLMODE", "PGSSLROOTCERT", "PGREQUIREAUTH"),
		fmt.Sprintf("PGPORT=%d", p.config.Port), "PGHOST="+p.config.Host, "PGUSER="+p.config.User, "PGCONNECT_TIMEOUT=10",
		"PGAPPNAME="+applicationName, "PGOPTIONS="+sessionOptions)
}

// start starts a program, which ends with ctx.
func (p *program) start(ctx context.Context, t tool) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, t.name, t.args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = t.env, t.stdin, t.stdout, p.errs, grace
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return nil, because(err, ReasonToolMissing, t.name)
	}
	return cmd, nil
}

// wait waits for the end of a program.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Wait()
	if err != nil && ctx.Err() == nil {
		return &toolError{name: cmd.Args[0], code: cmd.ProcessState.ExitCode()}
	}
	return ctx.Err()
}

// run calls a program and waits for its end.
func (p *program) run(ctx context.Context, t tool) error {
	cmd, err := p.start(ctx, t)
	if err != nil {
		return err
	}
	return wait(ctx, cmd)
}

// pipe runs two programs, of which the second one reads the output of the first one. When both fail, the error is that
// of the first one.
func (p *program) pipe(ctx context.Context, from, to tool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	from.stdout, to.stdin = w, r
	first, err := p.start(ctx, from)
	_ = w.Close()
	if err != nil {
		return err
	}
	err = p.run(ctx, to)
	_ = first.Process.Kill() // it has ended, or nothing reads its output any more
	if failed := wait(ctx, first); err != nil && code(failed) > 0 {
		return failed
	}
	return err
}

// feed runs two programs, of which the second one stores the output of the first one. Its input ends when the first program has
// succeeded. When that fails, the second program is ended instead, so it never takes a part for the whole. When the second
// program ends early, the first one is ended, too.
func (p *program) feed(ctx context.Context, from, to tool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	storing, stopStoring := context.WithCancel(ctx)
	defer stopStoring()
	writing, stopWriting := context.WithCancel(ctx)
	defer stopWriting()
	from.stdout, to.stdin = w, r
	second, err := p.start(storing, to)
	_ = r.Close()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		ended <- wait(storing, second)
		stopWriting()
	}()
	failed := p.run(writing, from)
	if failed == nil {
		_ = w.Close()
	} else {
		stopStoring()
	}
	if err := <-ended; failed == nil || code(err) != 0 {
		return err
	}
	return failed
}

// databaseOption names a database to a tool. libpq would take a name with = or :// in it as a connection string, so the
// name is always passed inside a connection string.
func databaseOption(option, database string) string {
	return "--" + option + "=dbname=" + connectionValue(database)
}

// connectionValue quotes a value in a connection string.
func connectionValue(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
