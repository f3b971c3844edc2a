//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// complete are settings that every verb accepts.
var complete = map[string]string{
	"BACKUP_ROOT": "/backups", "BACKUP_DIR": "/backups/orders", "BACKUP_OWNER": "1b2c-3d",
	"BACKUP_NAME":     "orders-29012345",
	"BACKUP_DATABASE": "orders", "PGHOST": "db", "PGUSER": "keeper",
}

func environment(settings map[string]string) (environ []string) {
	for key, value := range settings {
		environ = append(environ, key+"="+value)
	}
	return environ
}

func TestSettingsHaveDefaults(t *testing.T) {
	for _, verb := range verbs {
		if verb == verbScratch {
			continue // it has no settings except its directory
		}
		c, err := Settings(verb, environment(complete))
		if err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		if c.Verify != ModeArchive || c.Policy != (Policy{KeepLast: 7}) || c.Wait != 2*time.Minute ||
			c.Location != time.UTC ||
			c.Result != "/dev/termination-log" || c.Overwrite {
			t.Errorf("%s: %+v", verb, c)
		}
	}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		verb, variable, value string
		want                  string
	}{
		"no root": {verbDelete, "BACKUP_ROOT", "", "BACKUP_ROOT is not set: set the absolute path"},
		"a relative directory": {
			verbDelete, "BACKUP_DIR", "backups/x", "BACKUP_DIR is \"backups/x\", no absolute path: begin it with /"},
		"a way out": {verbDelete, "BACKUP_DIR", "/backups/../etc", "BACKUP_DIR is \"/backups/../etc\", which holds ..: write"},
		"another directory": {
			verbDelete, "BACKUP_DIR", "/backups2", "BACKUP_DIR is \"/backups2\", which is not inside BACKUP_ROOT"},
		"a very long one": {
			verbDelete, "BACKUP_DIR", "/backups/" + strings.Repeat("x", 600), "BACKUP_DIR is longer than 512 bytes"},
		"an owner with a slash":        {verbDelete, "BACKUP_OWNER", "a/b", "BACKUP_OWNER is \"a/b\": set a UID"},
		"an owner that is a directory": {verbDelete, "BACKUP_OWNER", "..", "BACKUP_OWNER is \"..\": set a UID"},
		"a name with a slash":          {verbRestore, "BACKUP_NAME", "../x", "BACKUP_NAME is \"../x\": use lower case"},
		"no name":                      {verbRestore, "BACKUP_NAME", "", "BACKUP_NAME is not set"},
		"no database":                  {verbBackup, "BACKUP_DATABASE", "", "BACKUP_DATABASE is not set"},
		"a long database": {
			verbBackup, "BACKUP_DATABASE", strings.Repeat("ü", 32), "BACKUP_DATABASE has 64 bytes: PostgreSQL allows 63"},
		"no host": {verbBackup, "PGHOST", "", "PGHOST is not set"},
		"two hosts": {
			verbBackup, "PGHOST", "evil.example.com,x", "PGHOST is \"evil.example.com,x\", a list of hosts: set one"},
		"a port": {verbBackup, "PGPORT", "66000", "PGPORT is \"66000\": set a port"},
		"a mode": {verbBackup, "BACKUP_VERIFY", "archive",
			"BACKUP_VERIFY is \"archive\": set None, Archive or Restore"},
		"a command of psql": {verbBackup, "BACKUP_QUERY", ` \! id`, `BACKUP_QUERY begins with \: write one SQL query`},
		"a backup to check again that is a path": {verbBackup, "BACKUP_CHECK_AGAIN", "orders-1,../x",
			`BACKUP_CHECK_AGAIN has "../x": list names of backups`},
		"a number": {verbDelete, "BACKUP_KEEP_LAST", "-1",
			"BACKUP_KEEP_LAST is \"-1\": set a whole number from 0"},
		"a number with a unit": {verbDelete, "BACKUP_MAX_AGE_DAYS", "7d", "BACKUP_MAX_AGE_DAYS is \"7d\""},
		"a zone": {verbDelete, "BACKUP_TIME_ZONE", "Mars/Base",
			"BACKUP_TIME_ZONE is \"Mars/Base\": set a name of the IANA"},
		"the zone of the machine": {verbDelete, "BACKUP_TIME_ZONE", "Local", "BACKUP_TIME_ZONE is \"Local\""},
		"whether to overwrite":    {verbRestore, "BACKUP_OVERWRITE", "yes", "BACKUP_OVERWRITE is \"yes\": set true or false"},
		"UID of a restore":        {verbRestore, "BACKUP_RESTORE_UID", "a 'b", "BACKUP_RESTORE_UID is \"a 'b\": set a UID"},
		"a relative result":       {verbDelete, "BACKUP_RESULT", "result", "BACKUP_RESULT is no absolute path"},
		"nowhere to restore":      {verbBackup, "BACKUP_VERIFY", "Restore", "BACKUP_SCRATCH is not set: set the directory"},
		"no scratch directory":    {verbScratch, "", "", "BACKUP_SCRATCH is not set: set the directory"},
		"a verb":                  {"dump", "", "", "verb \"dump\" is unknown: use one of backup, restore"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Settings(test.verb, environment(with(complete, test.variable, test.value)))
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || reasonOf(err) != ReasonInvalidSettings {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// For all settings, a tool gets a database only by its option, and the scratch server gets no credentials.
func TestEnvironmentOfTools(t *testing.T) {
	environ := environment(with(complete, "PGPASSWORD", "p", "PGDATABASE", "other", "PGSERVICE", "s", "PGPASSFILE", "/f",
		"PGHOSTADDR", "10.0.0.1", "PGSSLMODE", "require", "PATH", "/bin", "TOKEN", "t"))
	c, err := Settings(verbBackup, environ)
	if err != nil {
		t.Fatal(err)
	}
	got := targetServer(c).environ
	slices.Sort(got)
	want := []string{"LC_ALL=C", "PATH=/bin", "PGAPPNAME=pgbackup", "PGCLIENTENCODING=UTF8",
		"PGCONNECT_TIMEOUT=10", "PGHOST=db",
		"PGPASSWORD=p", "PGPORT=5432", "PGSSLMODE=require", "PGUSER=keeper"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("target (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"LC_ALL=C", "PATH=/bin"}, plainEnvironment(environ)); diff != "" {
		t.Errorf("others (-want +got):\n%s", diff)
	}
}
