package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResultKeepsWithinTheLimit(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	r := Result{Verb: verbBackup, Reason: ReasonRowsDiffer, Message: long, Warning: long,
		Backup: &Facts{Dump: Dump{Name: strings.Repeat("n", 200), Path: "/" + strings.Repeat("p", 700),
			Database: strings.Repeat("\x01", 63), Failure: &Failure{Message: long[:600]}},
			NotCounted: []string{long[:400], long[:400], long[:400]}}}
	for i := range 500 {
		r.Backups = append(r.Backups, Entry{Name: fmt.Sprintf("orders-%d", i), State: StateGood})
		r.Removed = append(r.Removed, fmt.Sprintf("old-%d", i))
	}
	text, err := r.encode()
	if err != nil || len(text) > ResultLimit {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	var back Result
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Reason != r.Reason || back.Backup == nil || back.Omitted+len(back.Backups)+len(back.Removed) != 1000 ||
		!strings.HasSuffix(back.Message, "ü…") || strings.Contains(back.Message, "\ufffd") {
		t.Errorf("%+v", back)
	}
	if len(back.Backups) > 0 && back.Backups[0].Name != "orders-0" {
		t.Errorf("the newest was left out: %v", back.Backups)
	}
}

func TestDefaultResultIsNotMade(t *testing.T) {
	if _, err := os.Stat(defaultResult); err == nil {
		t.Skip(defaultResult + " is there")
	}
	if err := writeResult(defaultResult, []byte("x")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(defaultResult); err == nil {
		t.Error("it was made")
	}
}

func TestVolumeFaults(t *testing.T) {
	for cause, want := range map[error]Reason{
		syscall.ENOSPC: ReasonVolumeFull, syscall.EDQUOT: ReasonVolumeFull, syscall.EFBIG: ReasonVolumeFull,
		syscall.EACCES: ReasonVolumeNotWritable, syscall.EPERM: ReasonVolumeNotWritable,
		syscall.EROFS: ReasonVolumeNotWritable,
		syscall.EIO:   ReasonVolumeFailed,
	} {
		err := volumeFault("write", &os.PathError{Op: "write", Path: "/x", Err: cause})
		if reasonOf(err) != want || !errors.Is(err, cause) {
			t.Errorf("%v: %v", cause, reasonOf(err))
		}
	}
}

func TestClassify(t *testing.T) {
	for name, test := range map[string]struct {
		line     string
		patterns []pattern
		want     Reason
	}{
		"a disk of the server": {
			`pg_dump: error: query failed: ERROR:  could not write to file: No space left on device`, workPatterns,
			ReasonDumpFailed},
		"a full volume": {`pg_dump: error: could not write to output file: No space left on device`, workPatterns,
			ReasonVolumeFull},
		"the server ends": {
			`pg_dump: error: query failed: FATAL:  terminating connection due to administrator command`, workPatterns,
			ReasonConnectionLost},
		"a host that is not allowed": {`psql: error: FATAL:  no pg_hba.conf entry for host "10.0.0.1"`,
			connectionPatterns, ReasonAuthenticationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			err := classify(&toolError{name: "tool", lines: []string{test.line}, err: errors.New("exit status 1")}, "work",
				ReasonDumpFailed, test.patterns)
			if reasonOf(err) != test.want {
				t.Errorf("%s", reasonOf(err))
			}
		})
	}
}

// Details of errors show rows, so they are not kept.
func TestComplaintsAreErrorsOnly(t *testing.T) {
	var c errorLines
	text := "pg_restore: connecting\npg_restore: error: COPY failed for table \"t\": ERROR:  duplicate key\nDETAIL:  " +
		"Key (mail)=(a@b.c) already exists.\nCONTEXT:  COPY t, line 2\n"
	for i := range len(text) { // as small as pipes may deliver
		_, _ = c.Write([]byte(text[i : i+1]))
	}
	want := []string{`pg_restore: error: COPY failed for table "t": ERROR:  duplicate key`}
	if diff := cmp.Diff(want, c.found()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var other errorLines
	_, _ = other.Write([]byte("something\nodd \xff happened"))
	if diff := cmp.Diff([]string{"odd ? happened"}, other.found()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
