//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each mode detects the damage that it can detect: Archive detects every change of the bytes, Restore also a change to
// which the facts were adapted. A dump of another size than was recorded is dumped again: a restore of it is refused in
// TestRestoreOverwritesOnlyOnRequestAndOnlyWithWhatIsWhole.
func TestDamagedDumpsAreCaught(t *testing.T) {
	t.Parallel()
	settings := restoring(t, target(t))
	must(t, verbBackup, with(settings, "BACKUP_VERIFY", "Archive"), ReasonBackupSucceeded)
	editFacts(t, settings, func(s *factsFile) { s.Verified = nil })
	dump, err := os.ReadFile(pathOf(settings, suffixDump))
	if err != nil {
		t.Fatal(err)
	}
	facts, _ := os.ReadFile(pathOf(settings, suffixFacts))
	changed := append([]byte{}, dump...)
	changed[len(changed)-40] ^= 0xff
	headless := append([]byte("XXXXX"), dump[5:]...)
	for name, test := range map[string]struct {
		dump    []byte
		forge   func(*factsFile) // other changes of the facts; size and checksum are adapted too
		archive Reason
		restore Reason
	}{
		"changed":                       {changed, nil, ReasonChecksumMismatch, ReasonChecksumMismatch},
		"emptied, and recorded as such": {nil, func(*factsFile) {}, ReasonArchiveUnreadable, ReasonArchiveUnreadable},
		"no dump, and recorded as such": {headless, func(*factsFile) {}, ReasonArchiveUnreadable, ReasonArchiveUnreadable},
		"cut, and recorded as such": {
			dump[:len(dump)-200], func(*factsFile) {}, ReasonAlreadyComplete, ReasonArchiveUnreadable},
		"rows less than recorded": {
			dump, func(s *factsFile) { s.Tables["public.t"]++ }, ReasonAlreadyComplete, ReasonRowsDiffer},
		"a table less than recorded": {
			dump, func(s *factsFile) { s.Tables["public.u"] = 0 }, ReasonArchiveIncomplete, ReasonArchiveIncomplete},
		"as it was": {dump, nil, ReasonAlreadyComplete, ReasonAlreadyComplete},
	} {
		t.Run(name, func(t *testing.T) {
			overwrite(t, pathOf(settings, suffixDump), test.dump)
			for mode, want := range map[Mode]Reason{ModeArchive: test.archive, ModeRestore: test.restore} {
				overwrite(t, pathOf(settings, suffixFacts), facts)
				if test.forge != nil {
					editFacts(t, settings, func(s *factsFile) {
						test.forge(s)
						have, err := sum(context.Background(), pathOf(settings, suffixDump))
						s.Size, s.SHA256 = have.Size, have.SHA256
						if err != nil {
							t.Fatal(err)
						}
					})
				}
				o := must(t, verbBackup, with(settings, "BACKUP_VERIFY", string(mode)), want)
				state, recorded := storeOf(settings).backup(settings["BACKUP_NAME"]).State, o.result.Backup
				if want == ReasonAlreadyComplete {
					if state != StateGood || recorded.Verified == nil || recorded.Verified.Mode != mode {
						t.Errorf("%s: state %s, facts %+v", mode, state, recorded)
					}
					continue
				}
				broken := want != ReasonRowsDiffer // a report of the scratch server is not evidence
				if (state == StateBroken) != broken || (state == StateUnverifiable) == broken || recorded.State != state ||
					(recorded.Verified == nil) != broken || recorded.Failure.Reason != want {
					t.Errorf("%s: state %s, facts %+v", mode, state, recorded)
				}
			}
		})
	}
	noScratchLeft(t, settings)
}

// A restore that finds a damaged backup cannot record that. The next run does, and removes it instead of an older good
// backup.
func TestABackupThatARestoreFoundDamagedIsCheckedAgain(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_KEEP_LAST", "2")
	older, damaged := with(settings, "BACKUP_NAME", "orders-1"), with(settings, "BACKUP_NAME", "orders-2")
	must(t, verbBackup, older, ReasonBackupSucceeded)
	must(t, verbBackup, damaged, ReasonBackupSucceeded)
	dump, err := os.ReadFile(pathOf(damaged, suffixDump))
	if err != nil {
		t.Fatal(err)
	}
	dump[len(dump)-40] ^= 0xff
	overwrite(t, pathOf(damaged, suffixDump), dump)
	must(t, verbRestore, with(damaged, "BACKUP_DATABASE", "other"), ReasonChecksumMismatch)

	o := must(t, verbBackup, with(settings, "BACKUP_NAME", "orders-3", "BACKUP_CHECK_AGAIN", "orders-1,orders-2,gone"),
		ReasonBackupSucceeded)
	want := []Entry{{Name: "orders-3", State: StateGood}, {Name: "orders-1", State: StateGood}}
	if diff := cmp.Diff(want, o.result.Backups); diff != "" {
		t.Errorf("(-want +have):\n%s", diff)
	}
	if o.result.Warning != "" {
		t.Error(o.result.Warning)
	}
}

func noScratchLeft(t *testing.T, settings map[string]string) {
	t.Helper()
	await(t, "the removal of the scratch servers", func() bool {
		left, _ := filepath.Glob(settings["BACKUP_SCRATCH"] + "/" + scratchPrefix + "*")
		return len(left) == 0
	})
}

func TestQueryOfTheRestoredDatabase(t *testing.T) {
	t.Parallel()
	settings := restoring(t, target(t))
	must(t, verbBackup, with(settings, "BACKUP_VERIFY", "None"), ReasonBackupSucceeded)
	facts, _ := os.ReadFile(pathOf(settings, suffixFacts))
	for name, test := range map[string]struct {
		query string
		want  Reason
	}{
		"false":                            {"SELECT count(*) > 100 FROM t", ReasonQueryFailed},
		"a program, as superusers may run": {"COPY t TO PROGRAM 'cat'", ReasonQueryInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			overwrite(t, pathOf(settings, suffixFacts), facts)
			// A true query passes in TestDumpVerifyPruneRestoreOfOddNames.
			o := must(t, verbBackup, with(settings, "BACKUP_QUERY", test.query), test.want)
			if recorded := o.result.Backup; recorded.State != StateUnverifiable || recorded.Failure.Reason != test.want ||
				recorded.Verified.Mode != ModeArchive {
				t.Errorf("recorded: verified %+v, failure %+v", recorded.Verified, recorded.Failure)
			}
		})
	}
	noScratchLeft(t, settings)
}

// A connection that is lost while the restored rows are counted proves nothing: neither does the backup count as
// verified by a restore, nor does the restored database replace another one.
func TestRowsThatWereNotComparedAreNoProof(t *testing.T) {
	t.Parallel()
	settings := target(t)
	lossy := toolsWith(t, map[string]string{
		"psql": fmt.Sprintf(`sed -u '/^SAVEPOINT counting/Q' | %s/psql "$@"`, toolsDir)})
	o := must(t, verbBackup, with(restoring(t, with(settings, "PATH", lossy)), "PATH", os.Getenv("PATH")),
		ReasonScratchFailed)
	if b := o.result.Backup; b.Verified.Mode != ModeArchive || b.State != StateUnverifiable ||
		!strings.Contains(o.result.Message, "count the restored rows") {
		t.Errorf("%s, facts: %+v", o.result.Message, b)
	}
	database(t, "uncounted", "CREATE TABLE old (a int);")
	into := with(settings, "BACKUP_DATABASE", "uncounted", "BACKUP_OVERWRITE", "true", "PATH", lossy)
	must(t, verbRestore, into, ReasonConnectionLost)
	if got := databaseState(t, "uncounted"); got != "old" {
		t.Errorf("after the restore: %s", got)
	}
}

func TestScratchServerThatCannotBeMadeIsNotHeldAgainstTheDump(t *testing.T) {
	t.Parallel()
	settings := target(t)
	broken := toolsWith(t, map[string]string{"initdb": "echo 'initdb: error: no room' >&2\nexit 1"})
	without := with(settings, "BACKUP_VERIFY", "Restore", "BACKUP_SCRATCH", "/nowhere", "BACKUP_WAIT_SECONDS", "0")
	for says, settings := range map[string]map[string]string{
		"no answer from the scratch container": without,
		"initdb: error: no room": with(restoring(t, with(settings, "PATH", broken)), "PATH",
			os.Getenv("PATH")),
	} {
		o := must(t, verbBackup, settings, ReasonScratchFailed)
		if v := o.result.Backup.Verified; v == nil || v.Mode != ModeArchive || o.result.Backup.State != StateUnverifiable ||
			!strings.Contains(o.result.Message, says) {
			t.Errorf("%s, facts: %+v", o.result.Message, o.result.Backup)
		}
	}
	before, _ := os.Stat(pathOf(settings, suffixDump))
	o := must(t, verbBackup, restoring(t, settings), ReasonAlreadyComplete)
	after, _ := os.Stat(pathOf(settings, suffixDump))
	if !os.SameFile(before, after) || o.result.Backup.Verified.Mode != ModeRestore {
		t.Errorf("it was dumped again, or not verified: %+v", o.result.Backup)
	}
}

// The code in a dump may respond in the place of the scratch process. It can only cause results that a verdict about
// this dump may have.
func TestAForgedVerdictSpeaksAboutItsDumpAlone(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_VERIFY", "Restore", "BACKUP_SCRATCH", folder(t))
	listener, err := net.Listen("unix", socketOf(settings["BACKUP_SCRATCH"]))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := workplace()
	p.give(t, socketOf(settings["BACKUP_SCRATCH"]))
	var forged atomic.Value
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte(forged.Load().(string)))
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for answer, want := range map[string]Reason{
		`{"reason":"BackupNotFound","message":"m"}`: ReasonScratchFailed,
		`{"reason":"` + strings.Repeat("x", 1<<20):  ReasonScratchFailed,
		`not JSON`: ReasonScratchFailed,
		`{"reason":"RowsDiffer","message":"` + password + `"}`: ReasonRowsDiffer, // the password is not shown
	} {
		forged.Store(answer)
		must(t, verbBackup, settings, want)
	}
}

// A pg_restore that is older than the dump cannot read the dump. This is not evidence against the dump.
func TestAnOldToolIsNoEvidence(t *testing.T) {
	t.Parallel()
	settings := target(t)
	old := toolsWith(t, map[string]string{"pg_restore": "" +
		"[ $1 = --version ] && exec echo 'pg_restore (PostgreSQL) 9.6.24'\n" +
		"echo 'pg_restore: error: unsupported version (1.15) in file header' >&2\nexit 1"})
	o := must(t, verbBackup, with(settings, "PATH", old), ReasonVersionMismatch)
	if o.result.Backup.State != StateUnverifiable {
		t.Errorf("%+v", o.result.Backup)
	}
	must(t, verbBackup, settings, ReasonAlreadyComplete)
	must(t, verbRestore, with(settings, "PATH", old), ReasonVersionMismatch)
	if got := states(t, settings)[settings["BACKUP_NAME"]]; got != StateGood {
		t.Errorf("it was verified before, and is %s", got)
	}
}

func TestJudge(t *testing.T) {
	for answer, passes := range map[string]bool{
		"t\n": true, "1\n": true, "any\tf\n": true, "7\nf\n": true,
		"": false, "f\n": false, "0\n": false, "\n": false, "\tt\n": false, "false\n": false,
	} {
		if err := checkAnswer(answer); (err == nil) != passes {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestDifference(t *testing.T) {
	dumped := &factsFile{Tables: map[string]int64{"a": 1, "b": 2}, LargeObjects: 3}
	for want, test := range map[string]struct {
		tables map[string]int64
		large  int64
	}{
		"":                                     {map[string]int64{"a": 1, "b": 2}, 3},
		"table b is missing":                   {map[string]int64{"a": 1}, 3},
		"table a has 0 rows, and 1 were":       {map[string]int64{"a": 0, "b": 2}, 3},
		"table c was not dumped":               {map[string]int64{"a": 1, "b": 2, "c": 0}, 3},
		"2 large objects are there, and 3 wer": {map[string]int64{"a": 1, "b": 2}, 2},
	} {
		if got := difference(dumped, counts{rows: test.tables}, test.large); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The owner of a table chooses the code that runs when the table is restored. In the scratch server this code runs as
// the superuser. Neither the server nor the process that started it has the credentials.
func TestCodeInADumpDoesNotFindThePassword(t *testing.T) {
	t.Parallel()
	settings := with(restoring(t, target(t)), "BACKUP_DATABASE", "curious")
	database(t, "curious")
	loot := folder(t)
	sql(t, "curious", `CREATE ROLE spy; GRANT CREATE ON SCHEMA public TO spy; SET ROLE spy;
CREATE FUNCTION public.look() RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN
  IF current_user = '`+scratchUser+`' THEN
    COPY (SELECT 1) TO PROGRAM 'cat > /dev/null; cd `+loot+` && read a b c p d < /proc/$PPID/stat && read a b c q d < /proc/$p/stat &&
      cat /proc/$q/cmdline > ran; cat /proc/$p/environ /proc/$q/environ > found; true';
  END IF;
  RETURN true;
END $f$;
CREATE TABLE public.bait (a int CHECK (public.look()));
INSERT INTO public.bait VALUES (1);`)
	t.Cleanup(func() { sql(t, "postgres", "DROP DATABASE curious WITH (FORCE); DROP ROLE spy;") })
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	if ran, err := os.ReadFile(filepath.Join(loot, "ran")); err != nil ||
		!strings.HasSuffix(string(ran), "program\x00scratch\x00") {
		t.Fatalf("the code did not run, or looked at another process: %q, %v", ran, err)
	}
	if found, err := os.ReadFile(filepath.Join(loot, "found")); err != nil || len(found) == 0 ||
		strings.Contains(string(found), password) {
		t.Errorf("found the password (%v)", err)
	}
}
