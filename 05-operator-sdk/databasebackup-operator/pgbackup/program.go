package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// Exit codes of the program.
const (
	exitFailed = 1 // another try may succeed
	exitFinal  = 3 // another try would fail in the same way. Go uses 2 after a panic
)

// hooks are the functions that tests replace.
type hooks struct {
	now  func() time.Time
	step func(string)
}

// program is one run.
type program struct {
	hooks
	config Config
	target server
	log    *slog.Logger
	out    io.Writer
	result Result
	hide   func(string) string
}

// run runs one verb and returns the exit code. doc.go describes the settings and the output.
func run(ctx context.Context, args, environ []string, out, errs io.Writer, h hooks) int {
	if len(args) != 1 {
		_, _ = fmt.Fprintf(errs, "usage: pgbackup %s (settings come from the environment)\n", strings.Join(verbs, "|"))
		return exitFinal
	}
	config, err := Settings(args[0], environ)
	p := &program{hooks: h, config: config, target: targetServer(config), out: out, hide: newFilter(config).own}
	p.log = slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{ReplaceAttr: p.hideAttr}))
	p.result = Result{Verb: args[0], Started: p.now().UTC().Truncate(time.Millisecond)}
	if err == nil {
		err = p.do(ctx)
	}
	if err == nil && config.Verb == verbScratch {
		return 0 // the process was stopped, and has no result
	}
	if ctx.Err() != nil && err != nil {
		err = failf(ReasonInterrupted, "stopped by a signal; this run or the next one removes the unfinished files")
	}
	return p.report(err, errs)
}

func (p *program) do(ctx context.Context) error {
	switch p.config.Verb {
	case verbBackup:
		return p.backup(ctx)
	case verbRestore:
		return p.restore(ctx)
	case verbDelete:
		return p.delete(ctx)
	}
	return p.serveScratch(ctx)
}

// succeed records the outcome of a successful run.
func (p *program) succeed(reason Reason, format string, args ...any) {
	p.result.Reason, p.result.Message = reason, fmt.Sprintf(format, args...)
}

// report writes the result and returns the exit code. The last line on standard error says why a run failed.
func (p *program) report(err error, errs io.Writer) int {
	r := &p.result
	r.Succeeded, r.Seconds = err == nil, p.now().Sub(r.Started).Round(time.Millisecond).Seconds()
	if err != nil {
		r.Reason, r.Message = reasonOf(err), p.line(err)
	}
	r.Message, r.Warning = p.hide(r.Message), p.hide(r.Warning)
	if r.Backup != nil && r.Backup.Failure != nil {
		r.Backup.Failure.Message = p.hide(r.Backup.Failure.Message)
	}
	p.step("result")
	encoded, err2 := r.encode()
	if err2 == nil {
		err2 = writeResult(p.config.Result, encoded)
	}
	_, _ = p.out.Write(encoded)
	if err == nil && err2 == nil {
		return 0
	}
	if err == nil {
		err, r.Reason = err2, ReasonFailed
	}
	_, _ = fmt.Fprintf(errs, "pgbackup %s: %s: %s\n", r.Verb, r.Reason, p.line(err))
	if final[r.Reason] {
		return exitFinal
	}
	return exitFailed
}

// line is an error as one line without secrets.
func (p *program) line(err error) string { return oneLine(p.hide(err.Error())) }

// oneLine joins the lines of a message.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// hideAttr takes secrets out of a value of the log, before the handler quotes it.
func (p *program) hideAttr(_ []string, a slog.Attr) slog.Attr {
	if text := a.Value.String(); p.hide(text) != text {
		a.Value = slog.StringValue(p.hide(text))
	}
	return a
}
