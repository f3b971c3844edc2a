//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// restored backs up a database with verification by a restore, and restores it into the database copy.
func restored(t *testing.T, settings map[string]string, pairs ...string) (verify, restore outcome) {
	t.Helper()
	dropAfter(t, "copy")
	verify, _ = verified(t, settings)
	return verify, must(t, verbRestore, with(settings, append([]string{"BACKUP_DATABASE", "copy",
		"BACKUP_RESTORE_UID", "r-1"}, pairs...)...), ReasonRestoreSucceeded)
}

// leftOut checks that the result of a restore names something that it left out.
func leftOut(t *testing.T, o outcome, want ...string) {
	t.Helper()
	have := strings.Join(o.result.Restored.LeftOut, "; ")
	for _, part := range want {
		if !strings.Contains(have, part) {
			t.Errorf("%s: left out is %q, without %q", o.result.Verb, have, part)
		}
	}
}

// The owner of a table is not a superuser. Code of this owner runs when rows are loaded, when an index is built, and when
// a generated column is computed. It tries to become a superuser, and to run a program. A superuser does not restore
// such a dump, nor does a user who may become one; an ordinary user does, owns the tables, and the code has no other rights.
func TestFault1AnOwnersCodeDoesNotBecomeSuperuser(t *testing.T) {
	settings := target(t)
	sign := filepath.Join(settings["TMPDIR"], "sign")
	roles(t, "evil LOGIN PASSWORD 'evil-password'", "almost LOGIN CREATEDB PASSWORD 'user-password' IN ROLE "+superuser,
		"ordinary LOGIN CREATEDB PASSWORD 'user-password'")
	database(t, "trap", "GRANT CREATE ON SCHEMA public TO evil;")
	for _, statements := range []string{`
		CREATE FUNCTION f(a int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT a';
		CREATE TABLE t (a int CHECK (public.f(a) > 0), b int GENERATED ALWAYS AS (public.f(a)) STORED);
		CREATE INDEX ON t (public.f(a));
		INSERT INTO t VALUES (1), (2);`, `
		CREATE OR REPLACE FUNCTION f(a int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $f$
		BEGIN
			BEGIN EXECUTE 'RESET ROLE'; EXECUTE 'RESET SESSION AUTHORIZATION'; EXCEPTION WHEN OTHERS THEN NULL; END;
			BEGIN EXECUTE 'ALTER ROLE evil SUPERUSER'; EXCEPTION WHEN OTHERS THEN NULL; END;
			BEGIN EXECUTE 'COPY (SELECT 1) TO PROGRAM ''touch ` + sign + `'''; EXCEPTION WHEN OTHERS THEN NULL; END;
			RETURN a;
		END $f$;`} {
		if _, err := psqlAs("evil", "evil-password", "trap", statements); err != nil {
			t.Fatal(err)
		}
	}
	settings = with(settings, "BACKUP_DATABASE", "trap")
	dropAfter(t, "copy")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	settings = with(settings, "BACKUP_DATABASE", "copy")
	for user, secret := range map[string]string{superuser: password, "almost": "user-password"} {
		o := must(t, verbRestore, with(settings, "PGUSER", user, "PGPASSWORD", secret), ReasonPermissionDenied)
		if !strings.Contains(o.result.Message, "superuser") {
			t.Error(o.result.Message)
		}
	}
	must(t, verbRestore, with(settings, "PGUSER", "ordinary", "PGPASSWORD", "user-password"), ReasonRestoreSucceeded)
	if super := sql(t, "postgres", "SELECT count(*) FROM pg_roles WHERE rolsuper"); super != "1" {
		t.Error("the owner of a table made a superuser")
	}
	if _, err := os.Stat(sign); err == nil {
		t.Error("the owner of a table ran a program")
	}
	if owner := sql(t, "copy", "SELECT count(*), min(tableowner) FROM t, pg_tables WHERE tablename = 't'"); owner != "2|ordinary" {
		t.Error(owner)
	}
}

// An ordinary user restores what belongs to this user, beside an event trigger that a superuser made.
func TestRestoreAsAnOrdinaryUser(t *testing.T) {
	settings := target(t)
	roles(t, "shop LOGIN CREATEDB PASSWORD 'shop-password'")
	database(t, "shopdb", `ALTER DATABASE shopdb OWNER TO shop; CREATE FUNCTION note() RETURNS event_trigger LANGUAGE plpgsql AS
		'BEGIN END'; ALTER FUNCTION note OWNER TO shop; CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note();`)
	shop := with(settings, "PGUSER", "shop", "PGPASSWORD", "shop-password", "BACKUP_DATABASE", "shopdb")
	if _, err := psqlAs("shop", "shop-password", "shopdb", `CREATE TABLE public.orders (id serial PRIMARY KEY, what text);
		INSERT INTO public.orders (what) SELECT 'x' FROM generate_series(1, 10);`); err != nil {
		t.Fatal(err)
	}
	_, o := restored(t, shop)
	leftOut(t, o, "event trigger note")
	if have := sql(t, "copy", "SELECT count(*), min(tableowner) FROM orders, pg_tables WHERE tablename = 'orders'"); have != "10|shop" {
		t.Error(have)
	}
}

// The same faults get the same reasons, whatever the language of the server's messages. A user may have confused the
// name of a role and its password, so the result shows neither.
func TestFault2TheLanguageOfTheServerMakesNoDifference(t *testing.T) {
	settings := target(t)
	for _, name := range []string{"de_DE", "es_ES", "fr_FR"} {
		locale(t, name, "UTF-8")
	}
	roles(t, "limited LOGIN PASSWORD 'limited-password' CONNECTION LIMIT 0", "poor LOGIN PASSWORD 'poor-password'", "nologin")
	database(t, "rejected")
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	t.Cleanup(func() {
		sql(t, "postgres", "ALTER SYSTEM RESET lc_messages;")
		sql(t, "postgres", "SELECT pg_reload_conf();")
	})
	poor := []string{"PGUSER", "poor", "PGPASSWORD", "poor-password"}
	spoken := map[string]bool{}
	for _, language := range []string{"C", "de_DE.UTF-8", "es_ES.UTF-8", "fr_FR.UTF-8"} {
		sql(t, "postgres", "ALTER SYSTEM SET lc_messages = '"+language+"';")
		sql(t, "postgres", "SELECT pg_reload_conf();")
		await(t, language, func() bool { return sql(t, "postgres", "SHOW lc_messages;") == language })
		_, err := psql("postgres", "SELECT 1/0;")
		spoken[err.Error()] = true
		t.Run(language, func(t *testing.T) {
			for name, test := range map[string]struct {
				verb  string
				pairs []string
				want  Reason
			}{
				"wrong password":       {verbBackup, []string{"PGPASSWORD", "wrong"}, ReasonAuthenticationFailed},
				"no such role":         {verbBackup, []string{"PGUSER", "geheim-passwort-1"}, ReasonAuthenticationFailed},
				"a role without login": {verbBackup, []string{"PGUSER", "nologin"}, ReasonAuthenticationFailed},
				"pg_hba.conf rejects":  {verbBackup, []string{"BACKUP_DATABASE", "rejected"}, ReasonAuthenticationFailed},
				"no such database":     {verbBackup, []string{"BACKUP_DATABASE", "nowhere"}, ReasonDatabaseNotFound},
				"no connection left": {verbBackup, []string{"PGUSER", "limited", "PGPASSWORD", "limited-password",
					"BACKUP_WAIT_SECONDS", "0"}, ReasonTargetNotReady},
				"no permission for a table": {verbBackup, poor, ReasonPermissionDenied},
				"no permission to create a database": {verbRestore, append([]string{"BACKUP_DATABASE", "copy"}, poor...),
					ReasonPermissionDenied},
			} {
				pairs := test.pairs
				if test.verb == verbBackup {
					pairs = append([]string{"BACKUP_NAME", "another"}, pairs...)
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					if o := must(t, test.verb, with(settings, pairs...), test.want); strings.Contains(o.result.Message, "geheim") {
						t.Errorf("the result, which everyone may read in the status, has the user: %s", o.result.Message)
					}
				})
			}
		})
	}
	if len(spoken) != 4 {
		t.Errorf("the server did not speak four languages: %v", spoken)
	}
}

// Event triggers that forbid every statement or write rows, a subscription, a foreign-data wrapper, and a policy for a
// role that the server does not have do not break a verification or a restore, which name what they leave out. A
// restore adds no rows of a trigger. Into the dumped database it is refused.
func TestFault3EventTriggersSubscriptionsAndServers(t *testing.T) {
	settings := target(t)
	database(t, "acting", `CREATE TABLE ddl_log (tag text);
		CREATE FUNCTION note_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
			$f$ BEGIN INSERT INTO public.ddl_log VALUES (tg_tag); END $f$;
		CREATE EVENT TRIGGER note ON ddl_command_end EXECUTE FUNCTION note_ddl(); CREATE EXTENSION postgres_fdw;
		CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1', dbname 'far');
		CREATE USER MAPPING FOR boss SERVER far OPTIONS (user 'u', password 'p');
		CREATE FOREIGN TABLE ft (a int) SERVER far; CREATE TABLE t AS SELECT 1 a;
		CREATE SUBSCRIPTION news CONNECTION 'host=127.0.0.1 port=1 dbname=x' PUBLICATION all_tables
			WITH (connect = false, slot_name = NONE); CREATE PUBLICATION one FOR TABLE t;
		CREATE ROLE tenant; CREATE POLICY own ON t TO tenant USING (true); COMMENT ON POLICY own ON t IS 'theirs';
		CREATE FUNCTION stop_ddl() RETURNS event_trigger LANGUAGE plpgsql AS
			$f$ BEGIN RAISE EXCEPTION 'no DDL: %', tg_tag; END $f$;`, "CREATE EVENT TRIGGER stop ON ddl_command_start EXECUTE FUNCTION stop_ddl();")
	t.Cleanup(func() {
		sql(t, "acting", "ALTER EVENT TRIGGER stop DISABLE; DROP SUBSCRIPTION news; DROP OWNED BY tenant; DROP ROLE tenant;")
	})
	settings = with(settings, "BACKUP_DATABASE", "acting")
	verify, restore := restored(t, settings)
	must(t, verbRestore, with(settings, "BACKUP_RESTORE_UID", "r-2"), ReasonTargetNotEmpty)
	for _, o := range []outcome{verify, restore} {
		leftOut(t, o, "event trigger stop", "event trigger note", "subscription news", "publication one", "user mapping",
			"policy public t own")
	}
	if have := sql(t, "copy", `SELECT (SELECT count(*) FROM pg_subscription WHERE subdbid = d.oid), (SELECT count(*) FROM pg_event_trigger),
		(SELECT count(*) FROM pg_foreign_table), (SELECT count(*) FROM pg_user_mapping), (SELECT count(*) FROM pg_publication),
		(SELECT count(*) FROM t) FROM pg_database d WHERE datname = 'copy'`); have != "0|0|1|0|0|1" {
		t.Error(have)
	}
	const rows = "SELECT string_agg(tag, ', ') FROM ddl_log"
	if before, after := sql(t, "acting", rows), sql(t, "copy", rows); before == "" || after != before {
		t.Errorf("the trigger wrote %q, the copy has %q", before, after)
	}
}

// Rows of a table that is partitioned by the hash of an enum come into other partitions: values of an enum have other
// numbers in another database.
func TestFault4HashPartitionsByEnum(t *testing.T) {
	settings := target(t)
	database(t, "hash", `CREATE TYPE filler AS ENUM ('q'); DROP TYPE filler;
		CREATE TYPE col AS ENUM ('red', 'green', 'blue', 'grey', 'pink', 'teal');
		CREATE TABLE e (c col, n int) PARTITION BY HASH (c);
		CREATE TABLE e0 PARTITION OF e FOR VALUES WITH (MODULUS 3, REMAINDER 0);
		CREATE TABLE e1 PARTITION OF e FOR VALUES WITH (MODULUS 3, REMAINDER 1);
		CREATE TABLE e2 PARTITION OF e FOR VALUES WITH (MODULUS 3, REMAINDER 2);
		INSERT INTO e SELECT x, generate_series(1, 10) FROM unnest(enum_range(NULL::col)) x;`)
	restored(t, with(settings, "BACKUP_DATABASE", "hash"))
	if rows := sql(t, "copy", "SELECT count(*), count(DISTINCT c) FROM e"); rows != "60|6" {
		t.Error(rows)
	}
}

// Settings of the role and the database would make the sessions of the tools fail.
func TestFault5SettingsOfTheRoleAndTheDatabase(t *testing.T) {
	settings := target(t)
	roles(t, "other", "shop LOGIN CREATEDB PASSWORD 'shop-password' IN ROLE other")
	database(t, "strict", "CREATE SCHEMA trap; CREATE TABLE big AS SELECT n, repeat('x', 1000) x FROM generate_series(1, 20000) n;"+
		"ALTER TABLE big OWNER TO shop; ALTER DATABASE strict OWNER TO shop;")
	for name, value := range map[string]string{"default_transaction_read_only": "on", "statement_timeout": "5",
		"lock_timeout": "1", "idle_session_timeout": "1", "idle_in_transaction_session_timeout": "1",
		"quote_all_identifiers": "on", "search_path": "trap", "role": "other", "row_security": "on",
		"default_table_access_method": "nowhere", "temp_file_limit": "100000"} {
		if name == "default_table_access_method" {
			continue // checked when it is set
		}
		sql(t, "postgres", fmt.Sprintf("ALTER ROLE shop SET %s = '%s';", name, value))
		if name != "role" && name != "temp_file_limit" {
			sql(t, "postgres", fmt.Sprintf("ALTER DATABASE strict SET %s = '%s';", name, value))
		}
	}
	dropAfter(t, "copy")
	settings = with(settings, "BACKUP_DATABASE", "strict", "PGUSER", "shop", "PGPASSWORD", "shop-password")
	o := must(t, verbBackup, settings, ReasonBackupSucceeded)
	if !strings.Contains(o.result.Warning, "temp_file_limit") {
		t.Errorf("a setting that cannot be overridden is not named: %q", o.result.Warning)
	}
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy"), ReasonRestoreSucceeded)
	if rows := sql(t, "copy", "SELECT count(*) FROM public.big"); rows != "20000" {
		t.Error(rows)
	}
}

// A materialized view over a foreign table cannot be filled where the foreign server does not answer. That is not a
// fault of the dump.
func TestFault6AForeignServerThatDoesNotAnswer(t *testing.T) {
	settings := target(t)
	database(t, "far", "CREATE TABLE ft AS SELECT 1 a;")
	database(t, "near", fmt.Sprintf(`CREATE EXTENSION postgres_fdw;
		CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'far');
		CREATE USER MAPPING FOR boss SERVER far OPTIONS (user 'boss', password '%s');
		CREATE FOREIGN TABLE ft (a int) SERVER far;
		CREATE MATERIALIZED VIEW mv AS SELECT * FROM ft; CREATE UNIQUE INDEX ON mv (a);
		ALTER SERVER far OPTIONS (SET host '192.0.2.1');`, serverDir, serverPort, password))
	verify, restore := restored(t, with(settings, "BACKUP_DATABASE", "near"))
	for _, o := range []outcome{verify, restore} {
		leftOut(t, o, "materialized view data public mv")
		if !strings.Contains(o.result.Message, "materialized view data public mv") {
			t.Error(o.result.Message)
		}
	}
}

// Large objects keep their contents and comment. As all objects, they belong to the user of the restore, and have no grants.
func TestFault7LargeObjects(t *testing.T) {
	settings := target(t)
	roles(t, "reader", "shop LOGIN CREATEDB PASSWORD 'shop-password'")
	database(t, "large", `SELECT lo_from_bytea(70001, '\xdeadbeef'), lo_from_bytea(70002, '\x00');
		ALTER LARGE OBJECT 70001 OWNER TO shop; GRANT SELECT ON LARGE OBJECT 70001 TO reader;
		COMMENT ON LARGE OBJECT 70001 IS 'scan';`)
	restored(t, with(settings, "BACKUP_DATABASE", "large"), "PGUSER", "shop", "PGPASSWORD", "shop-password")
	if have := sql(t, "copy", `SELECT oid, pg_get_userbyid(lomowner), lomacl, obj_description(oid, 'pg_largeobject'), lo_get(oid)
		FROM pg_largeobject_metadata ORDER BY oid`); have != "70001|shop||scan|\\xdeadbeef\n70002|shop|||\\x00" {
		t.Error(have)
	}
}

// pg_dump leaves out the rows of tables that belong to an extension, unless the extension declares them as configuration.
// The warning names the tables. A dump that cannot be restored is not verified. A server without the extension refuses it.
func TestFault7RowsOfTablesOfExtensions(t *testing.T) {
	settings := target(t)
	out, err := exec.Command("pg_config", "--sharedir").Output()
	dir := filepath.Join(strings.TrimSpace(string(out)), "extension")
	name := fmt.Sprint("pgbackuptest", os.Getpid()) // other tests of this machine have the same folder
	control := filepath.Join(dir, name+".control")
	if err != nil || os.WriteFile(control, []byte("default_version = '1.0'\nschema = 'public'\n"), 0o644) != nil {
		t.Skip("the folder of extensions cannot be written")
	}
	script := filepath.Join(dir, name+"--1.0.sql")
	t.Cleanup(func() { _ = os.Remove(control); _ = os.Remove(script) })
	if err := os.WriteFile(script, []byte(`CREATE TABLE ext_log (id int);
		CREATE TABLE ext_conf (k text PRIMARY KEY); INSERT INTO ext_conf VALUES ('of the script');
		SELECT pg_catalog.pg_extension_config_dump('ext_conf', '');`), 0o644); err != nil {
		t.Fatal(err)
	}
	database(t, "extended", "CREATE EXTENSION "+name+"; INSERT INTO ext_log SELECT generate_series(1, 500);"+
		"DELETE FROM ext_conf; INSERT INTO ext_conf VALUES ('of a user');")
	settings = with(settings, "BACKUP_DATABASE", "extended")
	restored(t, settings)
	if rows := sql(t, "copy", "SELECT string_agg(k, ', ' ORDER BY k), (SELECT count(*) FROM ext_log) FROM ext_conf"); rows != "of a user, of the script|0" {
		t.Error(rows)
	}
	sql(t, "extended", "INSERT INTO ext_conf VALUES ('of the script')") // a restore has this row twice
	settings = with(settings, "BACKUP_NAME", "twice", "BACKUP_VERIFY", "Restore", "BACKUP_SCRATCH", folder(t))
	if o := must(t, verbBackup, settings, ReasonBackupSucceeded); !strings.Contains(o.result.Warning, "ext_log") {
		t.Errorf("the warning is %q", o.result.Warning)
	}
	must(t, verbVerify, map[string]string{"BACKUP_SCRATCH": settings["BACKUP_SCRATCH"]},
		ReasonScratchRestoreFailed)
	noError(t, errors.Join(os.Remove(control), os.Remove(script)))
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "third"), ReasonRestoreFailed)
}

// A backup that waits for a lock names the table and the session: in the result, and in the log.
func TestFault7ABackupThatWaitsForALockNamesIt(t *testing.T) {
	settings := target(t)
	database(t, "locked", "CREATE TABLE slow (a int);")
	release := hold(t, "locked", "slow")
	settings = with(settings, "BACKUP_DATABASE", "locked", "BACKUP_WAIT_SECONDS", "4")
	o := must(t, verbBackup, settings, ReasonDumpFailed)
	for _, text := range []string{o.result.Message, o.errs} {
		if !strings.Contains(text, "slow") || !strings.Contains(text, "the holder") {
			t.Errorf("the lock is not named: %s", text)
		}
	}
	release()
	must(t, verbBackup, settings, ReasonBackupSucceeded)
}

// hold locks a table until it is released.
func hold(t *testing.T, database, table string) (release func()) {
	t.Helper()
	process(t, nil, nil, []string{"PGHOST=" + serverDir, "PGPORT=" + serverPort, "PGUSER=" + superuser,
		"PGPASSWORD=" + password, "PGAPPNAME=the holder"}, "psql", "--no-psqlrc", "--dbname="+database,
		"--command=BEGIN; LOCK TABLE "+table+"; SELECT pg_sleep(600);")
	await(t, "the lock", func() bool {
		return sql(t, database, "SELECT count(*) FROM pg_locks WHERE relation = '"+table+"'::regclass AND granted") == "1"
	})
	return func() {
		sql(t, "postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'the holder'")
	}
}

// prSetChildSubreaper makes this process the parent of descendants whose own parent has ended: see prctl(2).
const prSetChildSubreaper = 36

// A dump that ends early does not become a snapshot: pg_dump is killed, the server ends its session, or the whole run is
// killed, with a lock of restic left. The next run succeeds.
func TestADumpThatEndsEarlyIsNotASnapshot(t *testing.T) {
	settings := target(t)
	database(t, "longer", "CREATE TABLE big AS SELECT n, repeat(md5(n::text), 30) x FROM generate_series(1, 20000) n;")
	settings = with(settings, "BACKUP_DATABASE", "longer")
	for name, test := range map[string]struct {
		cut  func(t *testing.T, run, restic, dump *os.Process) error
		want Reason
	}{
		"pg_dump is killed": {func(_ *testing.T, _, _, dump *os.Process) error { return dump.Kill() }, ReasonDumpFailed},
		"the server ends the session": {func(_ *testing.T, _, _, _ *os.Process) error {
			_, err := psql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY public.big%'")
			return err
		}, ReasonDumpFailed},
		"the run is killed": {func(t *testing.T, run, restic, _ *os.Process) error {
			_, _, fault := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0)
			if fault != 0 {
				return fault
			}
			err := errors.Join(run.Kill(), restic.Kill())
			await(t, "the end of restic", func() bool { // until it is waited for, its lock looks held
				_, _ = syscall.Wait4(restic.Pid, nil, syscall.WNOHANG, nil) // the run may have waited before its own end
				return restic.Signal(syscall.Signal(0)) != nil
			})
			return err
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			release := hold(t, "longer", "big")
			var out, errs bytes.Buffer
			cmd := startRun(t, verbBackup, settings, &out, &errs)
			var restic, dump *os.Process
			await(t, "pg_dump", func() bool {
				restic, dump = processOf(cmd, "restic"), processOf(cmd, "pg_dump")
				return restic != nil && dump != nil && sql(t, "longer", "SELECT count(*) FROM pg_locks WHERE NOT granted") == "1"
			})
			noError(t, restic.Signal(syscall.SIGSTOP)) // so pg_dump cannot finish
			release()
			await(t, "COPY", func() bool {
				return sql(t, "postgres", "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY public.big%'") == "1"
			})
			err := test.cut(t, cmd.Process, restic, dump)
			if test.want != "" {
				err = errors.Join(err, restic.Signal(syscall.SIGCONT))
			}
			noError(t, err)
			if o := end(t, cmd, settings, &out, &errs); o.result.Reason != test.want || o.code == 0 {
				t.Errorf("%d %s %s\n%s", o.code, o.result.Reason, o.result.Message, o.errs)
			}
			if found := resticRun(t, settings, "snapshots", "--no-lock", "--tag=dump"); strings.TrimSpace(found) != "[]" {
				t.Errorf("there is a snapshot: %s", found)
			}
			if locks, _ := filepath.Glob(settings["RESTIC_REPOSITORY"] + "/locks/*"); (len(locks) > 0) != (test.want == "") {
				t.Errorf("locks: %v", locks)
			}
			next := with(settings, "BACKUP_VERIFY", "Archive", "BACKUP_NAME", "next")
			must(t, verbBackup, next, ReasonBackupSucceeded)
			if o := must(t, verbFinish, next, ReasonFinished); o.result.Warning != "" {
				t.Error(o.result.Warning)
			}
			must(t, verbDelete, settings, ReasonDeleteSucceeded)
		})
	}
}

// A restore is killed while pg_restore loads rows. There is no database of the target's name. The next run of the same
// restore succeeds, and leaves no other database.
func TestARestoreThatIsKilledLeavesNothing(t *testing.T) {
	settings := target(t)
	roles(t, "slow")
	database(t, "checked", `CREATE FUNCTION wait() RETURNS bool LANGUAGE plpgsql AS
		$f$ BEGIN PERFORM pg_sleep(600) FROM pg_roles WHERE rolname = 'slow' AND current_database() <> 'checked'; RETURN true; END $f$;
		CREATE TABLE t (a int CHECK (public.wait())); INSERT INTO t VALUES (1), (2), (3);`)
	dropAfter(t, "copy")
	must(t, verbBackup, with(settings, "BACKUP_DATABASE", "checked"), ReasonBackupSucceeded)
	settings = with(settings, "BACKUP_DATABASE", "copy", "BACKUP_RESTORE_UID", "r-1")
	var out, errs bytes.Buffer
	cmd := startRun(t, verbRestore, settings, &out, &errs)
	await(t, "COPY", func() bool {
		return sql(t, "postgres", "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY public.t %'") == "1"
	})
	for _, running := range []*os.Process{processOf(cmd, "pg_restore"), cmd.Process} { // as when a pod is killed
		if running == nil || running.Kill() != nil {
			t.Fatal("the restore has ended: ", errs.String())
		}
	}
	end(t, cmd, settings, &out, &errs)
	const databases = "SELECT count(*) FILTER (WHERE datname = 'copy'), count(*) FILTER (WHERE datname LIKE 'pgbackup%') FROM pg_database"
	if have := sql(t, "postgres", databases); have != "0|1" {
		t.Error("after the kill: ", have)
	}
	sql(t, "postgres", "ALTER ROLE slow RENAME TO fast")
	must(t, verbRestore, settings, ReasonRestoreSucceeded)
	sql(t, "postgres", "ALTER ROLE fast RENAME TO slow")
	if have := sql(t, "postgres", databases) + " " + sql(t, "copy", "SELECT count(*) FROM t"); have != "1|0 3" {
		t.Error("after the next run: ", have)
	}
}

// processOf returns a process with a name that a run has started, or nil: as a number, no process would be 0, which is the
// group of this test to kill(2).
func processOf(run *exec.Cmd, name string) *os.Process {
	found, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range found {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		text, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(text)) != name {
			continue
		}
		for up := pid; up > 1; {
			if up == run.Process.Pid {
				p, _ := os.FindProcess(pid)
				return p
			}
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", up))
			if err != nil {
				break
			}
			fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
			up, _ = strconv.Atoi(fields[1])
		}
	}
	return nil
}
