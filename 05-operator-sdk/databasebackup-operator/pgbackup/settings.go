package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Verbs, in the order of the usage line. Each is the name of a container.
const (
	verbBackup  = "backup"
	verbVerify  = "verify"
	verbFinish  = "finish"
	verbRestore = "restore"
	verbDelete  = "delete"
)

var verbs = []string{verbBackup, verbVerify, verbFinish, verbRestore, verbDelete}

// Mode is how a backup is verified.
type Mode string

const (
	ModeNone    Mode = "None"
	ModeArchive Mode = "Archive" // pg_restore reads the whole dump
	ModeRestore Mode = "Restore" // the dump is restored into a scratch server
)

const (
	defaultResult  = "/dev/termination-log"
	defaultScratch = "/scratch"
	maxWait        = 2 * time.Minute // for a server that starts
)

// Policy are the numbers of backups that retention keeps.
type Policy struct{ Last, Daily, Weekly, Monthly, MaxAgeDays int }

// Config are the settings of one run. doc.go explains them.
type Config struct {
	Verb             string
	Repository       string
	Volume           string
	Owner, Name      string
	Snapshot         string
	Database         string
	RestoreUID       string
	Host, Port, User string
	Verify           Mode
	Query            string
	Slot             time.Time
	Policy           Policy
	Location         *time.Location
	Wait             time.Duration
	Scratch          string
	Result           string

	environ map[string]string // as given
}

// files are the settings that name files of Secrets and ConfigMaps.
var files = map[string]string{
	"RESTIC_PASSWORD_FILE": "the password of the repository",
	"RESTIC_CACERT":        "the CA of the repository's server",
	"PGSSLROOTCERT":        "the CA of the database server",
}

// needed are the settings that each verb needs.
var needed = map[string]string{
	verbBackup:  "RESTIC_REPOSITORY RESTIC_PASSWORD_FILE BACKUP_OWNER BACKUP_NAME BACKUP_DATABASE PGHOST PGUSER",
	verbVerify:  "",
	verbFinish:  "RESTIC_REPOSITORY RESTIC_PASSWORD_FILE BACKUP_OWNER BACKUP_NAME",
	verbRestore: "RESTIC_REPOSITORY RESTIC_PASSWORD_FILE PGHOST PGUSER",
	verbDelete:  "RESTIC_REPOSITORY RESTIC_PASSWORD_FILE BACKUP_OWNER",
}

// Settings reads the settings of a verb from an environment and checks them. The error names the variable and the
// fault. Even with an error, the Config can be used for Result.
func Settings(verb string, environ []string) (Config, error) {
	r := reader{values: map[string]string{}}
	for _, pair := range environ {
		key, value, _ := strings.Cut(pair, "=")
		r.values[key] = value
	}
	wait := r.number("BACKUP_WAIT_SECONDS", 120, 86400)
	c := Config{
		Verb: verb, environ: r.values,
		Repository: r.values["RESTIC_REPOSITORY"], Volume: r.values["BACKUP_VOLUME"],
		Owner: r.values["BACKUP_OWNER"], Name: r.values["BACKUP_NAME"], Snapshot: r.values["BACKUP_SNAPSHOT"],
		Database: r.values["BACKUP_DATABASE"], RestoreUID: r.values["BACKUP_RESTORE_UID"],
		Host: r.values["PGHOST"], Port: strconv.Itoa(r.number("PGPORT", 5432, 65535)), User: r.values["PGUSER"],
		Verify: Mode(r.or("BACKUP_VERIFY", string(ModeArchive))), Query: strings.TrimSpace(r.values["BACKUP_QUERY"]),
		Slot: time.Unix(int64(r.number("BACKUP_SLOT", int(time.Now().Unix()), 1<<40)), 0).UTC(),
		Policy: Policy{Last: r.number("BACKUP_KEEP_LAST", 7, 10000), Daily: r.number("BACKUP_KEEP_DAILY", 0, 10000),
			Weekly: r.number("BACKUP_KEEP_WEEKLY", 0, 10000), Monthly: r.number("BACKUP_KEEP_MONTHLY", 0, 10000),
			MaxAgeDays: r.number("BACKUP_MAX_AGE_DAYS", 0, 36500)},
		Location: time.UTC, Wait: time.Duration(wait) * time.Second,
		Scratch: filepath.Clean(r.or("BACKUP_SCRATCH", defaultScratch)), Result: r.or("BACKUP_RESULT", defaultResult),
	}
	if !remote(c.Repository) {
		c.Repository = filepath.Clean(c.Repository)
	}
	if location, err := time.LoadLocation(r.or("BACKUP_TIME_ZONE", "UTC")); err == nil {
		c.Location = location
	} else {
		r.wrong("BACKUP_TIME_ZONE", "must be a name of the IANA database, like Europe/Berlin")
	}
	r.check(verb)
	return c, r.err
}

// remote reports whether a repository is not a folder.
func remote(repository string) bool {
	return strings.HasPrefix(repository, "s3:") || strings.HasPrefix(repository, "rest:")
}

// reader reads variables and keeps the first error.
type reader struct {
	values map[string]string
	err    error
}

func (r *reader) wrong(variable, fault string) {
	if r.err == nil {
		r.err = because(nil, ReasonInvalidSettings, variable+" "+fault)
	}
}

func (r *reader) or(variable, otherwise string) string {
	if value := r.values[variable]; value != "" {
		return value
	}
	return otherwise
}

func (r *reader) number(variable string, otherwise, limit int) int {
	n, err := strconv.Atoi(r.or(variable, strconv.Itoa(otherwise)))
	if err != nil || n < 0 || n > limit {
		r.wrong(variable, fmt.Sprintf("must be a whole number from 0 to %d", limit))
	}
	return n
}

// check checks what a verb needs, and the files that the pod mounts.
func (r *reader) check(verb string) {
	required, known := needed[verb]
	if !known {
		r.wrong("the verb", "must be one of "+strings.Join(verbs, ", "))
	}
	if verb == verbRestore && r.values["BACKUP_SNAPSHOT"] == "" {
		required += " BACKUP_OWNER BACKUP_NAME"
	}
	for variable := range strings.FieldsSeq(required) {
		if r.values[variable] == "" {
			r.wrong(variable, "is not set")
		}
	}
	if mode := r.values["BACKUP_VERIFY"]; !strings.Contains("|None|Archive|Restore|", "|"+mode) {
		r.wrong("BACKUP_VERIFY", "must be None, Archive or Restore")
	}
	if repository := r.values["RESTIC_REPOSITORY"]; repository != "" && !remote(repository) && !filepath.IsAbs(repository) {
		r.wrong("RESTIC_REPOSITORY", "must be a folder, or begin with s3: or rest:")
	}
	if strings.Contains(r.values["PGHOST"], ",") { // libpq would try each host of a list, with the password
		r.wrong("PGHOST", "must be one host")
	}
	for variable, purpose := range files {
		if _, err := os.Stat(r.values[variable]); r.values[variable] != "" && errors.Is(err, fs.ErrNotExist) && r.err == nil {
			r.err = because(err, ReasonSecretNotFound, purpose)
		}
	}
}
