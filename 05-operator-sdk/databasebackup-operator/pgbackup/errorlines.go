package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// toolError is the failure of a program, with the lines of its standard error that report errors. The lines are
// unchanged, because they are recognized by their text. Error withholds secrets first, and then cuts the text.
type toolError struct {
	name  string
	lines []string
	err   error
	hide  func(string) string // nil if no secret is known
}

func (e *toolError) Error() string {
	if len(e.lines) == 0 {
		return fmt.Sprintf("%s: %v", e.name, e.err)
	}
	var shown []string
	for _, line := range e.lines {
		if e.hide != nil {
			line = e.hide(line)
		}
		shown = append(shown, shorten(line, errorLineLimit))
	}
	return strings.Join(shown, ", ")
}

func (e *toolError) Unwrap() error { return e.err }

// errorLines keeps the lines of standard error that report errors, or the last line if there is none.
// Details are left out: they may show rows of the database.
type errorLines struct {
	partial []byte
	lines   []string
	last    string
}

// errorMarkers are parts of lines that report errors.
var errorMarkers = []string{"error: ", "ERROR: ", "FATAL: ", "PANIC: ", "fatal: ",
	"detail: Error message from server: "}

const (
	errorLineCount = 4
	errorLineLimit = 300
)

func (c *errorLines) Write(p []byte) (int, error) {
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

func (c *errorLines) line(text string) {
	text = strings.ToValidUTF8(strings.TrimSpace(text), "?")
	if text == "" {
		return
	}
	c.last = text
	for _, marker := range errorMarkers {
		if strings.Contains(text, marker) && len(c.lines) < errorLineCount {
			c.lines = append(c.lines, text)
			return
		}
	}
}

func (c *errorLines) found() []string {
	c.line(string(c.partial))
	c.partial = nil
	if len(c.lines) == 0 && c.last != "" {
		return []string{c.last}
	}
	return c.lines
}

// pattern is a part of a message that stands for a reason. A sentence replaces a message that names the user, which may
// be a value of a Secret.
type pattern struct {
	text     string
	reason   Reason
	sentence string
}

const (
	refusedUser = "the server refuses the credentials: check the Secrets that auth names (PGUSER and PGPASSWORD)"
	noPassword  = "the server asks for PGPASSWORD, which is empty: check the Secret of auth.passwordSecretRef"
)

// connectionPatterns are messages of libpq and the server about a connection. A retry fixes only TargetNotReady.
var connectionPatterns = []pattern{
	{"authentication failed", ReasonAuthenticationFailed, refusedUser},
	{"no password supplied", ReasonAuthenticationFailed, noPassword},
	{"empty password returned", ReasonAuthenticationFailed, noPassword},
	{"pg_hba.conf", ReasonAuthenticationFailed,
		"the server's pg_hba.conf does not let this user connect to this database from here"},
	{"authentication method requirement", ReasonAuthenticationFailed,
		"the server asks for another kind of authentication than PGREQUIREAUTH allows"},
	{"too many connections for role", ReasonTargetNotReady, "the server allows this user no more connections"},
	{"is not permitted to log in", ReasonAuthenticationFailed,
		"the user of auth.usernameSecretRef (PGUSER) may not log in"},
	{`FATAL:  role "`, ReasonAuthenticationFailed, refusedUser}, // does not exist
	{"server does not support SSL", ReasonTLSFailed, ""},
	{"certificate verify failed", ReasonTLSFailed, ""},
	{"does not match host name", ReasonTLSFailed, ""},
	{"root certificate file", ReasonTLSFailed, ""},
	{`database "?" does not exist`, ReasonDatabaseNotFound, ""},
	{`permission denied for database "?"`, ReasonPermissionDenied, ""},
}

// workPatterns are messages of tools that fail in the middle of their work.
var workPatterns = []pattern{
	{"server version mismatch", ReasonVersionMismatch, ""},
	{"permission denied", ReasonPermissionDenied, ""},
	{"must be owner of", ReasonPermissionDenied, ""},
	{"must be superuser", ReasonPermissionDenied, ""},
	{"must be member of role", ReasonPermissionDenied, ""},
	{"query would be affected by row-level security", ReasonPermissionDenied, ""},
	{"server closed the connection", ReasonConnectionLost, ""},
	{"connection to server", ReasonConnectionLost, ""},
	{"terminating connection", ReasonConnectionLost, ""},
	{"the database system is", ReasonConnectionLost, ""},
}

// volumePatterns are messages of a tool that cannot write its own file. The server writes the same about its files,
// after ERROR.
var volumePatterns = []pattern{
	{"No space left on device", ReasonVolumeFull, ""},
	{"Disk quota exceeded", ReasonVolumeFull, ""},
	{"File too large", ReasonVolumeFull, ""},
	{"Permission denied", ReasonVolumeNotWritable, ""},
	{"Read-only file system", ReasonVolumeNotWritable, ""},
}

// classify gives the error of a tool the reason of the first pattern in its text, and without such a pattern the reason
// otherwise. Names in the message come from users, so they are taken out first.
func classify(err error, doing string, otherwise Reason, patterns []pattern, names ...string) error {
	t, ok := errors.AsType[*toolError](err)
	if !ok {
		return err
	}
	if exit, ok := errors.AsType[*exec.ExitError](t.err); ok && exit.ExitCode() == -1 {
		return failf(ReasonToolKilled, "%s: %s ended by %w", doing, t.name, exit)
	}
	reason := otherwise
	for _, line := range t.lines {
		if found := match(line, patterns, names); found != "" {
			reason = found
			break
		}
	}
	return failf(reason, "%s: %w", doing, err)
}

func match(line string, patterns []pattern, names []string) Reason {
	for _, name := range names {
		line = strings.ReplaceAll(line, `"`+name+`"`, `"?"`)
	}
	for _, s := range patterns {
		if strings.Contains(line, s.text) {
			return s.reason
		}
	}
	if strings.Contains(line, "ERROR: ") || strings.Contains(line, "FATAL: ") {
		return ""
	}
	for _, s := range volumePatterns {
		if strings.Contains(line, s.text) {
			return s.reason
		}
	}
	return ""
}
