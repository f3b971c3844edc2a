//go:build linux

package main

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// lostSchema gives the database $1 all the properties that an archive has in addition to the content.
const lostSchema = `
CREATE ROLE "$1 owner" LOGIN; CREATE ROLE "DATABASE $1"; CREATE ROLE "$1 gone";
ALTER DATABASE $1 OWNER TO "$1 owner";
ALTER DATABASE $1 CONNECTION LIMIT 7;
COMMENT ON DATABASE $1 IS E'it''s; -- \\ "DATABASE"\n\\! touch x';
REVOKE CONNECT ON DATABASE $1 FROM PUBLIC;
GRANT CONNECT ON DATABASE $1 TO "DATABASE $1" WITH GRANT OPTION;
SET SESSION AUTHORIZATION "DATABASE $1";
GRANT CONNECT ON DATABASE $1 TO "$1 gone";
RESET SESSION AUTHORIZATION;
REVOKE TEMPORARY ON DATABASE $1 FROM "$1 owner";
ALTER DATABASE $1 SET search_path = "$user", 'Odd "One"; DROP', public, '';
ALTER ROLE "$1 owner" IN DATABASE $1 SET search_path = '';
ALTER DATABASE $1 SET my.text = E'é it''s; \\ "so"\n\\! x';
ALTER DATABASE $1 SET datestyle = 'German, DMY';
ALTER ROLE "DATABASE $1" IN DATABASE $1 SET work_mem = '5MB';
`

const propertiesQuery = `
SELECT pg_get_userbyid(datdba), datconnlimit, shobj_description(oid, 'pg_database')
  FROM pg_database WHERE datname = '$1';
SELECT pg_get_userbyid(grantor), CASE grantee WHEN 0 THEN 'PUBLIC' ELSE pg_get_userbyid(grantee) END, privilege_type,
  is_grantable FROM pg_database, aclexplode(coalesce(datacl, acldefault('d', datdba)))
  WHERE datname = '$1' ORDER BY 1, 2, 3;
SELECT coalesce(r.rolname, 'all'), c FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
  LEFT JOIN pg_roles r ON r.oid = setrole, unnest(setconfig) c
  WHERE datname = '$1' AND c !~ '^application_name=' ORDER BY 1, 2;
`

// lost creates a database with properties, takes a backup, and returns the settings and a function that shows the
// properties of a database.
func lost(t *testing.T, name, encoding string) (settings map[string]string, show func(database string) string) {
	t.Helper()
	settings = with(target(t), "BACKUP_DATABASE", name, "BACKUP_RESTORE_UID", "restore-1")
	sql(t, "postgres", "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING '"+encoding+"' LC_COLLATE 'C' LC_CTYPE 'C';")
	t.Cleanup(func() {
		sql(t, "postgres", strings.ReplaceAll(`DROP DATABASE IF EXISTS $1 WITH (FORCE);
DROP ROLE IF EXISTS "$1 owner"; DROP ROLE IF EXISTS "DATABASE $1"; DROP ROLE IF EXISTS "$1 gone";`, "$1", name))
	})
	sql(t, name, "CREATE TABLE t AS SELECT generate_series(1, 100) AS a;")
	sql(t, name, strings.ReplaceAll(lostSchema, "$1", name))
	must(t, verbBackup, settings, ReasonBackupSucceeded)
	show = func(database string) string {
		return sql(t, "postgres", strings.ReplaceAll(propertiesQuery, "$1", database))
	}
	return settings, show
}

// A restore gives a lost database its properties back, also under another name, and also on a new server with an empty
// or a filled database of that name.
func TestRestoreOfALostDatabase(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ into, before, inside, encoding string }{
		"lost_gone":   {"", "", "", "UTF8"}, // without BACKUP_DATABASE the facts name it
		"lost_latin":  {"lost_latin", "", "", "LATIN1"},
		"lost_other":  {`Lost "other"`, "", "", "UTF8"},
		"lost_empty":  {"lost_empty", "CREATE DATABASE lost_empty;", "", "UTF8"},
		"lost_filled": {"lost_filled", "CREATE DATABASE lost_filled;", "CREATE TABLE seed (a int);", "UTF8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings, show := lost(t, name, test.encoding)
			before := show(name)
			if strings.Count(before, "\n") < 12 {
				t.Fatalf("too little to compare: %s", before)
			}
			sql(t, "postgres", "DROP DATABASE "+name+" WITH (FORCE);\n"+test.before)
			if test.inside != "" {
				sql(t, name, test.inside)
			}
			into := cmp.Or(test.into, name)
			dropAfter(t, into)
			o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", test.into, "BACKUP_OVERWRITE", "true"),
				ReasonRestoreSucceeded)
			if diff := gocmp.Diff(before, show(into)); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
			if o.result.Warning != "" || o.result.Restored.Database != into {
				t.Errorf("%+v, warning: %s", o.result.Restored, o.result.Warning)
			}
		})
	}
}

// The properties that a restore of the wrong backup gave are not those of the database, whether that backup has default
// ones or others: the next restore gives those of the right backup. Properties that a user gave since then stay.
func TestASecondRestoreHasThePropertiesOfItsBackup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ first, since string }{
		"twice_default": {"", ""},
		"twice_other": {`ALTER DATABASE $1 OWNER TO "$1 guest"; ALTER DATABASE $1 SET work_mem = '5MB';
ALTER ROLE boss IN DATABASE $1 SET lock_timeout = '9s'; GRANT CREATE ON DATABASE $1 TO boss;`, ""},
		"twice_since": {"", `GRANT CREATE ON DATABASE $1 TO "$1 guest";`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := with(target(t), "BACKUP_DATABASE", name, "BACKUP_RESTORE_UID", "restore-1", "BACKUP_NAME", "wrong")
			run := func(statements string) { sql(t, "postgres", strings.ReplaceAll(statements, "$1", name)) }
			run(`CREATE DATABASE $1; CREATE ROLE "$1 guest";`)
			t.Cleanup(func() { run("DROP DATABASE IF EXISTS $1 WITH (FORCE);\nDROP ROLE \"$1 guest\";") })
			run(test.first)
			must(t, verbBackup, wrong, ReasonBackupSucceeded)
			run(`ALTER DATABASE $1 OWNER TO boss; ALTER DATABASE $1 SET work_mem = '7MB';
REVOKE CONNECT ON DATABASE $1 FROM PUBLIC; GRANT CONNECT ON DATABASE $1 TO "$1 guest";`)
			right := with(wrong, "BACKUP_NAME", "right", "BACKUP_RESTORE_UID", "restore-2", "BACKUP_OVERWRITE", "true")
			must(t, verbBackup, right, ReasonBackupSucceeded)
			show := func() string { return sql(t, "postgres", strings.ReplaceAll(propertiesQuery, "$1", name)) }
			want := show()
			run("DROP DATABASE $1 WITH (FORCE);")
			must(t, verbRestore, wrong, ReasonRestoreSucceeded)
			if test.since != "" {
				run(test.since)
				want = show()
			}
			o := must(t, verbRestore, right, ReasonRestoreSucceeded)
			if diff := gocmp.Diff(want, show()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", o.result.Message, diff)
			}
		})
	}
}

// The result lists the properties that cannot be restored because a role is gone. The other properties are restored.
func TestRestoreNamesPropertiesThatItCannotRestore(t *testing.T) {
	t.Parallel()
	settings, show := lost(t, "lost_roles", "UTF8")
	before := show("lost_roles")
	sql(t, "postgres", `DROP DATABASE lost_roles WITH (FORCE); DROP ROLE "lost_roles owner"; DROP ROLE "lost_roles gone";`)
	o := must(t, verbRestore, settings, ReasonRestoreSucceeded)
	for _, want := range []string{`role "lost_roles owner" does not exist`, `role "lost_roles gone" does not exist`,
		`ALTER DATABASE "lost_roles" OWNER TO`} {
		if !strings.Contains(o.result.Warning, want) {
			t.Errorf("%q is not in the warning: %s", want, o.result.Warning)
		}
	}
	after := show("lost_roles")
	for line := range strings.Lines(before) {
		ofMissing := strings.Contains(line, "owner") || strings.Contains(line, "gone")
		if !ofMissing && !strings.Contains(after, strings.TrimSpace(line)) {
			t.Errorf("%s is missing after the restore:\n%s", line, after)
		}
	}
	if strings.Contains(after, "PUBLIC|CONNECT") {
		t.Errorf("the public may connect:\n%s", after)
	}
}

// An empty database that was prepared keeps its properties and its encoding.
func TestRestoreKeepsAPreparedDatabase(t *testing.T) {
	t.Parallel()
	settings, show := lost(t, "lost_prepared", "UTF8")
	sql(t, "postgres", "DROP DATABASE lost_prepared WITH (FORCE);")
	sql(t, "postgres", "CREATE DATABASE lost_prepared TEMPLATE template0 ENCODING 'LATIN1';")
	sql(t, "postgres", "REVOKE CONNECT ON DATABASE lost_prepared FROM PUBLIC;")
	before := show("lost_prepared")
	must(t, verbRestore, settings, ReasonRestoreSucceeded)
	if diff := gocmp.Diff(before, show("lost_prepared")); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	if got := sql(t, "lost_prepared", "SELECT getdatabaseencoding();"); got != "LATIN1" {
		t.Errorf("encoding: %s", got)
	}
}

// The facts of an earlier version have no properties. The content is restored, and a warning reports the rest.
func TestRestoreOfABackupOfAnEarlierVersion(t *testing.T) {
	t.Parallel()
	settings := backedUp(t)
	editFacts(t, settings, func(s *factsFile) { s.Properties = nil })
	dropAfter(t, "earlier")
	o := must(t, verbRestore, with(settings, "BACKUP_DATABASE", "earlier"), ReasonRestoreSucceeded)
	if got := databaseState(t, "earlier"); got != "restored" || !strings.Contains(o.result.Warning, "pg_restore --create") {
		t.Errorf("%s, warning: %s", got, o.result.Warning)
	}
}
