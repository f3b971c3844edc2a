//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEachFaultHasItsReason(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_WAIT_SECONDS", "1")
	sql(t, "small", `CREATE ROLE weak_user LOGIN PASSWORD 'w-password'; REVOKE ALL ON t FROM PUBLIC;`)
	database(t, "closed")
	sql(t, "postgres", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC;")
	t.Cleanup(func() { sql(t, "postgres", "DROP ROLE weak_user;") })
	readOnly := folder(t)
	old := toolsWith(t, map[string]string{"pg_dump": "echo 'pg_dump (PostgreSQL) 9.6.24'"})
	for name, test := range map[string]struct {
		settings map[string]string
		want     Reason
		says     string
	}{
		"no server": {with(settings, "PGPORT", "5999"), ReasonTargetNotReady, "tried for 1s"},
		"a name without address": {with(settings, "PGHOST", "no-such-host.invalid"), ReasonTargetNotReady,
			"no-such-host.invalid"},
		"a wrong password": {with(settings, "PGPASSWORD", "wrong-password"), ReasonAuthenticationFailed,
			refusedUser},
		"no password":         {with(settings, "PGPASSWORD", ""), ReasonAuthenticationFailed, "PGPASSWORD, which is empty"},
		"an unknown user":     {with(settings, "PGUSER", "nobody-knows"), ReasonAuthenticationFailed, refusedUser},
		"an unknown database": {with(settings, "BACKUP_DATABASE", "not there"), ReasonDatabaseNotFound, "not there"},
		"an unknown database with a misleading name": {with(settings, "BACKUP_DATABASE", "password authentication failed"),
			ReasonDatabaseNotFound, "does not exist"},
		"a user who may not connect": {
			with(settings, "PGUSER", "weak_user", "PGPASSWORD", "w-password", "BACKUP_DATABASE", "closed"), ReasonPermissionDenied, "closed"},
		"a user who may not read": {
			with(settings, "PGUSER", "weak_user", "PGPASSWORD", "w-password"), ReasonPermissionDenied, "permission denied for table t"},
		"a volume that is not there": {
			with(settings, "BACKUP_ROOT", "/nowhere", "BACKUP_DIR", "/nowhere/x"), ReasonVolumeMissing, "/nowhere"},
		"a volume that is another's": {
			with(settings, "BACKUP_ROOT", readOnly, "BACKUP_DIR", readOnly+"/x"), ReasonVolumeNotWritable, "permission denied"},
		"no tools":       {with(settings, "PATH", readOnly), ReasonToolMissing, "pg_dump is not in PATH"},
		"an old pg_dump": {with(settings, "PATH", old), ReasonVersionMismatch, "newer"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.want == ReasonVolumeNotWritable {
				if err := os.Chmod(readOnly, 0o555); err != nil {
					t.Fatal(err)
				}
			}
			o := must(t, verbBackup, test.settings, test.want)
			if !strings.Contains(o.result.Message, test.says) {
				t.Errorf("message: %s", o.result.Message)
			}
			line := "pgbackup backup: " + string(test.want) + ": "
			if last := strings.Split(strings.TrimSpace(o.errs), "\n"); !strings.HasPrefix(last[len(last)-1], line) {
				t.Errorf("last line: %s", last[len(last)-1])
			}
			if left := filesOf(t, test.settings); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// A run waits for a server that starts late.
func TestServerThatComesUpLateIsWaitedFor(t *testing.T) {
	t.Parallel()
	settings := target(t)
	late := folder(t)
	steps := filepath.Join(late, "steps")
	var out, errs bytes.Buffer
	cmd := start(t, verbBackup, with(settings, "PGHOST", late, stepsFile, steps), &out, &errs)
	await(t, "the first try", func() bool {
		text, _ := os.ReadFile(steps)
		return strings.Contains(string(text), "refused")
	})
	if err := os.Symlink(filepath.Join(serverDir, ".s.PGSQL."+serverPort),
		filepath.Join(late, ".s.PGSQL."+serverPort)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
}

// await polls until done returns true.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// children returns the command lines of the processes below a process, by process ID.
func children(pid int) map[int]string {
	below, lines, parents := map[int]bool{pid: true}, map[int]string{}, map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var id, parent int
		var state string
		_, _ = fmt.Sscan(string(text), &id)
		_, _ = fmt.Sscan(string(text[bytes.LastIndexByte(text, ')')+1:]), &state, &parent)
		parents[id] = parent
	}
	for range 4 { // tools start processes at most this deep
		for id, parent := range parents {
			if below[parent] && !below[id] {
				below[id] = true
				line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", id))
				lines[id] = string(line)
			}
		}
	}
	return lines
}

// recorded returns a directory of programs that record their command lines, and then run the real programs.
func recorded(t *testing.T) (tools, calls string) {
	t.Helper()
	calls = filepath.Join(folder(t), "calls")
	scripts := map[string]string{}
	for _, name := range programs {
		scripts[name] = fmt.Sprintf("printf '%%s\\n' \"%s $*\" >>%s\nexec %s/%s \"$@\"", name, calls, toolsDir, name)
	}
	return toolsWith(t, scripts), calls
}

// Each call by pgbackup is recorded.
func TestPasswordIsOnNoCommandLine(t *testing.T) {
	t.Parallel()
	settings := target(t)
	dropAfter(t, "secretly")
	tools, calls := recorded(t)
	settings = restoring(t, with(settings, "PATH", tools))
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "secretly"), ReasonRestoreSucceeded)
	called, _ := os.ReadFile(calls)
	for _, name := range programs {
		if !bytes.Contains(called, []byte(name+" ")) {
			t.Errorf("%s was not called: %s", name, called)
		}
	}
	facts, _ := os.ReadFile(pathOf(settings, suffixFacts))
	if bytes.Contains(append(called, facts...), []byte(password)) {
		t.Errorf("a command line or the facts show the password: %s", called)
	}
}

// A lock holds up the dump, so that it is surely in progress when the signal comes. The lock is on a partitioned table
// without its own rows, which only pg_dump reads.
func TestSIGTERMStopsTheToolsAndLeavesNothing(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_DATABASE", "held")
	database(t, "held")
	sql(t, "held", "CREATE TABLE held (a int) PARTITION BY RANGE (a);")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	holder, err := asSuperuser().dial(ctx, "held")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.ask(ctx, "BEGIN; LOCK TABLE ONLY public.held;"); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := start(t, verbBackup, settings, &out, &errs)
	await(t, "the wait for the lock", func() bool {
		return sql(t, "postgres",
			"SELECT count(*) FROM pg_stat_activity WHERE datname = 'held' AND wait_event_type = 'Lock';") == "1"
	})
	tools, signalled := children(cmd.Process.Pid), time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if took := time.Since(signalled); took >= grace {
		t.Errorf("it took %s: the tools got no signal", took)
	}
	if err := holder.close(); err != nil {
		t.Error(err)
	}
	var result Result
	text, _ := os.ReadFile(settings["BACKUP_RESULT"])
	if err := json.Unmarshal(text, &result); err != nil || result.Reason != ReasonInterrupted ||
		cmd.ProcessState.ExitCode() != exitFailed {
		t.Errorf("code %d, result %s, %s", cmd.ProcessState.ExitCode(), text, errs.String())
	}
	if lines := strings.Count(errs.String(), "\n"); lines != 1 {
		t.Errorf("%d lines: %s", lines, errs.String())
	}
	if left := filesOf(t, settings); len(left) > 0 {
		t.Errorf("files were left: %v", left)
	}
	for id := range tools {
		if err := syscall.Kill(id, 0); err == nil {
			t.Errorf("process %d still runs: %s", id, tools[id])
		}
	}
}

// A verification is stopped while its query runs: the scratch server is removed, and nothing is recorded against the
// dump.
func TestSIGTERMRemovesTheScratchServer(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_SCRATCH", folder(t), "BACKUP_QUERY", "SELECT pg_sleep(600)",
		"BACKUP_VERIFY", "Archive")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	process := startScratchProcess(t, settings)
	settings["BACKUP_VERIFY"] = "Restore"
	for name, signal := range map[string]syscall.Signal{"Interrupted": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		var out, errs bytes.Buffer
		cmd := start(t, verbBackup, settings, &out, &errs)
		awaitQuery(t, process)
		tools := children(process.Process.Pid)
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		noScratchLeft(t, settings)
		for id := range tools {
			await(t, "the end of "+tools[id], func() bool { return syscall.Kill(id, 0) != nil })
		}
		if signal == syscall.SIGTERM && !strings.HasPrefix(errs.String(), "pgbackup backup: Interrupted: ") ||
			states(t, settings)["orders-29012345"] != StateGood {
			t.Errorf("%s: %s, states %v", name, errs.String(), states(t, settings))
		}
	}
}

// awaitQuery waits until BACKUP_QUERY sleeps in the scratch server.
func awaitQuery(t *testing.T, process *exec.Cmd) {
	t.Helper()
	await(t, "the query", func() bool {
		for _, line := range children(process.Process.Pid) {
			if strings.Contains(line, "pg_sleep") {
				return true
			}
		}
		return false
	})
}

// A run waits for another run of the same owner, and not for runs of other owners.
func TestTwoRunsOfOneOwner(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_WAIT_SECONDS", "0")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	lock, err := os.OpenFile(filepath.Join(settings["BACKUP_DIR"], settings["BACKUP_OWNER"], lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{verbBackup, verbDelete, verbRestore} {
		must(t, verb, settings, ReasonBusy)
	}
	must(t, verbBackup, with(settings, "BACKUP_OWNER", "uid-2", "BACKUP_WAIT_SECONDS", "20"), ReasonBackupSucceeded)
}

// A server that accepts a connection and sends nothing does not block a run forever.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	settings := target(t)
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	_, port, _ := net.SplitHostPort(mute.Addr().String())
	must(t, verbBackup, with(settings, "PGHOST", "127.0.0.1", "PGPORT", port, "PGCONNECT_TIMEOUT", "2",
		"BACKUP_WAIT_SECONDS", "1"), ReasonTargetNotReady)
}

// A volume is full because it has more backups than the present policy keeps: the failed run frees space for the next
// run. A limit on the size of files stands for a full volume: the reasons of both are in TestVolumeFaults and
// TestClassify.
func TestFullVolumeIsPruned(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_KEEP_LAST", "1", "BACKUP_WAIT_SECONDS", "1")
	now := time.Now()
	for i := range 3 {
		put(t, settings, fmt.Sprintf("old-%d", i), now.AddDate(0, 0, i-9), nil)
	}
	database(t, "growing")
	sql(t, "growing",
		"CREATE TABLE noise AS SELECT md5(n::text) || md5((n * 7)::text) AS a FROM generate_series(1, 10000) n;")
	o := must(t, verbBackup, with(settings, "BACKUP_DATABASE", "growing", fileLimit, "100000"), ReasonVolumeFull)
	if diff := cmp.Diff([]string{"old-0", "old-1"}, o.result.Removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if got := states(t, settings); len(got) != 1 || got["old-2"] != StateGood {
		t.Errorf("the newest good one: %v", got)
	}
	if left := filesOf(t, settings); len(left) != 3 || o.code != exitFailed {
		t.Errorf("code %d, left: %v", o.code, left)
	}
}

// A clock that was ahead for a while dated a backup in the future. The runs after it have older dates, but each keeps
// the backup that it has just taken.
func TestClockThatWasAheadDoesNotCostTheNewestBackup(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_KEEP_LAST", "1")
	must(t, verbBackup, with(settings, "BACKUP_NAME", "ahead", clock, time.Now().AddDate(1, 0, 0).Format(time.RFC3339)),
		ReasonBackupSucceeded)
	for _, name := range []string{"first", "second"} {
		o := must(t, verbBackup, with(settings, "BACKUP_NAME", name), ReasonBackupSucceeded)
		if got := states(t, settings); len(got) != 2 || got["ahead"] != StateGood || got[name] != StateGood {
			t.Errorf("after the run of %s: %v, %+v", name, got, o.result.Backups)
		}
	}
}
