//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Variables by which this test binary, run again, becomes the program.
const (
	asProgram = "PGBACKUP_TEST_PROGRAM" // set: be the program
	killAt    = "PGBACKUP_TEST_KILL"    // kill yourself at this step, counted from 1
	stepsFile = "PGBACKUP_TEST_STEPS"   // append the names of steps to this file
	holdAt    = "PGBACKUP_TEST_HOLD"    // STEP:PATH: wait at this step while the file exists
	clock     = "PGBACKUP_TEST_NOW"     // the time, RFC 3339
	fileLimit = "PGBACKUP_TEST_LIMIT"   // no file may have more bytes
)

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(beProgram())
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		stopPostgres()
		os.Exit(130)
	}()
	if toolsDir = findTools(); toolsDir == "" {
		fmt.Fprintln(os.Stderr,
			"note: PostgreSQL is not installed, so the tests on a real server are skipped (Debian: apt-get install postgresql)")
	}
	_ = os.Setenv("PATH", toolsDir+":"+os.Getenv("PATH"))
	code := m.Run()
	stopPostgres()
	os.Exit(code)
}

// beProgram is the program with hooks.
func beProgram() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	syscall.Umask(0o007)
	h := hooks{now: time.Now, step: func(string) {}}
	if text := os.Getenv(clock); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		begun := time.Now()
		h.now = func() time.Time { return at.Add(time.Since(begun)) }
	}
	if text := os.Getenv(fileLimit); text != "" {
		limit, _ := strconv.ParseUint(text, 10, 64)
		signal.Ignore(syscall.SIGXFSZ) // the tools inherit it, and see EFBIG
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			panic(err)
		}
	}
	count := 0
	deadly, _ := strconv.Atoi(os.Getenv(killAt))
	h.step = func(name string) {
		if path := os.Getenv(stepsFile); path != "" {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
			if err == nil {
				_, err = fmt.Fprintln(f, name)
			}
			if err = errors.Join(err, f.Close()); err != nil {
				panic(err)
			}
		}
		if count++; count == deadly {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if step, path, _ := strings.Cut(os.Getenv(holdAt), ":"); step == name {
			for err := error(nil); err == nil; _, err = os.Stat(path) {
				time.Sleep(5 * time.Millisecond)
			}
		}
	}
	return run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr, h)
}

// place is the folder of the tests, which the unprivileged user may enter, with a copy of this binary.
type place struct {
	dir, binary string
	credential  *syscall.Credential // nil when the tests do not run as root
}

var workplace = sync.OnceValues(func() (*place, error) {
	dir, err := os.MkdirTemp("/tmp", "pgbt-") // short: it holds sockets
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, binary: filepath.Join(dir, "program")}
	if os.Getuid() == 0 { // PostgreSQL refuses root
		for _, name := range []string{"postgres", "nobody"} {
			if u, err := user.Lookup(name); err == nil {
				uid, _ := strconv.Atoi(u.Uid)
				gid, _ := strconv.Atoi(u.Gid)
				p.credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
				break
			}
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(self)
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(p.binary, text, 0o755))
	}
	return p, err
})

// folder creates a folder to which the program may write.
func folder(t *testing.T) string {
	t.Helper()
	p, err := workplace()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(p.dir, "v")
	if err != nil {
		t.Fatal(err)
	}
	p.give(t, dir)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *place) give(t *testing.T, path string) {
	t.Helper()
	if p.credential == nil {
		return
	}
	if err := os.Chown(path, int(p.credential.Uid), int(p.credential.Gid)); err != nil {
		t.Fatal(err)
	}
}

// outcome is the outcome of one run of the program.
type outcome struct {
	code      int
	out, errs string
	result    Result
}

// start starts the program. The result is at settings["BACKUP_RESULT"].
func start(t *testing.T, verb string, settings map[string]string, out, errs *bytes.Buffer) *exec.Cmd {
	t.Helper()
	p, err := workplace()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.binary, verb)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH")}
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		cmd.Env = append(cmd.Env, key+"="+settings[key])
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// runProgram runs the program to its end.
func runProgram(t *testing.T, verb string, settings map[string]string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	_ = os.Remove(settings["BACKUP_RESULT"])
	cmd := start(t, verb, settings, &out, &errs)
	_ = cmd.Wait()
	o := outcome{code: cmd.ProcessState.ExitCode(), out: out.String(), errs: errs.String()}
	if text, err := os.ReadFile(settings["BACKUP_RESULT"]); err == nil {
		if len(text) > ResultLimit {
			t.Errorf("the result has %d bytes", len(text))
		}
		if err := json.Unmarshal(text, &o.result); err != nil {
			t.Fatalf("result of %s: %v: %s", verb, err, text)
		}
	}
	if password != "" && strings.Contains(o.out+o.errs+fmt.Sprint(o.result), password) {
		t.Errorf("%s shows the password:\n%s%s", verb, o.out, o.errs)
	}
	return o
}

// must runs the program and checks its reason.
func must(t *testing.T, verb string, settings map[string]string, want Reason) outcome {
	t.Helper()
	o := runProgram(t, verb, settings)
	if o.result.Reason != want || o.result.Succeeded != (o.code == 0) {
		t.Fatalf("%s: code %d, reason %s, want %s: %s\n%s", verb, o.code, o.result.Reason, want, o.result.Message, o.errs)
	}
	return o
}

// with returns a copy of settings with other values: key, value, key, value.
func with(settings map[string]string, pairs ...string) map[string]string {
	more := maps.Clone(settings)
	for i := 0; i < len(pairs); i += 2 {
		more[pairs[i]] = pairs[i+1]
	}
	return more
}

// volume returns settings for backups in a new folder.
func volume(t *testing.T) map[string]string {
	root := folder(t)
	return map[string]string{
		"BACKUP_ROOT": root, "BACKUP_DIR": root + "/db", "BACKUP_OWNER": "uid-1", "BACKUP_NAME": "orders-29012345",
		"BACKUP_RESULT": root + "/result", "TMPDIR": root,
	}
}

// These variables describe the real server of the tests that need it.
var (
	password   = "" // of the superuser; empty without a server
	serverOnce sync.Once
	serverErr  error
	postgres   *exec.Cmd
	serverDir  string
	serverPort string
	toolsDir   string
)

const superuser = "boss"

// findTools returns the directory of the newest PostgreSQL on this machine.
func findTools() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	slices.SortFunc(found, func(a, b string) int {
		number := func(s string) int { n, _ := strconv.Atoi(strings.Split(s, "/")[4]); return n }
		return number(a) - number(b)
	})
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

// target returns settings for backups of the real server, in a new folder.
func target(t *testing.T) map[string]string {
	t.Helper()
	if toolsDir == "" {
		t.Skip("PostgreSQL is not installed")
	}
	serverOnce.Do(func() { serverErr = startPostgres() })
	if serverErr != nil {
		t.Fatal(serverErr)
	}
	return with(volume(t), "PGHOST", serverDir, "PGPORT", serverPort, "PGUSER", superuser, "PGPASSWORD", password,
		"BACKUP_DATABASE", "small", "BACKUP_WAIT_SECONDS", "20")
}

// restoring returns settings for backups that are verified by a restore: a scratch process runs until the test ends.
func restoring(t *testing.T, settings map[string]string) map[string]string {
	t.Helper()
	settings = with(settings, "BACKUP_VERIFY", "Restore", "BACKUP_SCRATCH", folder(t))
	startScratchProcess(t, settings)
	return settings
}

// startScratchProcess starts the verb scratch without any credentials.
func startScratchProcess(t *testing.T, settings map[string]string) *exec.Cmd {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := start(t, verbScratch, map[string]string{
		"BACKUP_SCRATCH": settings["BACKUP_SCRATCH"], "PATH": cmp.Or(settings["PATH"], os.Getenv("PATH"))}, &out, &errs)
	t.Cleanup(func() {
		if cmd.ProcessState != nil {
			return // the test has killed it
		}
		if err := errors.Join(cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			t.Errorf("scratch: %v: %s", err, errs.String())
		}
	})
	return cmd
}

func startPostgres() error {
	p, err := workplace()
	if err != nil {
		return err
	}
	password = "pw-" + rand.Text()
	serverDir = filepath.Join(p.dir, "s")
	secret := filepath.Join(p.dir, "secret")
	if err := errors.Join(os.Mkdir(serverDir, 0o755), os.WriteFile(secret, []byte(password), 0o644)); err != nil {
		return err
	}
	if p.credential != nil {
		if err := os.Chown(serverDir, int(p.credential.Uid), int(p.credential.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(serverDir, "data")
	if err := initialise(p, data, secret); err != nil {
		return err
	}
	if serverPort, err = freePort(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.dir, "server.log"))
	if err != nil {
		return err
	}
	postgres = exec.Command(toolsDir+"/postgres", "-D", data, "-k", serverDir, "-p", serverPort,
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "autovacuum=off",
		"-c", "shared_buffers=16MB", "-c", "max_wal_size=256MB",
		"-c", "max_locks_per_transaction=10", "-c", "max_pred_locks_per_transaction=10") // see TestRestoreOfManyTables
	postgres.Env, postgres.Dir, postgres.Stderr = append([]string{"LC_ALL=C"}, germanLocale(p.dir)...), "/", log
	postgres.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := postgres.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := psql("postgres", "SELECT 1")
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			return err
		}
	}
	_, err = psql("postgres", "CREATE DATABASE small;")
	if err == nil {
		_, err = psql("small",
			"CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 100) n;")
	}
	return err
}

func initialise(p *place, data, secret string) error {
	initdb := exec.Command(toolsDir+"/initdb", "-D", data, "-U", superuser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync")
	initdb.Env, initdb.Dir = []string{"LC_ALL=C"}, "/"
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Pdeathsig: syscall.SIGKILL}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	// The test of a server that asks for the password needs this entry.
	hba, err := os.ReadFile(filepath.Join(data, "pg_hba.conf"))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(data, "pg_hba.conf"),
		append([]byte("host all plain 127.0.0.1/32 password\n"), hba...), 0o600)
}

// freePort returns a port on which no process listens on 127.0.0.1.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

func stopPostgres() {
	if postgres != nil && postgres.Process != nil {
		_ = postgres.Process.Signal(syscall.SIGQUIT)
		_, _ = postgres.Process.Wait()
	}
	if p, err := workplace(); err == nil {
		_ = os.RemoveAll(p.dir)
	}
}

// asSuperuser is the server of the tests for tools.
func asSuperuser() server {
	return server{environ: append(plainEnvironment(os.Environ()),
		"PGHOST="+serverDir, "PGPORT="+serverPort, "PGUSER="+superuser, "PGPASSWORD="+password)}
}

// statements runs SQL and returns what it prints.
func (s server) statements(database, sql string) (string, error) {
	var out bytes.Buffer
	err := s.run(context.Background(),
		tool{name: "psql", args: psqlArgs(database), stdin: strings.NewReader(sql), stdout: &out})
	return strings.TrimSpace(out.String()), err
}

// psql runs statements as the superuser and returns what they print.
func psql(database, sql string) (string, error) {
	return asSuperuser().withEncoding("UTF8").statements(database, sql)
}

func sql(t *testing.T, database, statements string) string {
	t.Helper()
	out, err := psql(database, statements)
	if err != nil {
		t.Fatalf("%s: %v", database, err)
	}
	return out
}

// backedUp returns the settings of target, after a successful backup.
func backedUp(t *testing.T) map[string]string {
	t.Helper()
	settings := target(t)
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	return settings
}

// programs are the programs of PostgreSQL that pgbackup calls.
var programs = []string{"psql", "pg_dump", "pg_dumpall", "pg_restore", "createdb", "dropdb", "initdb", "postgres"}

// toolsWith returns a PATH that begins with the programs of PostgreSQL, some of which are replaced by shell scripts.
func toolsWith(t *testing.T, scripts map[string]string) string {
	t.Helper()
	dir := folder(t)
	for _, name := range programs {
		path := filepath.Join(dir, name)
		var err error
		if script, replaced := scripts[name]; replaced {
			err = os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)
		} else {
			err = os.Symlink(filepath.Join(toolsDir, name), path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir + ":" + os.Getenv("PATH")
}

// database creates a database, which is dropped after the test, and runs statements in it.
func database(t *testing.T, name string, statements ...string) {
	t.Helper()
	quoted := `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
	sql(t, "postgres", "CREATE DATABASE "+quoted+";")
	dropAfter(t, name)
	for _, statement := range statements {
		sql(t, name, statement)
	}
}

func dropAfter(t *testing.T, name string) {
	t.Cleanup(func() {
		sql(t, "postgres", `DROP DATABASE IF EXISTS "`+strings.ReplaceAll(name, `"`, `""`)+`" WITH (FORCE);`)
	})
}

// filesOf returns the names in the folder of an owner, without the lock.
func filesOf(t *testing.T, settings map[string]string) []string {
	t.Helper()
	found, err := os.ReadDir(filepath.Join(settings["BACKUP_DIR"], settings["BACKUP_OWNER"]))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, f := range found {
		if f.Name() != lockName {
			names = append(names, f.Name())
		}
	}
	return names
}

// pathOf is the path of a file of a backup.
func pathOf(settings map[string]string, suffix string) string {
	return filepath.Join(settings["BACKUP_DIR"], settings["BACKUP_OWNER"], settings["BACKUP_NAME"]+suffix)
}
