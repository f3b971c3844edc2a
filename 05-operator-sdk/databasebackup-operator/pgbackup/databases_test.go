//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// germanLocale creates the locale de_DE.UTF-8 in a folder. Only the server of the tests uses it: no scratch server has
// this locale. It returns the variable that names the folder, or nothing where localedef or its sources are missing.
func germanLocale(dir string) []string {
	folder := filepath.Join(dir, "locales")
	if os.Mkdir(folder, 0o755) != nil ||
		exec.Command("localedef", "-i", "de_DE", "-f", "UTF-8", filepath.Join(folder, "de_DE.UTF-8")).Run() != nil {
		return nil
	}
	return []string{"LOCPATH=" + folder}
}

func needGermanLocale(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(filepath.Dir(serverDir), "locales", "de_DE.UTF-8", "LC_COLLATE")); err != nil {
		t.Skip("the locale de_DE.UTF-8 cannot be made (Debian: apt-get install locales)")
	}
}

// slugs creates tables, and objects that call the function slug. At the end slug calls another function without its
// schema. PostgreSQL does not find that function with the search_path of pg_dump. PostgreSQL 17 creates indexes with
// such a search_path, too.
func slugs(objects string) string {
	const slug = `CREATE OR REPLACE FUNCTION public.slug(t text) RETURNS text LANGUAGE sql IMMUTABLE AS `
	return slugTables + slug + `$$ SELECT public.plain(t) || '-' $$;` + objects + slug + `$$ SELECT plain(t) || '-' $$;`
}

const slugTables = `
CREATE FUNCTION public.plain(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT lower(t) $$;
CREATE TABLE public.easy (id int);
INSERT INTO public.easy SELECT generate_series(1, 7);
CREATE TABLE public.items (id int PRIMARY KEY, title text);
INSERT INTO public.items SELECT g, 'Item ' || g FROM generate_series(1, 50) g;
`

// pg_dump reports no error for any of these databases, so a backup of each succeeds, in each mode.
func TestCountingNeverCostsTheBackup(t *testing.T) {
	t.Parallel()
	settings := target(t)
	const fails = "function plain(text) does not exist"
	for name, test := range map[string]struct {
		schema string
		fails  bool // the rows of items cannot be counted
	}{
		"an index":              {"CREATE INDEX i ON public.items (public.slug(title));", true},
		"a partial index":       {"CREATE INDEX i ON public.items (id) WHERE public.slug(title) > 'a';", true},
		"statistics":            {"CREATE STATISTICS s ON (public.slug(title)), id FROM public.items;", true},
		"a view":                {"CREATE VIEW v AS SELECT public.slug(title) FROM public.items;", false},
		"a materialized view":   {"CREATE MATERIALIZED VIEW v AS SELECT public.slug(title) FROM public.items;", false},
		"a policy":              {"CREATE POLICY p ON public.items USING (public.slug(title) > 'a');", false},
		"a generated column":    {"ALTER TABLE public.items ADD s text GENERATED ALWAYS AS (public.slug(title)) STORED;", false},
		"a constraint":          {"ALTER TABLE public.items ADD CHECK (public.slug(title) > 'a');", false},
		"a table that is empty": {"DELETE FROM public.items; CREATE INDEX i ON public.items (public.slug(title));", true},
	} {
		t.Run(name, func(t *testing.T) {
			base := "slugs of " + name
			database(t, base, slugs(test.schema))
			for _, mode := range []Mode{ModeNone, ModeArchive} {
				settings := with(settings, "BACKUP_DATABASE", base, "BACKUP_VERIFY", string(mode),
					"BACKUP_NAME", strings.ToLower(string(mode))+"-"+strings.ReplaceAll(name, " ", "-"))
				found := must(t, verbBackup, settings, ReasonBackupSucceeded).result
				if found.Backup.Tables != 2 {
					t.Errorf("%s: %+v", mode, found.Backup)
				}
				if mode == ModeNone {
					continue
				}
				var want []string
				if test.fails {
					want = []string{"public.items: " + fails}
				}
				if diff := cmp.Diff(want, found.Backup.NotCounted); diff != "" ||
					strings.Contains(found.Message, fails) != test.fails || found.Backup.Rows < 7 {
					t.Errorf("%s, message %s, not counted (-want +got):\n%s", mode, found.Message, diff)
				}
			}
		})
	}
}

// The dump of such a database can be read to its end. A server that refuses the index is not evidence against the dump.
func TestADumpThatTheScratchServerRefusesIsNotBroken(t *testing.T) {
	t.Parallel()
	settings := with(restoring(t, target(t)), "BACKUP_DATABASE", "slugs")
	database(t, "slugs", slugs("CREATE INDEX i ON public.items (public.slug(title));"))
	o := must(t, verbBackup, settings, ReasonScratchRestoreFailed)
	if b := o.result.Backup; b.State != StateUnverifiable || b.Verified.Mode != ModeArchive ||
		!strings.Contains(o.result.Message, "function plain(text) does not exist") {
		t.Errorf("%s: %+v", o.result.Message, b)
	}
	sql(t, "slugs", "DROP INDEX i; CREATE STATISTICS s ON (public.slug(title)), id FROM public.items;")
	must(t, verbBackup, with(settings, "BACKUP_NAME", "orders-29012346"), ReasonBackupSucceeded)
}

// The server has a locale that the scratch server lacks. Backups could not be verified for that reason. Once a later
// backup can be verified, the limits of retention apply to those backups, and they replace no good backup.
func TestAFaultOfTheScratchServerCostsNoBackup(t *testing.T) {
	t.Parallel()
	settings := target(t)
	needGermanLocale(t)
	settings = with(restoring(t, settings), "BACKUP_DATABASE", "german", "BACKUP_KEEP_LAST", "3")
	database(t, "german")
	want := map[string]State{}
	run := func(name string, reason Reason, state State) {
		t.Helper()
		want[name] = state
		o := must(t, verbBackup, with(settings, "BACKUP_NAME", name), reason)
		if diff := cmp.Diff(want, states(t, settings)); diff != "" {
			t.Fatalf("after %s: %s; states (-want +got):\n%s", name, o.result.Message, diff)
		}
	}
	run("good-1", ReasonBackupSucceeded, StateGood)
	run("good-2", ReasonBackupSucceeded, StateGood)
	sql(t, "german", `CREATE COLLATION public.phone (locale = 'de_DE.UTF-8');
		CREATE TABLE public.people (n text COLLATE public.phone); INSERT INTO public.people VALUES ('Ä'), ('z');`)
	run("unsure-1", ReasonScratchRestoreFailed, StateUnverifiable)
	run("unsure-2", ReasonScratchRestoreFailed, StateUnverifiable)
	run("unsure-3", ReasonScratchRestoreFailed, StateUnverifiable)
	sql(t, "german", "DROP TABLE public.people; DROP COLLATION public.phone;")
	run("good-3", ReasonBackupSucceeded, StateGood)
	must(t, verbBackup, with(settings, "BACKUP_NAME", "unsure-3"), ReasonScratchRestoreFailed) // it is not dumped again
	if diff := cmp.Diff(want, states(t, settings)); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
}

// A restore returns bytes that are not UTF-8 unchanged, in rows and in names. The test runs alone, because pg_dumpall
// of another database fails while a role has such a name.
func TestEncodings(t *testing.T) {
	settings := restoring(t, target(t))
	for encoding, test := range map[string]struct{ schema, query, content string }{
		"SQL_ASCII": {
			`SET client_encoding = 'SQL_ASCII'; CREATE TABLE t (a text);
				INSERT INTO t VALUES (E'na\xefve'), (E'\xfe\xff'), ('plain');
				DO $$ BEGIN EXECUTE E'CREATE TABLE "na\xefve" (a int)'; EXECUTE E'CREATE TABLE "na\xeeve" (a int)'; END $$;`,
			`SELECT a FROM t`, "6e61ef7665 706c61696e feff"},
		"LATIN1": {
			`CREATE TABLE t (a text); INSERT INTO t VALUES ('naïve'), ('plain'); CREATE ROLE "Größe" LOGIN;
				CREATE TABLE "Größe" (a int); ALTER TABLE "Größe" OWNER TO "Größe";`,
			`SELECT bool_or(a = 'naïve') FROM t`, "6e61ef7665 706c61696e"},
		// PostgreSQL cannot convert UTF-8 to or from this encoding.
		"MULE_INTERNAL": {`CREATE TABLE t (a text); INSERT INTO t VALUES ('plain');`, `SELECT a FROM t`, "706c61696e"},
	} {
		t.Run(encoding, func(t *testing.T) {
			base, copied := "in "+encoding, "copy in "+encoding
			for _, name := range []string{base, copied} {
				sql(t, "postgres", fmt.Sprintf(
					"CREATE DATABASE %q ENCODING '%s' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0;", name, encoding))
				dropAfter(t, name)
			}
			psqlIn(t, base, test.schema)
			if encoding == "LATIN1" { // the role has its name only in databases of this encoding
				t.Cleanup(func() {
					psqlIn(t, copied, `DROP OWNED BY "Größe";`)
					psqlIn(t, base, `DROP OWNED BY "Größe"; DROP ROLE "Größe";`)
				})
			}
			settings := with(settings, "BACKUP_DATABASE", base, "BACKUP_QUERY", test.query,
				"BACKUP_NAME", strings.ToLower(strings.ReplaceAll(encoding, "_", "-")))
			o := must(t, verbBackup, settings, ReasonBackupSucceeded)
			if o.result.Backup.State != StateGood || o.result.Backup.NotCounted != nil {
				t.Errorf("%+v", o.result.Backup)
			}
			must(t, verbRestore, with(settings, "BACKUP_DATABASE", copied), ReasonRestoreSucceeded)
			const bytes = `SELECT string_agg(encode(convert_to(a, getdatabaseencoding()), 'hex'), ' ' ORDER BY a) FROM t;`
			if got := psqlIn(t, copied, bytes); got != test.content {
				t.Errorf("restored: %s", got)
			}
		})
	}
}

// psqlIn runs statements without a conversion by the client, unless the database has an encoding that needs it.
func psqlIn(t *testing.T, database, statements string) string {
	t.Helper()
	s := asSuperuser()
	if strings.HasSuffix(database, "LATIN1") {
		s = s.withEncoding("UTF8")
	}
	out, err := s.statements(database, statements)
	if err != nil {
		t.Fatalf("%s: %v", database, err)
	}
	return out
}

// A hot standby refuses to read unlogged tables, and pg_dump leaves their rows out there.
func TestBackupOfAHotStandby(t *testing.T) {
	t.Parallel()
	settings := target(t)
	database(t, "replicated", `CREATE TABLE kept (a int); INSERT INTO kept SELECT generate_series(1, 9);
		CREATE UNLOGGED TABLE cache (a int); INSERT INTO cache VALUES (1);`)
	port := standby(t)
	settings = with(restoring(t, settings), "PGPORT", port, "BACKUP_DATABASE", "replicated")
	o := must(t, verbBackup, settings, ReasonBackupSucceeded)
	b := o.result.Backup
	if b.State != StateGood || b.Verified.Mode != ModeRestore || b.Tables != 2 || b.Rows != 9 || len(b.NotCounted) != 1 ||
		!strings.HasPrefix(b.NotCounted[0], "public.cache: ") {
		t.Errorf("%s: %+v", o.result.Message, b)
	}
}

// standby starts a hot standby of the server of the tests, and returns its port.
func standby(t *testing.T) string {
	t.Helper()
	p, _ := workplace()
	data := filepath.Join(folder(t), "data")
	environ := []string{"LC_ALL=C", "PGHOST=" + serverDir, "PGPORT=" + serverPort, "PGUSER=" + superuser,
		"PGPASSWORD=" + password}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(toolsDir, name), args...)
		cmd.Env, cmd.Dir = environ, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.credential, Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	out, err := command("pg_basebackup", "--pgdata="+data, "--checkpoint=fast", "--wal-method=stream",
		"--write-recovery-conf", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	postgres := command("postgres", "-D", data, "-k", serverDir, "-p", port, "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "shared_buffers=16MB")
	postgres.Stderr = &errs
	if err := postgres.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = postgres.Process.Signal(syscall.SIGQUIT)
		_ = postgres.Wait()
	})
	s := server{environ: append(slices.Clone(environ), "PATH="+os.Getenv("PATH"), "PGPORT="+port)}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		answer, err := s.query(t.Context(), "replicated", "SELECT pg_is_in_recovery();")
		if err == nil && answer == "t" {
			return port
		}
		if time.Now().After(deadline) {
			t.Fatalf("the standby does not answer: %v", err)
		}
	}
}

// A table that was truncated after the snapshot shows no rows, in the count or in the dump. The two may disagree, so
// the rows are not compared.
func TestATableThatIsTruncatedAfterTheSnapshotIsNotCounted(t *testing.T) {
	t.Parallel()
	settings := with(restoring(t, target(t)), "BACKUP_DATABASE", "truncated")
	database(t, "truncated", "CREATE TABLE c (a int); INSERT INTO c VALUES (1); CREATE TABLE held (a int);")
	tools := toolsWith(t, map[string]string{"pg_dump": fmt.Sprintf(
		"%[1]s/pg_dump \"$@\" || exit\n[ $1 = --version ] || %[1]s/psql -Xqd truncated -c 'TRUNCATE c'", toolsDir)})
	o := must(t, verbBackup, with(settings, "PATH", tools), ReasonBackupSucceeded)
	want := []string{"public.c: it was truncated, rewritten or dropped after the snapshot"}
	if diff := cmp.Diff(want, o.result.Backup.NotCounted); diff != "" || o.result.Backup.State != StateGood {
		t.Errorf("state %s, not counted (-want +got):\n%s", o.result.Backup.State, diff)
	}
}
