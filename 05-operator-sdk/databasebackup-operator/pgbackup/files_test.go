//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// put creates a backup by hand: a dump of some bytes, globals and facts.
func put(t *testing.T, settings map[string]string, name string, started time.Time, edit func(*factsFile)) {
	t.Helper()
	settings = with(settings, "BACKUP_NAME", name)
	dir := filepath.Dir(pathOf(settings, ""))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	overwrite(t, pathOf(settings, suffixDump), []byte("dump of "+name))
	overwrite(t, pathOf(settings, suffixGlobals), []byte("globals"))
	facts := factsFile{Format: 1, Owner: settings["BACKUP_OWNER"],
		Dump: Dump{Name: name, Started: started, Verified: &Verified{ModeArchive, started}}}
	for suffix, into := range map[string]*checksum{suffixDump: {}, suffixGlobals: &facts.Globals} {
		have, err := sum(t.Context(), pathOf(settings, suffix))
		if *into = have; err != nil {
			t.Fatal(err)
		}
		if suffix == suffixDump {
			facts.Size, facts.SHA256 = have.Size, have.SHA256
		}
	}
	if edit != nil {
		edit(&facts)
	}
	text, err := json.Marshal(facts)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, pathOf(settings, suffixFacts), text)
	p, _ := workplace()
	for _, path := range []string{settings["BACKUP_DIR"], dir} {
		p.give(t, path)
	}
}

var noon = time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)

// Pruning continues when users have removed or added files. It leaves the added files and the files of other owners.
func TestPruneAmongFilesOfOthers(t *testing.T) {
	settings := with(target(t), "BACKUP_KEEP_LAST", "2", "BACKUP_NAME", "new-1", clock, noon.Format(time.RFC3339))
	other := with(settings, "BACKUP_OWNER", "uid-2")
	for i := range 4 {
		put(t, settings, fmt.Sprintf("orders-%d", i), noon.AddDate(0, 0, i-10), nil)
		put(t, other, fmt.Sprintf("orders-%d", i), noon.AddDate(0, 0, i-10), nil)
	}
	dir := filepath.Dir(pathOf(settings, ""))
	for _, gone := range []string{"orders-3.dump", "orders-1.json"} {
		if err := os.Remove(filepath.Join(dir, gone)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, settings, "failed-1", noon.AddDate(0, 0, -20), func(s *factsFile) {
		s.Failure = &Failure{Mode: ModeArchive, Reason: ReasonChecksumMismatch}
	})
	put(t, settings, "foreign-1", noon.AddDate(0, 0, -20), func(s *factsFile) { s.Owner = "uid-9" })
	overwrite(t, filepath.Join(dir, "orders-0.dump"), []byte("cut"))
	overwrite(t, filepath.Join(dir, "notes.txt"), nil)
	overwrite(t, filepath.Join(dir, "Backup by hand.dump"), nil)
	overwrite(t, filepath.Join(dir, "broken.json"), []byte("{"))
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link.dump")); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, other)
	o := must(t, verbBackup, settings, ReasonBackupSucceeded)
	if diff := cmp.Diff([]string{"failed-1", "orders-0", "orders-3"}, o.result.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	want := map[string]State{"orders-1": StateUnknown, "orders-2": StateGood, "new-1": StateGood,
		"foreign-1": StateUnknown}
	if diff := cmp.Diff(want, states(t, settings)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	left := strings.Join(filesOf(t, settings), " ")
	for _, name := range []string{
		"notes.txt", "Backup by hand.dump", "broken.json", "link.dump", "orders-1.dump", "foreign-1.dump"} {
		if !strings.Contains(left, name) {
			t.Errorf("%s was removed", name)
		}
	}
	if diff := cmp.Diff(before, filesOf(t, other)); diff != "" {
		t.Errorf("files of the other owner (-before +after):\n%s", diff)
	}
}

// Deleting is killed at every step: the next run finishes it, and the files of another owner are untouched.
func TestDeleteKilledAtEveryStep(t *testing.T) {
	settings := volume(t)
	other := with(settings, "BACKUP_OWNER", "uid-2")
	put(t, other, "orders-1", noon, nil)
	fresh := func() {
		put(t, settings, "orders-1", noon, nil)
		put(t, settings, "orders-2", noon, nil)
	}
	killAtEachStep(t, verbDelete, settings, ReasonDeleteSucceeded, fresh, func(_ int, _ []string,
		wrong func(string, ...any)) string {
		found := len(filesOf(t, settings))
		must(t, verbDelete, settings, ReasonDeleteSucceeded)
		if _, err := os.Stat(filepath.Dir(pathOf(settings, ""))); !os.IsNotExist(err) {
			wrong("the folder is there: %v", err)
		}
		if got := filesOf(t, other); len(got) != 3 {
			wrong("files of the other owner: %v", got)
		}
		return fmt.Sprintf("found %d files", found)
	})
}

// Temporary files are removed after a day, or by the next run of the same name; the files of other owners stay.
func TestTemporaryFilesOfKilledRuns(t *testing.T) {
	settings := with(target(t), "BACKUP_NAME", "orders-3")
	put(t, settings, "orders-1", noon, nil)
	other := with(settings, "BACKUP_OWNER", "uid-2")
	put(t, other, "orders-1", noon, nil)
	dir, theirs := filepath.Dir(pathOf(settings, "")), filepath.Dir(pathOf(other, ""))
	old := time.Now().Add(-25 * time.Hour)
	for _, path := range []string{dir + "/orders-0.dump.0123abcd.tmp", dir + "/orders-0.json.0123abcd.tmp",
		theirs + "/orders-0.dump.0123abcd.tmp", dir + "/mine.tmp"} {
		overwrite(t, path, []byte("half"))
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	overwrite(t, dir+"/orders-2.dump.0123abcd.tmp", []byte("half"))
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	want := []string{"mine.tmp", "orders-1.dump", "orders-1.globals.sql", "orders-1.json", "orders-2.dump.0123abcd.tmp",
		"orders-3.dump", "orders-3.globals.sql", "orders-3.json"}
	if diff := cmp.Diff(want, filesOf(t, settings)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := filesOf(t, other); len(got) != 4 {
		t.Errorf("files of the other owner: %v", got)
	}
}

// TestDeleteKilledAtEveryStep has the files of another owner, and a folder without other files.
func TestDeleteLeavesOtherFiles(t *testing.T) {
	settings := volume(t)
	must(t, verbDelete, settings, ReasonDeleteSucceeded) // no file exists yet
	put(t, settings, "orders-1", noon, nil)
	put(t, settings, "orders-2", noon, nil)
	dir := filepath.Dir(pathOf(settings, ""))
	overwrite(t, dir+"/orders-3.dump.0123abcd.tmp", nil)
	overwrite(t, dir+"/notes.txt", nil)
	o := must(t, verbDelete, settings, ReasonDeleteSucceeded)
	if diff := cmp.Diff([]string{"orders-1", "orders-2"}, o.result.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"notes.txt"}, filesOf(t, settings)); diff != "" ||
		!strings.Contains(o.result.Message, "1 other") {
		t.Errorf("%s: files (-want +got):\n%s", o.result.Message, diff)
	}
}

func TestLinkOutOfTheVolumeIsRefused(t *testing.T) {
	settings := volume(t)
	outside := folder(t)
	if err := os.Symlink(outside, settings["BACKUP_DIR"]); err != nil {
		t.Fatal(err)
	}
	o := must(t, verbDelete, settings, ReasonDeleteSucceeded) // the folder of the owner does not exist
	if err := os.Mkdir(filepath.Join(outside, settings["BACKUP_OWNER"]), 0o777); err != nil {
		t.Fatal(err)
	}
	if o = must(t, verbDelete, settings, ReasonInvalidSettings); o.code != exitFinal {
		t.Errorf("code %d", o.code)
	}
}

// A run that fails lists the backups on the volume too, so that no list names a backup whose files are gone.
func TestAFailedRunListsTheBackups(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "PGPASSWORD", "wrong-password")
	put(t, settings, "orders-1", noon, nil)
	put(t, settings, "orders-2", noon.AddDate(0, 0, 1), nil)
	dir := filepath.Dir(pathOf(settings, ""))
	check := func(after string, reason Reason, want ...Entry) {
		t.Helper()
		o := must(t, verbBackup, settings, reason)
		if o.result.Backups == nil {
			t.Fatalf("%s: no list", after)
		}
		if diff := cmp.Diff(want, o.result.Backups, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", after, diff)
		}
	}
	check("as they were", ReasonAuthenticationFailed, Entry{Name: "orders-2", State: StateGood},
		Entry{Name: "orders-1", State: StateGood})
	overwrite(t, dir+"/orders-2.dump", []byte("cut"))
	for _, path := range []string{dir, dir + "/.lock"} {
		if err := os.Chmod(path, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	check("read-only", ReasonVolumeNotWritable, Entry{Name: "orders-2", State: StateBroken},
		Entry{Name: "orders-1", State: StateGood})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	check("removed", ReasonAuthenticationFailed)
}

func TestUnknownBackup(t *testing.T) {
	settings := volume(t)
	o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", "d", "PGHOST", "h", "PGUSER", "u"), ReasonBackupNotFound)
	if o.code != 3 { // not 2, the exit code of a panic
		t.Errorf("code %d", o.code)
	}
}
