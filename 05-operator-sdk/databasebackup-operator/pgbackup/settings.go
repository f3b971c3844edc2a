package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// Verbs. Each is the name of a container.
const (
	verbBackup  = "backup"
	verbVerify  = "verify"
	verbFinish  = "finish"
	verbRestore = "restore"
	verbDelete  = "delete"
)

var verbs = map[string]func(*program, context.Context) error{verbBackup: (*program).backup, verbVerify: (*program).verify,
	verbFinish: (*program).finish, verbRestore: (*program).restore, verbDelete: (*program).delete}

// Mode is how a backup is verified.
type Mode string

const (
	ModeNone    Mode = "None"
	ModeArchive Mode = "Archive" // pg_restore reads the whole dump
	ModeRestore Mode = "Restore" // the dump is restored into a scratch server
)

// maxWait is how long a run waits for a server that starts.
const maxWait = 2 * time.Minute

// Policy are the numbers of backups that retention keeps.
type Policy struct {
	Last       uint16 `env:"BACKUP_KEEP_LAST" envDefault:"7"`
	Daily      uint16 `env:"BACKUP_KEEP_DAILY"`
	Weekly     uint16 `env:"BACKUP_KEEP_WEEKLY"`
	Monthly    uint16 `env:"BACKUP_KEEP_MONTHLY"`
	Within     uint16 `env:"BACKUP_KEEP_WITHIN_DAYS"`
	MaxAgeDays uint16 `env:"BACKUP_MAX_AGE_DAYS"`
}

// Config are the settings of one run. README.md explains them.
type Config struct {
	Verb        string
	Repository  string         `env:"RESTIC_REPOSITORY"`
	Volume      string         `env:"BACKUP_VOLUME"`
	Owner       string         `env:"BACKUP_OWNER"`
	Name        string         `env:"BACKUP_NAME"`
	Snapshot    string         `env:"BACKUP_SNAPSHOT"`
	Database    string         `env:"BACKUP_DATABASE"`
	RestoreUID  string         `env:"BACKUP_RESTORE_UID"`
	Image       uint16         `env:"PG_MAJOR"` // the version of PostgreSQL in the image, which official images set
	Host        string         `env:"PGHOST"`
	Port        uint16         `env:"PGPORT" envDefault:"5432"`
	User        string         `env:"PGUSER"`
	Verify      Mode           `env:"BACKUP_VERIFY" envDefault:"Archive"`
	Query       string         `env:"BACKUP_QUERY"`
	Slot        int64          `env:"BACKUP_SLOT"` // in Unix seconds
	Location    *time.Location `env:"BACKUP_TIME_ZONE" envDefault:"UTC"`
	WaitSeconds uint32         `env:"BACKUP_WAIT_SECONDS" envDefault:"120"`
	Scratch     string         `env:"BACKUP_SCRATCH" envDefault:"/scratch"`
	Result      string         `env:"BACKUP_RESULT" envDefault:"/dev/termination-log"`
	Policy

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
	c := Config{environ: env.ToMap(environ)}
	err := env.ParseWithOptions(&c, env.Options{Environment: c.environ})
	c.Verb, c.Query = verb, strings.TrimSpace(c.Query)
	if c.Slot == 0 {
		c.Slot = time.Now().Unix()
	}
	if !remote(c.Repository) {
		c.Repository = filepath.Clean(c.Repository)
	}
	if wrong, ok := errors.AsType[env.ParseError](err); ok {
		field, _ := reflect.TypeFor[Config]().FieldByName(wrong.Name)
		return c, because(err, ReasonInvalidSettings, field.Tag.Get("env")+" has a wrong value")
	}
	if err == nil {
		err = c.check()
	}
	return c, err
}

// remote reports whether a repository is not a folder.
func remote(repository string) bool {
	return strings.HasPrefix(repository, "s3:http") || strings.HasPrefix(repository, "rest:http")
}

func (c Config) slot() time.Time { return time.Unix(c.Slot, 0).UTC() }

func (c Config) wait() time.Duration { return time.Duration(c.WaitSeconds) * time.Second }

// check checks what the verb needs, and the files that the pod mounts.
func (c Config) check() error {
	required, known := needed[c.Verb]
	if c.Verb == verbRestore && c.Snapshot == "" {
		required += " BACKUP_OWNER BACKUP_NAME"
	}
	for variable := range strings.FieldsSeq(required) {
		if c.environ[variable] == "" {
			return because(nil, ReasonInvalidSettings, variable+" is not set")
		}
	}
	wrong := ""
	switch {
	case !known:
		wrong = "there is no such verb"
	case c.Verify != ModeNone && c.Verify != ModeArchive && c.Verify != ModeRestore:
		wrong = "BACKUP_VERIFY must be None, Archive or Restore"
	case !remote(c.Repository) && !filepath.IsAbs(c.Repository) && required != "":
		wrong = "RESTIC_REPOSITORY must be a folder, or begin with s3:http or rest:http"
	case strings.Contains(c.Host, ","): // libpq would try each host of a list, with the password
		wrong = "PGHOST must be one host"
	}
	if wrong != "" {
		return because(nil, ReasonInvalidSettings, wrong)
	}
	for variable, purpose := range files {
		if _, err := os.Stat(c.environ[variable]); c.environ[variable] != "" && errors.Is(err, fs.ErrNotExist) {
			return because(err, ReasonSecretNotFound, purpose)
		}
	}
	return nil
}
