//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// listening waits until a server accepts connections.
func listening(t *testing.T, port string) {
	t.Helper()
	await(t, "a server on port "+port, func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

func port(t *testing.T) string {
	t.Helper()
	port, err := freePort()
	noError(t, err)
	return port
}

// s3Store starts an S3 server with one bucket in a folder, and returns settings for an empty repository in it.
func s3Store(t *testing.T, settings map[string]string, dir, port string, args ...string) (map[string]string, *exec.Cmd) {
	t.Helper()
	need(t, "rclone")
	noError(t, os.MkdirAll(dir+"/company", 0o777))
	p, _ := workplace()
	p.give(t, dir+"/company")
	cheapRepository(t, dir+"/company/orders")
	cmd := process(t, nil, nil, []string{"HOME=" + dir}, "rclone", append([]string{"serve", "s3", "--addr=127.0.0.1:" + port,
		"--auth-key=" + storeUser + "," + storeKey, "--vfs-cache-mode=off", "--config=" + dir + "/rclone.conf", dir}, args...)...)
	listening(t, port)
	scheme := "http"
	if len(args) > 1 {
		scheme = "https"
	}
	return with(settings, "RESTIC_REPOSITORY", "s3:"+scheme+"://127.0.0.1:"+port+"/company/orders", "AWS_ACCESS_KEY_ID", storeUser,
		"AWS_SECRET_ACCESS_KEY", storeKey, "AWS_DEFAULT_REGION", "us-east-1"), cmd
}

// restStore starts a REST server, and returns settings for a repository in it.
func restStore(t *testing.T, settings map[string]string, args ...string) map[string]string {
	t.Helper()
	need(t, "rest-server")
	port := port(t)
	process(t, nil, nil, nil, "rest-server", append([]string{"--no-auth", "--listen=127.0.0.1:" + port, "--path=" + folder(t)}, args...)...)
	listening(t, port)
	return with(settings, "RESTIC_REPOSITORY", "rest:http://127.0.0.1:"+port+"/orders/")
}

// A wrong key is refused. So is a bucket that does not exist, or in which nothing may be written: the program makes no
// bucket. restic would make it, or try for a quarter of an hour.
func TestFault9WrongKeyAndWrongBucket(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	settings, _ := s3Store(t, target(t), dir, port(t))
	elsewhere := func(settings map[string]string, path string) map[string]string {
		address, _, _ := strings.Cut(settings["RESTIC_REPOSITORY"], "/company/")
		return with(settings, "RESTIC_REPOSITORY", address+path)
	}
	answer := func(status int, code string) map[string]string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
		}))
		t.Cleanup(server.Close)
		return with(settings, "RESTIC_REPOSITORY", "s3:"+server.URL+"/company/orders")
	}
	readOnly, _ := s3Store(t, settings, folder(t), port(t), "--read-only")
	noWrites := proxied(t, settings, func(_ *http.Server, r *http.Request) bool { return r.Method != http.MethodPut })
	for name, test := range map[string]struct {
		settings map[string]string
		want     Reason
	}{
		"a wrong key":                        {with(settings, "AWS_SECRET_ACCESS_KEY", "another-key"), ReasonRepositoryRefused},
		"a wrong user":                       {with(settings, "AWS_ACCESS_KEY_ID", "nobody"), ReasonRepositoryRefused},
		"a bucket that does not exist":       {elsewhere(settings, "/nowhere/orders"), ReasonRepositoryMissing},
		"one on a server that makes none":    {elsewhere(readOnly, "/nowhere/orders"), ReasonRepositoryMissing},
		"a store that knows no bucket":       {answer(http.StatusNotFound, "NoSuchBucket"), ReasonRepositoryMissing},
		"a store that refuses everything":    {answer(http.StatusForbidden, "AccessDenied"), ReasonRepositoryRefused},
		"no permission to make a repository": {elsewhere(noWrites, "/company/new"), ReasonRepositoryRefused},
		"no permission to write into one":    {noWrites, ReasonRepositoryRefused},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			o := must(t, verbBackup, test.settings, test.want)
			if took := time.Since(start); took > time.Minute || !strings.Contains(o.result.Message, "bucket") {
				t.Error(took, o.result.Message)
			}
		})
	}
	if _, err := os.Stat(dir + "/nowhere"); err == nil {
		t.Error("a bucket was made")
	}
	must(t, verbRestore, elsewhere(settings, "/nowhere/orders"), ReasonRepositoryMissing)
	must(t, verbDelete, elsewhere(settings, "/nowhere/orders"), ReasonDeleteSucceeded)
	must(t, verbRestore, elsewhere(settings, "/company/nothing"), ReasonRepositoryMissing)
	verified(t, elsewhere(settings, "/company/new"))
}

// The endpoint goes away while restic uploads, and the run is stopped: there is no snapshot. The next run succeeds.
func TestFault9TheEndpointGoesAwayInTheMiddle(t *testing.T) {
	t.Parallel()
	direct, _ := s3Store(t, target(t), folder(t), port(t))
	gone := make(chan struct{})
	var once sync.Once
	settings := proxied(t, direct, func(server *http.Server, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/data/") {
			_ = server.Close()
			once.Do(func() { close(gone) })
			return false
		}
		return true
	})
	var out, errs bytes.Buffer
	cmd := startRun(t, verbBackup, settings, &out, &errs)
	select {
	case <-gone:
	case <-time.After(time.Minute):
		t.Fatal("no upload: ", errs.String())
	}
	must(t, verbBackup, with(settings, "BACKUP_NAME", "other"), ReasonRepositoryUnreachable)
	_ = cmd.Process.Signal(syscall.SIGTERM) // as the Job's deadline does; restic itself tries for a quarter of an hour
	if o := end(t, cmd, settings, &out, &errs); o.result.Succeeded || o.code != exitFailed {
		t.Errorf("%+v", o.result)
	}
	if found := resticRun(t, direct, "snapshots", "--tag=dump"); strings.TrimSpace(found) != "[]" {
		t.Error("there is a snapshot: ", found)
	}
	must(t, verbBackup, direct, ReasonBackupSucceeded)
}

func TestFault9ACertificateOfAnUnknownCA(t *testing.T) {
	t.Parallel()
	settings, dir := target(t), folder(t)
	certificate, key := selfSigned(t, "localhost")
	ours := write(t, dir+"/ca.crt", string(certificate))
	settings, _ = s3Store(t, settings, dir, port(t), "--cert="+ours, "--key="+write(t, dir+"/key", string(key)))
	settings["RESTIC_REPOSITORY"] = strings.Replace(settings["RESTIC_REPOSITORY"], "127.0.0.1", "localhost", 1)
	must(t, verbBackup, settings, ReasonTLSFailed)
	stranger, _ := selfSigned(t, "localhost")
	must(t, verbBackup, with(settings, "RESTIC_CACERT", write(t, dir+"/other.crt", string(stranger))), ReasonTLSFailed)
	must(t, verbBackup, with(settings, "RESTIC_CACERT", ours), ReasonBackupSucceeded)
}

// proxied puts a server between restic and the S3 store. A request that pass refuses gets the status 403.
func proxied(t *testing.T, settings map[string]string,
	pass func(server *http.Server, r *http.Request) bool) map[string]string {
	address, _, _ := strings.Cut(strings.TrimPrefix(settings["RESTIC_REPOSITORY"], "s3:"), "/company")
	behind, _ := url.Parse(address)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind)
		r.Out.Host = r.In.Host // the signature has it
	}}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	noError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !pass(server, r) {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return with(settings, "RESTIC_REPOSITORY", "s3:http://"+listener.Addr().String()+"/company/orders")
}

// A store that refuses deletion gets backups. Retention and the mark of a verification give a warning.
func TestFault9AStoreThatRefusesDeletion(t *testing.T) {
	t.Parallel()
	stores := map[string]func(t *testing.T) map[string]string{
		"rest-server that only appends": func(t *testing.T) map[string]string { return restStore(t, target(t), "--append-only") },
		"S3 with object lock": func(t *testing.T) map[string]string {
			settings, _ := s3Store(t, target(t), folder(t), port(t))
			return proxied(t, settings, func(_ *http.Server, r *http.Request) bool {
				return r.Method != http.MethodDelete && !r.URL.Query().Has("delete")
			})
		},
	}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			settings := with(store(t), "BACKUP_KEEP_LAST", "1", "BACKUP_WAIT_SECONDS", "1")
			must(t, verbBackup, earlier(settings, 24), ReasonBackupSucceeded)
			must(t, verbBackup, settings, ReasonBackupSucceeded)
			o := must(t, verbFinish, settings, ReasonFinished)
			if o.result.Warning == "" || len(o.result.Backups) != 2 {
				t.Errorf("%+v", o.result)
			}
		})
	}
}

func TestFault9ARepositoryWithAnotherPassword(t *testing.T) {
	t.Parallel()
	settings := target(t)
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	other := with(settings, "RESTIC_PASSWORD_FILE", write(t, settings["TMPDIR"]+"/other", "another-password"))
	for _, verb := range []string{verbBackup, verbFinish, verbRestore, verbDelete} {
		if o := must(t, verb, other, ReasonRepositoryPasswordWrong); o.code != exitFinal {
			t.Errorf("%s: code %d", verb, o.code)
		}
	}
}

// A pack file is damaged: the check and a restore find it, and nothing is removed.
func TestFault9ADamagedPackFile(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_KEEP_LAST", "1", "BACKUP_VERIFY", "Archive")
	must(t, verbBackup, with(earlier(settings, 24), "BACKUP_VERIFY", "None"), ReasonBackupSucceeded)
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	packs, _ := filepath.Glob(settings["RESTIC_REPOSITORY"] + "/data/*/*")
	for _, path := range packs {
		text, err := os.ReadFile(path)
		noError(t, err)
		text[len(text)/3] ^= 1
		noError(t, errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, text, 0o600)))
	}
	must(t, verbFinish, settings, ReasonRepositoryDamaged)
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy"), ReasonRepositoryDamaged)
	if found, _ := filepath.Glob(settings["RESTIC_REPOSITORY"] + "/snapshots/*"); len(found) < 2 {
		t.Errorf("%d snapshots are left", len(found))
	}
}

// Two owners make one repository at the same time. Each has its backups, and removes only these.
func TestFault9TwoOwnersOfOneRepository(t *testing.T) {
	t.Parallel()
	first := target(t)
	second := with(first, "BACKUP_OWNER", "uid-2")
	must(t, verbBackup, with(first, "BACKUP_NAME", "first"), ReasonBackupSucceeded) // makes the repository
	var out, errs, out2, errs2 bytes.Buffer
	a, b := startRun(t, verbBackup, first, &out, &errs), startRun(t, verbBackup, second, &out2, &errs2)
	for _, o := range []outcome{end(t, a, first, &out, &errs), end(t, b, second, &out2, &errs2)} {
		if !o.result.Succeeded {
			t.Errorf("%+v\n%s", o.result, o.errs)
		}
	}
	must(t, verbDelete, second, ReasonDeleteSucceeded)
	if o := must(t, verbFinish, first, ReasonFinished); len(o.result.Backups) != 2 {
		t.Errorf("%+v", o.result.Backups)
	}
}

// A volume is full long before the end of the dump. The reason names it, and the next run with space succeeds.
func TestFault9AFullVolume(t *testing.T) {
	t.Parallel()
	settings := target(t)
	volume := folder(t)
	if err := syscall.Mount("tmpfs", volume, "tmpfs", 0, "size=48m,mode=0777"); err != nil {
		t.Skipf("no file system can be mounted: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(volume, syscall.MNT_DETACH) })
	write(t, volume+"/other", strings.Repeat("x", 14<<20)) // the rest is enough to begin, and not for the dump
	database(t, "full", `CREATE TABLE big AS
		SELECT n, (SELECT string_agg(md5(random()::text || n || g), '') FROM generate_series(1, 30) g) x FROM generate_series(1, 300000) n;`)
	settings = with(settings, "RESTIC_REPOSITORY", volume+"/db")
	must(t, verbBackup, with(settings, "BACKUP_DATABASE", "full"), ReasonRepositoryFull)
	noError(t, syscall.Mount("tmpfs", volume, "tmpfs", syscall.MS_REMOUNT, "size=200m,mode=0777"))
	must(t, verbBackup, settings, ReasonBackupSucceeded)
}

// A backup goes to a REST server, is verified, and comes back.
func TestRoundTripWithARESTServer(t *testing.T) {
	settings := restStore(t, target(t))
	restored(t, settings)
	if rows := sql(t, "copy", "SELECT count(*) FROM t"); rows != "100" {
		t.Error(rows)
	}
}

// Old backups are removed, except the newest that is verified. Nothing is removed when a clock is wrong. Dumps of the
// older format are listed, and stay.
func TestRetention(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_KEEP_LAST", "1")
	good := with(earlier(settings, 72), "BACKUP_VERIFY", "Archive")
	must(t, verbBackup, good, ReasonBackupSucceeded)
	must(t, verbFinish, good, ReasonFinished)
	must(t, verbBackup, earlier(settings, 48), ReasonBackupSucceeded)
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	if o := must(t, verbFinish, with(settings, "BACKUP_KEEP_WITHIN_DAYS", "3"), ReasonFinished); len(o.result.Backups) != 3 {
		t.Errorf("of the last three days: %+v", o.result.Backups)
	}
	older := filepath.Join(settings["RESTIC_REPOSITORY"], "uid-0", "orders-7.dump")
	noError(t, os.Mkdir(filepath.Dir(older), 0o755))
	write(t, older, "PGDMP")
	noError(t, os.Chtimes(older, time.Time{}, time.Now().Add(time.Minute)))
	ahead := earlier(settings, -2)
	must(t, verbBackup, ahead, ReasonBackupSucceeded)
	for name, wrong := range map[string]map[string]string{"a time ahead of the clock": ahead, "a backup of the future": settings} {
		if o := must(t, verbFinish, wrong, ReasonFinished); len(o.result.Backups) != 5 || o.result.Warning == "" {
			t.Errorf("%s: %+v", name, o.result)
		}
	}
	var wrong []snapshot
	noError(t, json.Unmarshal([]byte(resticRun(t, settings, "snapshots", "--tag=name="+ahead["BACKUP_NAME"])), &wrong))
	for _, s := range wrong {
		resticRun(t, settings, "forget", s.ID)
	}
	o := must(t, verbFinish, settings, ReasonFinished)
	var names []string
	for _, b := range o.result.Backups {
		names = append(names, b.Name+string(b.Verified)+b.Path)
	}
	want := fmt.Sprint([]string{"orders-7" + older, settings["BACKUP_NAME"], good["BACKUP_NAME"] + "Archive"})
	if fmt.Sprint(names) != want {
		t.Errorf("%v, want %s", names, want)
	}
}

// No secret is on a command line while a backup runs, or in its output (end checks that).
func TestNoSecretOnACommandLine(t *testing.T) {
	settings, _ := s3Store(t, target(t), folder(t), port(t))
	seen := map[string]bool{}
	var out, errs bytes.Buffer
	cmd := startRun(t, verbBackup, settings, &out, &errs)
	for done := make(chan error, 1); ; {
		if cmd.ProcessState == nil && len(seen) == 0 {
			go func() { done <- cmd.Wait() }()
		}
		paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			name := filepath.Base(strings.Split(string(text), "\x00")[0])
			seen[name] = true
			for _, secret := range []string{password, repositoryPassword} {
				if strings.Contains(string(text), secret) {
					t.Errorf("%s has a secret as argument", name)
				}
			}
			if name == "restic" && strings.Contains(string(text), storeKey) {
				t.Error("restic has the key of the store as argument")
			}
		}
		select {
		case err := <-done:
			if err != nil || !seen["restic"] || !seen["pg_dump"] {
				t.Errorf("%v, or restic and pg_dump were not seen", err)
			}
			return
		default:
		}
	}
}
