//go:build linux

package pgbackup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A dump that was damaged is caught by each mode that can: Archive sees every change of the bytes, Restore
// also those that the facts were adapted to.
func TestDamagedDumpsAreCaught(t *testing.T) {
	t.Parallel()
	settings := target(t)
	must(t, verbBackup, with(settings, "BACKUP_VERIFY", "None"), ReasonBackupSucceeded)
	dump, err := os.ReadFile(pathOf(settings, suffixDump))
	if err != nil {
		t.Fatal(err)
	}
	facts, _ := os.ReadFile(pathOf(settings, suffixSidecar))
	changed := append([]byte{}, dump...)
	changed[len(changed)-40] ^= 0xff
	headless := append([]byte("XXXXX"), dump[5:]...)
	for name, test := range map[string]struct {
		dump    []byte
		forge   func(*sidecar) // what else is recorded; sizes and sums of the dump are adapted, too
		archive Reason
		restore Reason
	}{
		"cut":                           {dump[:len(dump)/2], nil, ReasonChecksumMismatch, ReasonChecksumMismatch},
		"changed":                       {changed, nil, ReasonChecksumMismatch, ReasonChecksumMismatch},
		"emptied":                       {nil, nil, ReasonChecksumMismatch, ReasonChecksumMismatch},
		"emptied, and recorded as such": {nil, func(*sidecar) {}, ReasonArchiveUnreadable, ReasonArchiveUnreadable},
		"no dump, and recorded as such": {headless, func(*sidecar) {}, ReasonArchiveUnreadable, ReasonArchiveUnreadable},
		"cut, and recorded as such":     {dump[:len(dump)-200], func(*sidecar) {}, ReasonVerificationSucceeded, ReasonRestoreFailed},
		"rows less than recorded":       {dump, func(s *sidecar) { s.Tables["public.t"]++ }, ReasonVerificationSucceeded, ReasonRowsDiffer},
		"a table less than recorded":    {dump, func(s *sidecar) { s.Tables["public.u"] = 0 }, ReasonArchiveIncomplete, ReasonArchiveIncomplete},
		"as it was":                     {dump, nil, ReasonVerificationSucceeded, ReasonVerificationSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			overwrite(t, pathOf(settings, suffixDump), test.dump)
			for mode, want := range map[Mode]Reason{ModeArchive: test.archive, ModeRestore: test.restore} {
				overwrite(t, pathOf(settings, suffixSidecar), facts)
				if test.forge != nil {
					editSidecar(t, settings, func(s *sidecar) {
						test.forge(s)
						have, err := sum(context.Background(), pathOf(settings, suffixDump))
						s.Size, s.SHA256 = have.Size, have.SHA256
						if err != nil {
							t.Fatal(err)
						}
					})
				}
				o := must(t, verbVerify, with(settings, "BACKUP_VERIFY", string(mode)), want)
				s := &store{dir: filepath.Dir(pathOf(settings, "")), owner: settings["BACKUP_OWNER"]}
				state, recorded := s.backup(settings["BACKUP_NAME"]).State, o.result.Backup
				if want == ReasonVerificationSucceeded {
					if state != StateGood || recorded.Verified == nil || recorded.Verified.Mode != mode {
						t.Errorf("%s: state %s, facts %+v", mode, state, recorded)
					}
				} else if state != StateBroken || recorded.Verified != nil || recorded.Failure.Reason != want {
					t.Errorf("%s: state %s, facts %+v", mode, state, recorded)
				}
			}
		})
	}
	noScratchLeft(t, settings)
}

func noScratchLeft(t *testing.T, settings map[string]string) {
	t.Helper()
	if left, _ := filepath.Glob(settings["TMPDIR"] + "/" + scratchPrefix + "*"); len(left) > 0 {
		t.Errorf("scratch servers were left: %v", left)
	}
}

func TestQueryOfTheRestoredDatabase(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_VERIFY", "Restore")
	must(t, verbBackup, with(settings, "BACKUP_VERIFY", "None"), ReasonBackupSucceeded)
	facts, _ := os.ReadFile(pathOf(settings, suffixSidecar))
	for name, test := range map[string]struct {
		query string
		want  Reason
	}{
		"false":                            {"SELECT count(*) > 100 FROM t", ReasonQueryFailed},
		"a program, as superusers may run": {"COPY t TO PROGRAM 'cat'", ReasonQueryInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			overwrite(t, pathOf(settings, suffixSidecar), facts)
			// What is true passes in TestDumpVerifyPruneRestoreOfOddNames.
			o := must(t, verbVerify, with(settings, "BACKUP_QUERY", test.query), test.want)
			faultOfDump := test.want == ReasonQueryFailed
			if recorded := o.result.Backup; (recorded.Failure != nil) != faultOfDump || (recorded.Verified != nil) == faultOfDump {
				t.Errorf("recorded: verified %+v, failure %+v", recorded.Verified, recorded.Failure)
			}
		})
	}
	noScratchLeft(t, settings)
}

func TestScratchServerThatCannotBeMadeIsNotHeldAgainstTheDump(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_VERIFY", "Restore")
	long := filepath.Join(settings["TMPDIR"], strings.Repeat("x", 100))
	if err := os.Mkdir(long, 0o777); err != nil {
		t.Fatal(err)
	}
	p, _ := workplace()
	p.give(t, long)
	o := must(t, verbBackup, with(settings, "BACKUP_SCRATCH", long), ReasonScratchFailed)
	if v := o.result.Backup.Verified; v == nil || v.Mode != ModeArchive || o.result.Backup.Failure != nil {
		t.Errorf("facts: %+v", o.result.Backup)
	}
	before, _ := os.Stat(pathOf(settings, suffixDump))
	o = must(t, verbBackup, settings, ReasonAlreadyComplete)
	after, _ := os.Stat(pathOf(settings, suffixDump))
	if !os.SameFile(before, after) || o.result.Backup.Verified.Mode != ModeRestore {
		t.Errorf("it was dumped again, or not verified: %+v", o.result.Backup)
	}
}

func TestPassKeepsWhatIsStronger(t *testing.T) {
	day := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	restored := &Verified{Mode: ModeRestore, Time: day}
	for name, test := range map[string]struct {
		have, want sidecar
		mode       Mode
	}{
		"the first":                           {sidecar{}, sidecar{Verified: &Verified{ModeArchive, day}}, ModeArchive},
		"a weaker one":                        {sidecar{Verified: restored}, sidecar{Verified: restored}, ModeArchive},
		"a stronger one":                      {sidecar{Verified: &Verified{ModeArchive, day}}, sidecar{Verified: restored}, ModeRestore},
		"after a failure that is as strong":   {sidecar{Failure: &Failure{Mode: ModeArchive}}, sidecar{Verified: &Verified{ModeArchive, day}}, ModeArchive},
		"after a failure that it cannot find": {sidecar{Failure: &Failure{Mode: ModeRestore}}, sidecar{Failure: &Failure{Mode: ModeRestore}}, ModeArchive},
	} {
		t.Run(name, func(t *testing.T) {
			test.have.pass(test.mode, day)
			if diff := cmp.Diff(test.want, test.have); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRoleStatementsHoldNoCommandsOfPsql(t *testing.T) {
	globals := "\\restrict x\nSET client_encoding = 'UTF8';\nCREATE ROLE a;\nCREATE ROLE \"b\\c;\";\nALTER ROLE a WITH LOGIN;\n" +
		"CREATE ROLE d; \\! touch x\n-- Roles of \"e\n\\! touch y\nCREATE ROLE \"f\n\\! touch z\";\nCREATE ROLE g \\! touch;\n" +
		"GRANT a TO \"it's\";\nCREATE TABLESPACE t LOCATION '/x';\n"
	want := "CREATE ROLE a;\nCREATE ROLE \"b\\c;\";\nALTER ROLE a WITH LOGIN;\nGRANT a TO \"it's\";\n"
	if diff := cmp.Diff(want, roleStatements(globals)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJudge(t *testing.T) {
	for answer, passes := range map[string]bool{
		"t\n": true, "1\n": true, "any\tf\n": true, "7\nf\n": true,
		"": false, "f\n": false, "0\n": false, "\n": false, "\tt\n": false, "false\n": false,
	} {
		if err := judge(answer); (err == nil) != passes {
			t.Errorf("%q: %v", answer, err)
		}
	}
}

func TestDifference(t *testing.T) {
	dumped := &sidecar{Tables: map[string]int64{"a": 1, "b": 2}, LargeObjects: 3}
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
		if got := difference(dumped, test.tables, test.large); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestScratchSignsSpeakOfTheImageNotOfTheDump(t *testing.T) {
	for line, want := range map[string]Reason{
		`pg_restore: error: could not execute query: ERROR:  extension "postgis" is not available`:        ReasonScratchFailed,
		`pg_restore: error: COPY failed: ERROR:  could not extend file "x": No space left on device`:      ReasonScratchFailed,
		`pg_restore: error: could not execute query: ERROR:  role "x" does not exist`:                     ReasonRestoreFailed,
		`pg_restore: error: COPY failed for table "t": ERROR:  duplicate key value violates unique index`: ReasonRestoreFailed,
	} {
		err := classify(&toolError{name: "pg_restore", lines: []string{line}, err: errors.New("exit status 1")}, "restore", ReasonRestoreFailed, scratchSigns)
		if got := reasonOf(err); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// Who owns a table chooses what runs when it is restored, and in the scratch server it runs as the superuser. It does
// not find the credentials there.
func TestCodeInADumpDoesNotFindThePassword(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_DATABASE", "curious", "BACKUP_VERIFY", "Restore")
	database(t, "curious")
	loot := folder(t)
	sql(t, "curious", `CREATE ROLE spy; GRANT CREATE ON SCHEMA public TO spy; SET ROLE spy;
CREATE FUNCTION public.look() RETURNS boolean LANGUAGE plpgsql AS $f$ BEGIN
  IF current_user = '`+scratchUser+`' THEN
    COPY (SELECT 1) TO PROGRAM 'cd `+loot+` && read a b c p d < /proc/$PPID/stat && read a b c q d < /proc/$p/stat && cat /proc/$q/comm > ran; cat /proc/$p/environ /proc/$q/environ > found; true';
  END IF;
  RETURN true;
END $f$;
CREATE TABLE public.bait (a int CHECK (public.look()));
INSERT INTO public.bait VALUES (1);`)
	t.Cleanup(func() { sql(t, "postgres", "DROP DATABASE curious WITH (FORCE); DROP ROLE spy;") })
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	if ran, err := os.ReadFile(filepath.Join(loot, "ran")); err != nil || strings.TrimSpace(string(ran)) != "program" {
		t.Fatalf("the code did not run, or looked at another process: %s, %v", ran, err)
	}
	if found, err := os.ReadFile(filepath.Join(loot, "found")); err != nil || strings.Contains(string(found), password) {
		t.Errorf("found the password (%v)", err)
	}
}
