package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	defaultResult = "/dev/termination-log"
	defaultWait   = 2 * time.Minute
)

// Config are the settings of one run. doc.go explains them.
type Config struct {
	Verb             string
	Root, Dir        string
	Owner, Name      string
	Database         string
	RestoreUID       string
	Host, Port, User string
	Verify           Mode
	Query            string
	CheckAgain       []string
	Policy           Policy
	Location         *time.Location
	Overwrite        bool
	Wait             time.Duration
	Scratch          string
	Result           string

	environ []string // as given
}

var (
	uidForm  = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{0,35}$`)
	nameForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?$`)
	modeForm = regexp.MustCompile(`^(None|Archive|Restore)$`)
	boolForm = regexp.MustCompile(`^(true|false)$`)
)

// Settings reads the settings of a verb from an environment and checks them. The error names the variable, the fault,
// and the fix. Even with an error, the Config can be used for Result.
func Settings(verb string, environ []string) (Config, error) {
	r := reader{values: map[string]string{}}
	for _, pair := range environ {
		key, value, _ := strings.Cut(pair, "=")
		r.values[key] = value
	}
	c := Config{Verb: verb, environ: environ, Location: time.UTC, Result: r.or("BACKUP_RESULT", defaultResult)}
	if !slices.Contains(verbs, verb) {
		return c, failf(ReasonInvalidSettings, "verb %q is unknown: use one of %s", verb, strings.Join(verbs, ", "))
	}
	if !filepath.IsAbs(c.Result) {
		r.wrong("BACKUP_RESULT", "is no absolute path", "name the pod's terminationMessagePath, or leave it out")
		c.Result = defaultResult
	}
	r.scratch(&c)
	if verb == verbScratch {
		return c, r.err
	}
	r.places(&c)
	r.names(&c)
	if verb == verbBackup || verb == verbRestore {
		r.server(&c)
	}
	r.verification(&c)
	r.retention(&c)
	c.Wait = time.Duration(r.number("BACKUP_WAIT_SECONDS", int(defaultWait/time.Second), 86400)) * time.Second
	c.Overwrite = r.formed("BACKUP_OVERWRITE", boolForm, "set true or false") == "true"
	return c, r.err
}

func (r *reader) places(c *Config) {
	c.Root = r.path("BACKUP_ROOT", r.required("BACKUP_ROOT", "set the absolute path where the volume is mounted"))
	c.Dir = r.path("BACKUP_DIR", r.required("BACKUP_DIR", "set an absolute directory inside BACKUP_ROOT"))
	if r.err == nil && !inside(c.Root, c.Dir) {
		r.wrong("BACKUP_DIR", fmt.Sprintf("is %q, which is not inside BACKUP_ROOT %q", c.Dir, c.Root),
			"choose a directory of the volume")
	}
}

func (r *reader) scratch(c *Config) {
	c.Scratch = r.values["BACKUP_SCRATCH"]
	if c.Verb == verbScratch || r.values["BACKUP_VERIFY"] == string(ModeRestore) {
		c.Scratch = r.path("BACKUP_SCRATCH", r.required("BACKUP_SCRATCH",
			"set the directory that is shared with the scratch container"))
	}
}

func (r *reader) names(c *Config) {
	r.required("BACKUP_OWNER", "set the UID of the resource that the backups belong to")
	c.Owner = r.formed("BACKUP_OWNER", uidForm, "set a UID: letters, digits and -, at most 36")
	if c.Verb == verbDelete {
		return
	}
	if c.Verb == verbRestore {
		c.RestoreUID = r.formed("BACKUP_RESTORE_UID", uidForm, "set a UID: letters, digits and -, at most 36")
	}
	r.required("BACKUP_NAME", "set the name of the backup, like orders-29012345")
	c.Name = r.formed("BACKUP_NAME", nameForm,
		"use lower case letters, digits, - and ., at most 200, a letter or digit at both ends")
}

func (r *reader) server(c *Config) {
	c.Database = r.values["BACKUP_DATABASE"]
	if c.Verb == verbBackup { // restore defaults to the database that was dumped
		r.required("BACKUP_DATABASE", "set the name of the database")
	}
	if len(c.Database) > 63 {
		r.wrong("BACKUP_DATABASE", fmt.Sprintf("has %d bytes", len(c.Database)), "PostgreSQL allows 63")
	}
	c.Host = r.required("PGHOST", "set the name or address of the server")
	if strings.Contains(c.Host, ",") { // libpq would try each of them, with the password
		r.wrong("PGHOST", fmt.Sprintf("is %q, a list of hosts", c.Host), "set one")
	}
	c.User = r.required("PGUSER", "set it from the Secret that holds the user's name")
	if strings.ContainsFunc(c.User, unicode.IsControl) {
		r.wrong("PGUSER", "has a control character, such as the end of a line", "write only the user's name into the Secret")
	}
	c.Port = r.or("PGPORT", "5432")
	if n, err := strconv.Atoi(c.Port); err != nil || n < 1 || n > 65535 {
		r.wrong("PGPORT", fmt.Sprintf("is %q", c.Port), "set a port from 1 to 65535")
	}
}

func (r *reader) verification(c *Config) {
	mode := r.formed("BACKUP_VERIFY", modeForm, "set None, Archive or Restore")
	c.Verify = cmp.Or(Mode(mode), ModeArchive)
	c.Query = strings.TrimSpace(r.values["BACKUP_QUERY"])
	// psql would run it as a psql command, and some psql commands run programs.
	if strings.HasPrefix(c.Query, `\`) {
		r.wrong("BACKUP_QUERY", `begins with \`, "write one SQL query")
	}
	for name := range strings.FieldsFuncSeq(r.values["BACKUP_CHECK_AGAIN"], func(c rune) bool { return c == ',' }) {
		if !nameForm.MatchString(name) {
			r.wrong("BACKUP_CHECK_AGAIN", fmt.Sprintf("has %q", name), "list names of backups, separated by commas")
		}
		c.CheckAgain = append(c.CheckAgain, name)
	}
}

func (r *reader) retention(c *Config) {
	const limit = 10000
	c.Policy = Policy{
		KeepLast:    r.number("BACKUP_KEEP_LAST", 7, limit),
		KeepDaily:   r.number("BACKUP_KEEP_DAILY", 0, limit),
		KeepWeekly:  r.number("BACKUP_KEEP_WEEKLY", 0, limit),
		KeepMonthly: r.number("BACKUP_KEEP_MONTHLY", 0, limit),
		MaxAgeDays:  r.number("BACKUP_MAX_AGE_DAYS", 0, 36500),
	}
	zone := r.or("BACKUP_TIME_ZONE", "UTC")
	location, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		r.wrong("BACKUP_TIME_ZONE", fmt.Sprintf("is %q", zone), "set a name of the IANA database, like Europe/Berlin")
		return
	}
	c.Location = location
}
