//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSettingsThatAreRefused(t *testing.T) {
	file := write(t, filepath.Join(folder(t), "file"), "x")
	complete := map[string]string{"RESTIC_REPOSITORY": "/volume/orders", "RESTIC_PASSWORD_FILE": file, "BACKUP_OWNER": "1b2c-3d",
		"BACKUP_NAME": "orders-29012345", "BACKUP_DATABASE": "orders", "PGHOST": "db", "PGUSER": "keeper",
		"BACKUP_WAIT_SECONDS": "86400", "BACKUP_KEEP_DAILY": "10000", "BACKUP_MAX_AGE_DAYS": "36500"} // the greatest of the API
	for verb := range verbs {
		c, err := Settings(verb, environment(complete))
		if err != nil || c.Verify != ModeArchive || c.Policy != (Policy{Last: 7, Daily: 10000, MaxAgeDays: 36500}) || c.WaitSeconds != 86400 {
			t.Errorf("%s: %+v %v", verb, c, err)
		}
	}
	for name, test := range map[string]struct {
		verb, variable, value string
		want                  Reason
	}{
		"an unknown verb":                 {"prune", "", "", ReasonInvalidSettings},
		"no repository":                   {verbDelete, "RESTIC_REPOSITORY", "", ReasonInvalidSettings},
		"a store that is not known":       {verbDelete, "RESTIC_REPOSITORY", "sftp:x", ReasonInvalidSettings},
		"a password file that is missing": {verbFinish, "RESTIC_PASSWORD_FILE", "/nowhere/password", ReasonSecretNotFound},
		"a CA that is missing":            {verbBackup, "RESTIC_CACERT", "/nowhere/ca.crt", ReasonSecretNotFound},
		"a server's CA that is missing":   {verbRestore, "PGSSLROOTCERT", "/nowhere/ca.crt", ReasonSecretNotFound},
		"no owner":                        {verbDelete, "BACKUP_OWNER", "", ReasonInvalidSettings},
		"a mode that is not known":        {verbFinish, "BACKUP_VERIFY", "Full", ReasonInvalidSettings},
		"a negative number":               {verbFinish, "BACKUP_KEEP_LAST", "-1", ReasonInvalidSettings},
		"a zone that is not known":        {verbFinish, "BACKUP_TIME_ZONE", "Mars/One", ReasonInvalidSettings},
		"a list of hosts":                 {verbBackup, "PGHOST", "a,b", ReasonInvalidSettings},
		"a port that is no number":        {verbRestore, "PGPORT", "x", ReasonInvalidSettings},
	} {
		_, err := Settings(test.verb, environment(with(complete, test.variable, test.value)))
		if faultOf(err).reason != test.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestResultKeepsWithinTheLimit(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	r := Result{Verb: verbFinish, Reason: ReasonFinished, Message: long, Warning: long,
		Backup: &Backup{Name: strings.Repeat("n", 200), Database: strings.Repeat("\x01", 63)}, Restored: &Restored{}}
	for i := range 500 {
		r.Backups = append(r.Backups, Entry{Name: fmt.Sprintf("orders-%d", i)})
		r.Restored.LeftOut = append(r.Restored.LeftOut, fmt.Sprintf("event trigger e%d", i))
	}
	text, err := r.encode()
	var back Result
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || len(text) > ResultLimit {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	if back.Reason != r.Reason || back.Backup == nil || len(back.Restored.LeftOut) != 10 ||
		!strings.HasSuffix(back.Message, "ü…") || strings.Contains(back.Message, "\ufffd") {
		t.Errorf("%+v", back)
	}
}

// Retention removes the snapshots that restic forgets or that are too old, but never the newest verified backup, the backup of this
// run, or anything because one run had a wrong clock.
func TestRetentionChooses(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC).AddDate(0, 0, n) }
	verified := func(n int, mode Mode) backup {
		return backup{snapshot{ID: fmt.Sprint(n), Time: day(n), Tags: []string{tagName + fmt.Sprint(n)}}, mode, nil}
	}
	make := func(n int) backup { return verified(n, "") }
	for name, test := range map[string]struct {
		all       []backup
		forgotten []string
		age       uint16
		want      []string
	}{
		"what restic forgets":              {[]backup{make(3), make(2), make(1)}, []string{"1", "2"}, 0, []string{"2", "1"}},
		"not the newest that is verified":  {[]backup{make(3), verified(2, ModeArchive), make(1)}, []string{"1", "2"}, 0, []string{"1"}},
		"not this run":                     {[]backup{make(3)}, []string{"3"}, 0, nil},
		"what is too old":                  {[]backup{make(30), make(29), make(28), make(1)}, nil, 7, []string{"1"}},
		"not on the word of one clock":     {[]backup{make(9000), make(3), make(2), make(1)}, nil, 7, nil},
		"the newest verified is never old": {[]backup{make(90), make(89), verified(1, ModeRestore)}, nil, 7, nil},
	} {
		var names []string
		for _, b := range choose(test.all, test.forgotten, Policy{MaxAgeDays: test.age}, test.all[0].name()) {
			names = append(names, b.name())
		}
		if diff := cmp.Diff(test.want, names); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestContentsAreSplit(t *testing.T) {
	text := `;
; Archive created at 2026-03-29
;     TOC Entries: 20
3; 3079 16385 EXTENSION - postgres_fdw 
4126; 0 0 COMMENT - EXTENSION postgres_fdw 
5; 2615 16389 SCHEMA - shop boss
4127; 0 0 ACL - SCHEMA shop boss
2007; 1417 16396 SERVER - far boss
2008; 0 0 USER MAPPING - USER MAPPING boss SERVER far boss
214; 1259 16397 FOREIGN TABLE public ft boss
215; 1259 16400 MATERIALIZED VIEW public mv boss
4123; 1262 16384 DATABASE - orders boss
4124; 0 0 DATABASE PROPERTIES - orders boss
4125; 0 0 COMMENT - DATABASE orders boss
4128; 0 0 COMMENT public TABLE t boss
4129; 0 0 ACL public TABLE t boss
2009; 826 16500 DEFAULT ACL public DEFAULT PRIVILEGES FOR TABLES boss
3001; 3256 16500 POLICY public t mine boss
4131; 0 0 COMMENT public POLICY mine ON t boss
3002; 0 16397 TABLE DATA public t boss
3000; 0 16400 MATERIALIZED VIEW DATA public mv boss
3461; 3466 16398 EVENT TRIGGER - stop it boss
4130; 0 0 COMMENT - EVENT TRIGGER stop it boss
3462; 6100 16399 SUBSCRIPTION - news boss
3463; 6104 16401 PUBLICATION - all boss
`
	kept, restored := split(parseContents(text))
	if diff := cmp.Diff([]string{"user mapping user mapping boss server far", "policy public t mine", "materialized view data public mv",
		"event trigger stop it", "subscription news", "publication all"}, restored.LeftOut); diff != "" {
		t.Error(diff)
	}
	for _, e := range kept {
		if slices.Contains([]string{"3000;", "3461;", "4130;", "4131;", "3462;"}, strings.Fields(e.line)[0]) {
			t.Errorf("kept: %s", e.line)
		}
	}
	if len(kept) != 14 || restored.Tables != 1 {
		t.Errorf("%d entries are kept, and %d tables", len(kept), restored.Tables)
	}
}
