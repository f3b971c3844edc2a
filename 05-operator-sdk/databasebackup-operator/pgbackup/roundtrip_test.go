//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oddDatabase breaks a program that puts the name unquoted into command lines, connection strings or SQL.
const oddDatabase = `-it's "odd" = postgresql://x`

// oddSchema creates more than 10,000 rows in tables with odd names.
const oddSchema = `
CREATE EXTENSION hstore;
CREATE EXTENSION pgcrypto;
CREATE ROLE "Reader O'Neil" NOLOGIN;
CREATE ROLE "select" LOGIN PASSWORD 'never-in-a-backup';
CREATE ROLE "back\slash; \! touch" NOLOGIN;
GRANT "Reader O'Neil" TO "select";
CREATE SCHEMA "Sales & Co" AUTHORIZATION "select";
CREATE SCHEMA "Übung";
CREATE TABLE "Sales & Co"."Order ""Items"" :x" (id int PRIMARY KEY, "user" text NOT NULL, "naïve col" hstore,
  hash bytea, at timestamptz);
INSERT INTO "Sales & Co"."Order ""Items"" :x"
  SELECT n, 'it''s \ "' || n || E'"\t\n€ 日本', hstore('k', n::text),
     digest(n::text, 'sha256'), '2026-01-01 00:00+00'::timestamptz + n * interval '1 minute'
  FROM generate_series(1, 10000) n;
CREATE TABLE "Übung"."select" ("from" serial PRIMARY KEY, "where" text UNIQUE DEFAULT '\.', CHECK ("from" > 0));
INSERT INTO "Übung"."select" ("where") VALUES ('a'), ('\N'), (NULL), (''), (E'line\nline');
CREATE TABLE public.empty (a int);
CREATE TABLE public.nothing ();
INSERT INTO public.nothing DEFAULT VALUES;
CREATE TABLE public."new
line" (a int);
INSERT INTO public."new
line" VALUES (1), (2);
CREATE TABLE public.parts (a int, b text) PARTITION BY RANGE (a);
CREATE TABLE public.part1 PARTITION OF public.parts FOR VALUES FROM (0) TO (100);
CREATE TABLE public.part2 PARTITION OF public.parts FOR VALUES FROM (100) TO (1000);
INSERT INTO public.parts SELECT n, 'p' || n FROM generate_series(0, 500) n;
CREATE TABLE public.parent (a int);
CREATE TABLE public.child (b int) INHERITS (public.parent);
INSERT INTO public.parent VALUES (1);
INSERT INTO public.child VALUES (2, 3), (4, 5);
CREATE VIEW public.seen AS SELECT count(*) FROM "Sales & Co"."Order ""Items"" :x";
CREATE MATERIALIZED VIEW public.kept AS SELECT "user" FROM "Sales & Co"."Order ""Items"" :x" WHERE id < 10;
CREATE FUNCTION public.trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := NEW.a; RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON public.empty FOR EACH ROW EXECUTE FUNCTION public.trap();
ALTER TABLE public.empty ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON public.empty TO "select" USING (a > 1);
GRANT SELECT ON ALL TABLES IN SCHEMA "Übung" TO "Reader O'Neil";
ALTER TABLE "Übung"."select" OWNER TO "select";
GRANT USAGE ON SCHEMA "Übung" TO "back\slash; \! touch";
SELECT lo_from_bytea(0, decode(repeat('00ff27', n * 1000), 'hex')) FROM generate_series(1, 5) n;
`

// dropOddRoles drops the roles that own objects in these databases.
const dropOddRoles = `DROP ROLE "Reader O'Neil"; DROP ROLE "select"; DROP ROLE "back\slash; \! touch";`

// contentQuery prints every row of every table, in order, and every large object.
const contentQuery = `
SET search_path = pg_catalog;
SELECT format('SELECT %L, t::text FROM ONLY %I.%I t ORDER BY t::text COLLATE "C"', relname, nspname, relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
WHERE relkind IN ('r', 'm') AND nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY nspname, relname \gexec
SELECT oid, md5(lo_get(oid)) FROM pg_largeobject_metadata ORDER BY oid;
`

// schemaOf returns a database without its rows, as SQL.
func schemaOf(t *testing.T, database string) string {
	t.Helper()
	cmd := exec.Command(toolsDir+"/pg_dump", "--schema-only", databaseOption("dbname", database))
	cmd.Env = []string{"PGHOST=" + serverDir, "PGPORT=" + serverPort, "PGUSER=" + superuser, "PGPASSWORD=" + password}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	return regexp.MustCompile(`(?m)^\\(un)?restrict .*$`).ReplaceAllString(string(out), "")
}

func odd(t *testing.T) map[string]string {
	t.Helper()
	settings := with(target(t), "BACKUP_DATABASE", oddDatabase)
	t.Cleanup(func() { sql(t, "postgres", dropOddRoles) })
	database(t, oddDatabase)
	sql(t, oddDatabase, oddSchema)
	return settings
}

func TestDumpVerifyPruneRestoreOfOddNames(t *testing.T) {
	t.Parallel()
	settings := with(restoring(t, odd(t)),
		"BACKUP_QUERY", `SELECT count(*) > 9999, 'x' FROM "Sales & Co"."Order ""Items"" :x"`)
	o := must(t, verbBackup, settings, ReasonBackupSucceeded)
	if f := o.result.Backup; f == nil || f.Tables != 9 || f.Rows != 10000+5+1+2+501+1+2 || f.Verified == nil ||
		f.Verified.Mode != ModeRestore || f.Database != oddDatabase {
		t.Fatalf("facts: %+v", o.result.Backup)
	}
	want := []string{"orders-29012345.dump", "orders-29012345.globals.sql", "orders-29012345.json"}
	if diff := cmp.Diff(want, filesOf(t, settings)); diff != "" {
		t.Fatalf("files (-want +got):\n%s", diff)
	}
	globals, _ := os.ReadFile(pathOf(settings, suffixGlobals))
	if !strings.Contains(string(globals), `CREATE ROLE "Reader O'Neil"`) ||
		strings.Contains(string(globals), "SCRAM-SHA-256") {
		t.Error("the globals lack a role, or hold hashes of passwords")
	}
	info, err := os.Stat(pathOf(settings, suffixDump))
	if err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("the dump has mode %v: others may look at it", info.Mode())
	}
	content, schema := sql(t, oddDatabase, contentQuery), schemaOf(t, oddDatabase)
	if len(content) < 1_000_000 {
		t.Fatalf("only %d bytes are compared", len(content))
	}

	next := with(settings, "BACKUP_NAME", "orders-29012346", "BACKUP_VERIFY", "Archive", "BACKUP_KEEP_LAST", "1")
	pruned := must(t, verbBackup, next, ReasonBackupSucceeded)
	if diff := cmp.Diff([]string{"orders-29012345"}, pruned.result.Removed); diff != "" {
		t.Fatalf("removed (-want +got):\n%s", diff)
	}

	for _, into := range []string{`other "db" with=all`, "made-before"} {
		if into == "made-before" {
			database(t, into)
		} else {
			dropAfter(t, into)
		}
		o := must(t, verbRestore, with(next, "BACKUP_DATABASE", into), ReasonRestoreSucceeded)
		if r := o.result.Restored; r == nil || r.Rows != pruned.result.Backup.Rows || r.Tables != 9 || r.Replaced ||
			r.RolesCreated != 0 {
			t.Errorf("restored: %+v", o.result.Restored)
		}
		if got := sql(t, into, contentQuery); got != content {
			t.Errorf("%s: the rows differ", into)
		}
		if diff := cmp.Diff(schema, schemaOf(t, into)); diff != "" {
			t.Errorf("%s: schema (-dumped +restored):\n%s", into, diff)
		}
	}
}

func TestRestoreMakesMissingRolesWithoutRights(t *testing.T) {
	t.Parallel()
	settings := with(target(t), "BACKUP_DATABASE", "with-roles")
	database(t, "with-roles")
	sql(t, "with-roles",
		`CREATE ROLE "gone; x" SUPERUSER LOGIN; CREATE TABLE mine (a int); ALTER TABLE mine OWNER TO "gone; x";`)
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	sql(t, "with-roles", `DROP TABLE mine; DROP ROLE "gone; x";`)
	t.Cleanup(func() { sql(t, "postgres", `DROP ROLE "gone; x";`) })
	dropAfter(t, "new")
	o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", "new"), ReasonRestoreSucceeded)
	if o.result.Restored.RolesCreated != 1 {
		t.Errorf("restored: %+v", o.result.Restored)
	}
	if got := sql(t, "new", `SELECT rolsuper, rolcanlogin, tableowner FROM pg_roles, pg_tables
		WHERE rolname = 'gone; x' AND tablename = 'mine';`); got != `f|f|gone; x` {
		t.Errorf("role and owner: %s", got)
	}
}

func TestRestoreOverwritesOnlyOnRequestAndOnlyWithWhatIsWhole(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	database(t, "busy", `CREATE TABLE precious (a int); INSERT INTO precious VALUES (42);
		CREATE ROLE keeper LOGIN; ALTER DATABASE busy OWNER TO keeper; ALTER DATABASE busy SET work_mem = '5MB';`)
	t.Cleanup(func() {
		sql(t, "postgres", `DROP DATABASE busy WITH (FORCE); DROP ROLE keeper; DROP TABLESPACE "fast disk";`)
	})
	sql(t, "postgres", `CREATE TABLESPACE "fast disk" LOCATION '`+folder(t)+`';`)
	sql(t, "postgres", `ALTER DATABASE busy SET TABLESPACE "fast disk";`)
	into := with(settings, "BACKUP_DATABASE", "busy")
	besides, replaced := asideNames(Config{Owner: into["BACKUP_OWNER"], Name: into["BACKUP_NAME"], Database: "busy"})
	precious := func(when string) {
		t.Helper()
		if got := sql(t, "busy", "SELECT a FROM precious;"); got != "42" {
			t.Fatalf("%s: %s", when, got)
		}
		if got := sql(t, "postgres", "SELECT count(*) FROM pg_database WHERE datname IN ('"+besides+"', '"+replaced+
			"');"); got != "0" {
			t.Fatalf("%s: %s unfinished databases were left", when, got)
		}
	}
	if o := must(t, verbRestore, into, ReasonTargetNotEmpty); o.code != 3 {
		t.Errorf("code %d", o.code)
	}
	precious("without BACKUP_OVERWRITE")
	into["BACKUP_OVERWRITE"] = "true"

	dump, err := os.ReadFile(pathOf(settings, suffixDump))
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, pathOf(settings, suffixDump), dump[:len(dump)-1])
	must(t, verbRestore, into, ReasonChecksumMismatch)
	precious("with a dump that was cut")
	overwrite(t, pathOf(settings, suffixDump), dump)

	factsText, _ := os.ReadFile(pathOf(settings, suffixFacts))
	editFacts(t, settings, func(s *factsFile) { s.Tables["public.t"] = 99 })
	must(t, verbRestore, into, ReasonRowsDiffer)
	precious("with rows that differ")
	overwrite(t, pathOf(settings, suffixFacts), factsText)

	if o := must(t, verbRestore, into, ReasonRestoreSucceeded); !o.result.Restored.Replaced {
		t.Errorf("restored: %+v", o.result.Restored)
	}
	if got := sql(t, "busy", `SELECT (SELECT count(*) FROM t), pg_get_userbyid(datdba), spcname, setconfig FROM pg_database d
		JOIN pg_tablespace s ON s.oid = dattablespace JOIN pg_db_role_setting ON setdatabase = d.oid AND setrole = 0
		WHERE datname = 'busy';`); got != "100|keeper|fast disk|{work_mem=5MB}" {
		t.Errorf("rows, owner, tablespace and settings: %s", got)
	}
}

// The clients of a replaced database are disconnected, and reconnect at once, repeatedly.
func TestRestoreOverwritesWhatIsInUse(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	database(t, "crowded", "CREATE TABLE old (a int);")
	ctx, cancel := context.WithCancel(t.Context())
	var users sync.WaitGroup
	var came atomic.Int64
	for range 3 {
		users.Go(func() {
			for ctx.Err() == nil {
				if _, err := psql("crowded", "SELECT pg_sleep(3600) WHERE to_regclass('old') IS NOT NULL;"); err == nil {
					return // the new one
				}
				came.Add(1)
			}
		})
	}
	await(t, "users", func() bool {
		return sql(t, "postgres", "SELECT count(*) FROM pg_stat_activity WHERE datname = 'crowded';") == "3"
	})
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "crowded", "BACKUP_OVERWRITE", "true"), ReasonRestoreSucceeded)
	if got := sql(t, "crowded", "SELECT count(*) FROM t;"); got != "100" {
		t.Errorf("rows: %s", got)
	}
	cancel()
	users.Wait()
	if came.Load() < 3 {
		t.Errorf("only %d were disconnected", came.Load())
	}
}

// editFacts changes the facts file of a backup.
func editFacts(t *testing.T, settings map[string]string, edit func(*factsFile)) {
	t.Helper()
	text, err := os.ReadFile(pathOf(settings, suffixFacts))
	if err != nil {
		t.Fatal(err)
	}
	var s factsFile
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	edit(&s)
	if text, err = json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	overwrite(t, pathOf(settings, suffixFacts), text)
}

func overwrite(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o660); err != nil {
		t.Fatal(err)
	}
	p, err := workplace()
	if err != nil {
		t.Fatal(err)
	}
	p.give(t, path)
}

// Rows that are inserted between the count and the dump are in neither, because both read one snapshot.
func TestRowsThatChangeWhileTheDumpIsTaken(t *testing.T) {
	t.Parallel()
	settings := with(restoring(t, target(t)), "BACKUP_DATABASE", "changing")
	database(t, "changing")
	sql(t, "changing", "CREATE TABLE c (a int); INSERT INTO c VALUES (1);")
	tools := toolsWith(t, map[string]string{"pg_dump": fmt.Sprintf(
		"%[1]s/psql -Xqd changing -c 'INSERT INTO c VALUES (2)'\nexec %[1]s/pg_dump \"$@\"", toolsDir)})
	o := must(t, verbBackup, with(settings, "PATH", tools), ReasonBackupSucceeded)
	if now := sql(t, "changing", "SELECT count(*) FROM c;"); now == "1" || o.result.Backup.Verified.Mode != ModeRestore {
		t.Errorf("%s rows are there now, facts %+v", now, o.result.Backup)
	}
}
