//go:build linux

package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && verbs[os.Args[1]] != nil { // this binary, run again, is the program
		main()
	}
	stopped := make(chan os.Signal, 1)
	signal.Notify(stopped, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-stopped
		stopPostgres()
		os.Exit(130)
	}()
	toolsDir = findTools()
	built, _ := filepath.Abs("../../../bin") // of the workshop
	_ = os.Setenv("PATH", strings.Join([]string{toolsDir, os.Getenv("PATH"), built}, ":"))
	if toolsDir == "" {
		fmt.Fprintln(os.Stderr,
			"note: PostgreSQL is not installed, so the tests on a real server are skipped (Debian: apt-get install postgresql)")
	}
	for _, name := range []string{"restic", "rclone", "rest-server"} {
		if _, err := exec.LookPath(name); err != nil {
			fmt.Fprintf(os.Stderr, "note: %s is not in PATH or bin, so the tests that need it are skipped\n", name)
		}
	}
	code := m.Run()
	stopPostgres()
	os.Exit(code)
}

// place is the folder of the tests, which the unprivileged user may enter, with the program and the tools.
type place struct {
	dir, binary string
	credential  *syscall.Credential // nil when the tests do not run as root
}

var workplace = sync.OnceValues(func() (*place, error) {
	dir, err := os.MkdirTemp("/tmp", "pgbt-") // short: it holds sockets
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, binary: filepath.Join(dir, "pgbackup")}
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

// noError ends a test when there is an error.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// folder creates a folder to which the program may write.
func folder(t *testing.T) string {
	t.Helper()
	p, err := workplace()
	noError(t, err)
	dir, err := os.MkdirTemp(p.dir, "v")
	noError(t, err)
	p.give(t, dir)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (p *place) give(t *testing.T, path string) {
	t.Helper()
	if p.credential == nil {
		return
	}
	noError(t, os.Chown(path, int(p.credential.Uid), int(p.credential.Gid)))
}

// write writes a file that the program may read.
func write(t *testing.T, path, text string) string {
	t.Helper()
	noError(t, os.WriteFile(path, []byte(text), 0o600))
	p, err := workplace()
	noError(t, err)
	p.give(t, path)
	return path
}

// process starts a program as the unprivileged user. It ends with the test.
func process(t *testing.T, out, errs io.Writer, env []string, name string, args ...string) *exec.Cmd {
	t.Helper()
	p, err := workplace()
	noError(t, err)
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", append(env, "PATH="+os.Getenv("PATH")), out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = grace // a tool of a killed program may hold its output
	noError(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	return cmd
}

// outcome is the outcome of one run of the program.
type outcome struct {
	code   int
	errs   string
	result Result
}

// resultFile begins the variable that names the file of a run's result.
const resultFile = "BACKUP_RESULT="

// startRun starts the program.
func startRun(t *testing.T, verb string, settings map[string]string, out, errs *bytes.Buffer) *exec.Cmd {
	t.Helper()
	var env []string
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		if key != "PATH" {
			env = append(env, key+"="+settings[key])
		}
	}
	p, err := workplace()
	noError(t, err)
	return process(t, out, errs, append(env, resultFile+write(t, folder(t)+"/result", "")), p.binary, verb)
}

// end waits for the end of the program, and reads its result.
func end(t *testing.T, cmd *exec.Cmd, settings map[string]string, out, errs *bytes.Buffer) outcome {
	t.Helper()
	_ = cmd.Wait()
	o := outcome{code: cmd.ProcessState.ExitCode(), errs: errs.String()}
	if err := json.Unmarshal(out.Bytes(), &o.result); err != nil && o.code >= 0 {
		t.Fatalf("result %s: %v\n%s", out, err, errs)
	}
	i := slices.IndexFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, resultFile) })
	written, err := os.ReadFile(strings.TrimPrefix(cmd.Env[i], resultFile))
	if err != nil || o.code >= 0 && !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file of the result has %q, %v", written, err)
	}
	if out.Len() > ResultLimit {
		t.Errorf("the result has %d bytes", out.Len())
	}
	for _, secret := range []string{settings["PGPASSWORD"], repositoryPassword, storeKey} {
		if secret != "" && strings.Contains(out.String()+errs.String(), secret) {
			t.Errorf("the output shows a secret:\n%s%s", out, errs)
		}
	}
	return o
}

func runProgram(t *testing.T, verb string, settings map[string]string) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	return end(t, startRun(t, verb, settings, &out, &errs), settings, &out, &errs)
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

// verified takes a backup with verification by a restore: the three containers of its pod.
func verified(t *testing.T, settings map[string]string) (verify, finish outcome) {
	t.Helper()
	settings = with(settings, "BACKUP_VERIFY", "Restore", "BACKUP_SCRATCH", folder(t))
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	verify = must(t, verbVerify, map[string]string{"BACKUP_SCRATCH": settings["BACKUP_SCRATCH"],
		"BACKUP_QUERY": settings["BACKUP_QUERY"]}, ReasonVerificationPassed)
	return verify, must(t, verbFinish, settings, ReasonFinished)
}

// with returns a copy of settings with other values: key, value, key, value.
func with(settings map[string]string, pairs ...string) map[string]string {
	more := maps.Clone(settings)
	for i := 0; i < len(pairs); i += 2 {
		more[pairs[i]] = pairs[i+1]
	}
	return more
}

const (
	superuser          = "boss"
	repositoryPassword = "repository-password-7"
	storeUser          = "store-user"
	storeKey           = "store-secret-key-3"
)

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

// need skips a test without a program.
func need(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip(name + " is not in PATH or bin")
		}
	}
}

// target returns settings for backups of the real server into a repository in a new folder.
func target(t *testing.T) map[string]string {
	t.Helper()
	need(t, "initdb", "restic")
	serverOnce.Do(func() { serverErr = startPostgres() })
	if serverErr != nil {
		t.Fatal(serverErr)
	}
	root := folder(t)
	cheapRepository(t, root+"/db")
	return map[string]string{
		"RESTIC_REPOSITORY": root + "/db", "RESTIC_PASSWORD_FILE": write(t, root+"/password", repositoryPassword),
		"BACKUP_VOLUME": root, "BACKUP_OWNER": "uid-1", "BACKUP_NAME": "orders-29012345", "TMPDIR": root, "BACKUP_SLOT": strconv.FormatInt(time.Now().Unix(), 10),
		"PGHOST": serverDir, "PGPORT": serverPort, "PGUSER": superuser, "PGPASSWORD": password,
		"PGREQUIREAUTH": "scram-sha-256", "BACKUP_DATABASE": "small", "BACKUP_WAIT_SECONDS": "20", "BACKUP_VERIFY": "None"}
}

// cheapRepository makes an empty repository. restic init makes keys that take each call of restic half a second: the key
// here takes none. TestRoundTrip, TestFault9WrongKeyAndWrongBucket and the tests with a REST server make a repository.
func cheapRepository(t *testing.T, dir string) {
	t.Helper()
	p, err := workplace()
	if err == nil {
		err = os.CopyFS(dir, os.DirFS("testdata/repository"))
	}
	noError(t, err)
	p.give(t, dir)
}

// earlier returns the settings of a run some hours before that of other settings.
func earlier(settings map[string]string, hours int) map[string]string {
	slot, _ := strconv.ParseInt(settings["BACKUP_SLOT"], 10, 64)
	slot -= int64(hours) * 3600
	return with(settings, "BACKUP_SLOT", strconv.FormatInt(slot, 10), "BACKUP_NAME", fmt.Sprintf("orders-%d", slot/60))
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
	initdb := exec.Command(toolsDir+"/initdb", "-D", data, "-U", superuser, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--locale=C", "--no-sync")
	initdb.Env, initdb.Dir = []string{"LC_ALL=C"}, "/"
	initdb.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Pdeathsig: syscall.SIGKILL}
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	// A role whose password the server wants to see, and a database that it refuses.
	hba, err := os.ReadFile(data + "/pg_hba.conf")
	if err != nil {
		return err
	}
	hba = append([]byte("host all plain 127.0.0.1/32 password\nlocal rejected all reject\n"), hba...)
	if err := os.WriteFile(data+"/pg_hba.conf", hba, 0o600); err != nil {
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
		"-c", "shared_buffers=16MB", "-c", "max_wal_size=256MB", "-c", "wal_level=logical")
	postgres.Env, postgres.Dir, postgres.Stderr = []string{"LC_ALL=C", "LOCPATH=" + p.dir}, "/", log
	postgres.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := postgres.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, err = psql("postgres", "SELECT 1"); err == nil {
			break
		}
	}
	if err == nil {
		_, err = psql("postgres", "CREATE DATABASE small;")
	}
	if err == nil {
		_, err = psql("small",
			"CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT n, 'row ' || n FROM generate_series(1, 100) n;")
	}
	return err
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

// psqlAs runs statements as a user, each in a separate transaction, and returns what they print.
func psqlAs(user, secret, database, sql string) (string, error) {
	cmd := exec.Command("psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1",
		databaseOption("dbname", database))
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "PGHOST=" + serverDir, "PGPORT=" + serverPort,
		"PGUSER=" + user, "PGPASSWORD=" + secret, "PGCLIENTENCODING=UTF8", "PGOPTIONS=-c default_transaction_read_only=off"}
	cmd.Stdin = strings.NewReader(sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), err
}

// psql runs statements as the superuser.
func psql(database, sql string) (string, error) { return psqlAs(superuser, password, database, sql) }

func sql(t *testing.T, database, statements string) string {
	t.Helper()
	out, err := psql(database, statements)
	if err != nil {
		t.Fatalf("%s: %v", database, err)
	}
	return out
}

// database creates a database, which is dropped after the test, and runs statements in it.
func database(t *testing.T, name string, statements ...string) {
	t.Helper()
	sql(t, "postgres", "CREATE DATABASE "+quote(name)+";")
	dropAfter(t, name)
	for _, statement := range statements {
		sql(t, name, statement)
	}
}

func dropAfter(t *testing.T, names ...string) {
	t.Cleanup(func() {
		for _, name := range names {
			sql(t, "postgres", "DROP DATABASE IF EXISTS "+quote(name)+" WITH (FORCE);")
		}
	})
}

// roles creates roles, which are dropped after the test. The databases of the test must be created later.
func roles(t *testing.T, definitions ...string) {
	t.Helper()
	for _, definition := range definitions {
		sql(t, "postgres", "CREATE ROLE "+definition+";")
		name, _, _ := strings.Cut(definition, " ")
		t.Cleanup(func() { sql(t, "postgres", "DROP ROLE "+name+";") })
	}
}

// await waits for a condition.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what, " did not happen")
		}
	}
}

// resticRun runs restic with the settings of a run, and returns what it prints.
func resticRun(t *testing.T, settings map[string]string, args ...string) string {
	t.Helper()
	cmd := exec.Command("restic", append([]string{"--no-cache", "--json"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for key, value := range settings {
		if strings.HasPrefix(key, "RESTIC_") || strings.HasPrefix(key, "AWS_") {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
	}
	p, _ := workplace()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential}
	var errs bytes.Buffer
	cmd.Dir, cmd.Stderr = "/", &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("restic %v: %v: %s%s", args, err, out, &errs)
	}
	return string(out)
}
