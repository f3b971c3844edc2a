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
	dir    string
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

// command prepares a program in a separate process group, which ends with ctx.
func (p *program) command(ctx context.Context, t tool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, t.name, t.args...)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.env, t.dir, t.stdin, t.stdout, p.errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	return cmd
}

// start starts a program.
func start(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return because(err, ReasonToolMissing, cmd.Args[0])
	}
	return nil
}

// wait waits for the end of a program, and ends processes that it left.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &toolError{name: cmd.Args[0], code: cmd.ProcessState.ExitCode()}
	}
	return nil
}

// run calls a program and waits for its end.
func (p *program) run(ctx context.Context, t tool) error {
	cmd := p.command(ctx, t)
	if err := start(cmd); err != nil {
		return err
	}
	return wait(ctx, cmd)
}

// pipe runs two programs, of which the second one reads the output of the first one. With whole, the first one must
// write all of its output, also what the second one does not need; without, it ends with the second one.
func (p *program) pipe(ctx context.Context, from, to tool, whole bool) (fromErr, toErr error) {
	r, w, err := os.Pipe()
	if err != nil {
		return err, nil
	}
	defer func() { _ = r.Close() }()
	from.stdout, to.stdin = w, r
	first := p.command(ctx, from)
	err = start(first)
	_ = w.Close()
	if err != nil {
		return err, nil
	}
	toErr = p.run(ctx, to)
	if whole && toErr == nil {
		_, _ = io.Copy(io.Discard, r)
	} else {
		_ = syscall.Kill(-first.Process.Pid, syscall.SIGKILL)
	}
	if fromErr = wait(ctx, first); !whole && code(fromErr) == -1 {
		fromErr = nil
	}
	return fromErr, toErr
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
