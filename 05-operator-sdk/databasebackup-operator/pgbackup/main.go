package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	syscall.Umask(0o007) // the group of the volume may read and prune, others may not even look
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// program is one run.
type program struct {
	config Config
	log    *slog.Logger
	errs   io.Writer
	result Result
}

// run runs one verb and returns the exit code. doc.go describes the settings and the output.
func run(ctx context.Context, args, environ []string, out, errs io.Writer) int {
	if len(args) != 1 {
		_, _ = fmt.Fprintln(errs, "usage: pgbackup backup|verify|finish|restore|delete (settings come from the environment)")
		return exitFinal
	}
	config, err := Settings(args[0], environ)
	p := &program{config: config, errs: errs, log: slog.New(slog.NewTextHandler(errs, nil)),
		result: Result{Verb: args[0], Started: now()}}
	if err == nil {
		err = verbs[args[0]](p, ctx)
	}
	if err != nil && ctx.Err() != nil {
		err = because(err, ReasonInterrupted)
	}
	return p.report(err, out)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// succeed records the outcome of a successful run.
func (p *program) succeed(reason Reason, format string, args ...any) {
	p.result.Reason, p.result.Message = reason, fmt.Sprintf(format, args...)
}

// warn adds a sentence to the warning of the result.
func (p *program) warn(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.log.Warn(text)
	p.result.Warning = strings.TrimPrefix(p.result.Warning+"; "+text, "; ")
}

// report writes the result and returns the exit code. The cause of a failure is only logged.
func (p *program) report(err error, out io.Writer) int {
	r := &p.result
	r.Succeeded, r.Seconds = err == nil, time.Since(r.Started).Round(time.Millisecond).Seconds()
	exit := 0
	if err != nil {
		f := faultOf(err)
		r.Reason, r.Message = f.reason, f.message()
		exit = exitCodes[f.reason]
		p.log.Error("Failed", "verb", r.Verb, "reason", r.Reason, "message", r.Message, "cause", f.cause)
	}
	encoded, err := r.encode()
	if _, outside := os.Stat(p.config.Result); err == nil && outside == nil { // only a pod has the file, for the kubelet
		err = os.WriteFile(p.config.Result, encoded, 0o600)
	}
	if err != nil {
		p.log.Error("Failed to write the result", "error", err)
		exit = max(exit, exitFailed)
	}
	_, _ = out.Write(encoded)
	return exit
}
