//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shows reports in which way a text has a secret, a line of it, or the part that PostgreSQL keeps of a long name.
func shows(text, secret string) (way string, found bool) {
	values := append(strings.Split(secret, "\n"), secret, secret[:min(len(secret), 63)])
	for _, value := range values {
		if value = strings.TrimSpace(value); value == "" {
			continue
		}
		encoded, _ := json.Marshal(value)
		for way, form := range map[string]string{
			"plain": value, "quoted": strconv.Quote(value), "as JSON": string(encoded),
			"as an identifier":     strings.ReplaceAll(value, `"`, `""`),
			"as a literal of SQL":  strings.ReplaceAll(value, `'`, `''`),
			"as a literal with \\": strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value),
			"on one line":          strings.Join(strings.Fields(value), " "),
		} {
			if form = strings.Trim(form, `"`); strings.Contains(text, form) {
				return way, true
			}
		}
	}
	return "", false
}

// mustHide fails when an output of a run contains a secret.
func mustHide(t *testing.T, settings map[string]string, o outcome, secrets ...string) {
	t.Helper()
	all := o.out + o.errs
	for _, path := range []string{settings["BACKUP_RESULT"], pathOf(settings, suffixFacts)} {
		text, _ := os.ReadFile(path)
		all += string(text)
	}
	for _, secret := range secrets {
		if way, found := shows(all, secret); found {
			t.Errorf("%q is shown %s:\n%s", secret, way, all)
		}
	}
}

// Wrong, swapped or empty references put a password into the user's name, which the server shows.
func TestAWrongSecretReferencePublishesNothing(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_WAIT_SECONDS", "0")
	for name, test := range map[string]struct {
		user, password string
		want           Reason
		says           string
	}{
		"the user is the password": {"Tr0ub4dor&3 horse", "Tr0ub4dor&3 horse", ReasonAuthenticationFailed, refusedUser},
		"swapped":                  {"correct-horse-battery", "keeper-of-orders", ReasonAuthenticationFailed, refusedUser},
		"a short word":             {"wait", "row", ReasonAuthenticationFailed, refusedUser},
		"quotes and backslashes":   {`a"b'c\d<é>&%$ x`, `a"b'c\d<é>&%$ x`, ReasonAuthenticationFailed, refusedUser},
		"longer than a name": {strings.Repeat("0123456789-horse ", 8), strings.Repeat("0123456789-horse ", 8),
			ReasonAuthenticationFailed, refusedUser},
		"a user of two lines": {"first-line\nsecond-line", "first-line\nsecond-line", ReasonInvalidSettings,
			"PGUSER has a control character"},
		"a name with the end of a line": {"keeper-of-orders\n", "hunter2-hunter2", ReasonInvalidSettings,
			"PGUSER has a control character"},
		"a password of two lines": {"keeper-of-orders", "first-line\nsecond-line", ReasonAuthenticationFailed, refusedUser},
		"no user":                 {"", "correct-horse-battery", ReasonInvalidSettings, "PGUSER is not set"},
		"no password":             {"correct-horse-battery", "", ReasonAuthenticationFailed, "PGPASSWORD, which is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := with(settings, "PGUSER", test.user, "PGPASSWORD", test.password)
			for _, verb := range []string{verbBackup, verbRestore} {
				o := runProgram(t, verb, settings)
				if verb == verbBackup && (o.result.Reason != test.want || !strings.Contains(o.result.Message, test.says)) {
					t.Errorf("%s: %s", o.result.Reason, o.result.Message)
				}
				mustHide(t, settings, o, test.user, test.password)
			}
		})
	}
}

// The server names its user in other messages too. The user's name is a value of a Secret.
func TestAMessageAboutTheUserDoesNotNameIt(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_WAIT_SECONDS", "0", "PGPASSWORD", "w-password")
	sql(t, "postgres", `CREATE ROLE "limited user" LOGIN PASSWORD 'w-password' CONNECTION LIMIT 0;
		CREATE ROLE "locked user" NOLOGIN PASSWORD 'w-password';
		CREATE ROLE mini LOGIN PASSWORD 'w-password';`)
	t.Cleanup(func() { sql(t, "postgres", `DROP ROLE "limited user"; DROP ROLE "locked user"; DROP ROLE mini;`) })
	database(t, "policies", `CREATE TABLE mini (a int); ALTER TABLE mini ENABLE ROW LEVEL SECURITY;`)
	for user, test := range map[string]struct {
		want Reason
		says string
	}{
		"limited user": {ReasonTargetNotReady, "no more connections"},
		"locked user":  {ReasonAuthenticationFailed, "may not log in"},
		"mini":         {ReasonPermissionDenied, withheld},
	} {
		settings := with(settings, "PGUSER", user, "BACKUP_DATABASE", "policies")
		o := must(t, verbBackup, settings, test.want)
		if !strings.Contains(o.result.Message, test.says) {
			t.Errorf("%s: %s", user, o.result.Message)
		}
		mustHide(t, settings, o, user)
	}
}

// A program may print its input escaped, or a part of it. The filter runs before the text is cut.
func TestWhatAToolPrintsIsFiltered(t *testing.T) {
	for name, secret := range map[string]string{
		"plain":                     "hunter2:x",
		"with blanks":               "  hunter2  x\t\ty ",
		"with quotes":               `a"hunter2'\ab`,
		"with the end of a line":    "hunter2-x\n",
		"of two lines":              "hunter2-x\nhunter3-y",
		"of short lines":            "hunt\ner-2",
		"a common word":             "route",
		"longer than what is shown": strings.Repeat("hunter2 ", errorLineLimit),
	} {
		for way, script := range map[string]string{
			"plain":   `printf '%s' "$PGPASSWORD"`,
			"doubled": `printf '%s' "$PGPASSWORD" | sed "s/'/''/g; s/\"/\"\"/g"`,
			"padded":  `printf '%0100d' 0; printf '%s' "$PGPASSWORD"`,
			"at the end of what is shown": fmt.Sprintf(`printf '%%0*d' %d 0; printf '%%s' "$PGPASSWORD"`,
				errorLineLimit-len("psql: error: ")-9),
		} {
			t.Run(name+", "+way, func(t *testing.T) {
				settings := with(volume(t), "PGUSER", "someone-else", "PGPASSWORD", secret, "PGPORT", "1",
					"BACKUP_WAIT_SECONDS", "0", "PGHOST", "127.0.0.1", "BACKUP_DATABASE", "d", "PATH",
					toolsWith(t, map[string]string{"pg_dump": "echo 'pg_dump (PostgreSQL) 15.1'",
						"psql": "(printf 'psql: error: '; " + script + ") >&2\nexit 2"}))
				o := must(t, verbBackup, settings, ReasonTargetNotReady)
				mustHide(t, settings, o, secret)
				if !strings.HasSuffix(o.result.Message, withheld) {
					t.Errorf("shown: %s", o.result.Message)
				}
			})
		}
	}
}

// A setting that all users can read is not a secret, even if a database user has the same name.
func TestWhatTheSpecShowsStaysReadable(t *testing.T) {
	f := newFilter(Config{Database: "inventory", Host: "inventory.shop.svc", Name: "inventory-7", environ: []string{
		"PGUSER=inventory", "PGPASSWORD=wait", "PGSSLPASSWORD=correct-horse-battery"}})
	for text, want := range map[string]string{
		`connection to server at "inventory.shop.svc" failed: Connection refused`: `connection to server at ` +
			`"inventory.shop.svc" failed: Connection refused`,
		"wait for the server":                     withheld,
		"a part of a secret: rect-horse-ba":       withheld,
		"fewer than 8 bytes of a secret: correct": "fewer than 8 bytes of a secret: correct",
	} {
		if got := f.fromTool(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	if text := "backup inventory-7 must wait"; f.own(text) != text {
		t.Errorf("own text: %s", f.own(text))
	}
}

func TestPasswordInTheLogIsHidden(t *testing.T) {
	var log bytes.Buffer
	p := &program{hide: newFilter(Config{environ: []string{`PGPASSWORD=a"hunter2  \`}}).own}
	slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: p.hideAttr})).
		Info(`Said a"hunter2  \`, "error", errors.New(`no a"hunter2  \`), "list", []string{`a"hunter2  \`})
	if strings.Contains(log.String(), "hunter2") || strings.Count(log.String(), "***") != 3 {
		t.Errorf("shown: %s", log.String())
	}
}

// The outcome of a verification that another run recorded is filtered too, as is a warning.
func TestEveryTextOfTheResultIsFiltered(t *testing.T) {
	settings := volume(t)
	var out, errs bytes.Buffer
	c := Config{Result: settings["BACKUP_RESULT"], environ: []string{"PGPASSWORD=hunter2-hunter2"}}
	p := &program{hooks: hooks{step: func(string) {}, now: time.Now}, config: c, out: &out, hide: newFilter(c).own}
	text := "as hunter2-hunter2 says"
	p.result = Result{Verb: verbBackup, Warning: text, Backup: &Facts{Dump: Dump{Failure: &Failure{Message: text}}}}
	p.report(errors.New(text), &errs)
	if all := out.String() + errs.String(); strings.Contains(all, "hunter2") || strings.Count(all, "***") != 4 {
		t.Errorf("shown: %s", all)
	}
}
