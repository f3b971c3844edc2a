//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// locale makes a locale for the server of the tests. The scratch server does not have it.
func locale(t *testing.T, name, charset string) {
	t.Helper()
	p, _ := workplace()
	if exec.Command("localedef", "-i", name, "-f", charset, filepath.Join(p.dir, name+"."+charset)).Run() != nil {
		t.Skip("localedef and the sources of locales are not installed")
	}
}

// Names and rows keep their bytes, and the database its encoding and locale.
func TestEncodingsAndLocales(t *testing.T) {
	for name, test := range map[string]struct{ options, bytes string }{
		"no encoding":          {"ENCODING 'SQL_ASCII' LOCALE 'C'", "fcff80"},
		"LATIN1 with a locale": {"ENCODING 'LATIN1' LOCALE 'de_DE.ISO-8859-1'", "fcff"},
		"UTF8 with a locale":   {"ENCODING 'UTF8' LOCALE 'de_DE.UTF-8'", "c3bcc3bf"},
		"a locale of ICU":      {"ENCODING 'UTF8' LOCALE 'C' LOCALE_PROVIDER icu ICU_LOCALE 'de-DE'", "c3bcc3bf"},
	} {
		t.Run(name, func(t *testing.T) {
			settings := target(t)
			locale(t, "de_DE", "UTF-8")
			locale(t, "de_DE", "ISO-8859-1")
			sql(t, "postgres", "CREATE DATABASE umlauts TEMPLATE template0 "+test.options)
			dropAfter(t, "umlauts")
			sql(t, "umlauts", `CREATE TABLE "größe" (b text); INSERT INTO "größe" VALUES ('ÜÄ'), ('Zoe');
				INSERT INTO "größe" VALUES (convert_from('\x`+test.bytes+`', getdatabaseencoding()));`)
			const contents = `SELECT encoding, datcollate, (SELECT string_agg(encode(convert_to(b, getdatabaseencoding()), 'hex'), ','
				ORDER BY b) FROM "größe") FROM pg_database WHERE datname = current_database()`
			before := sql(t, "umlauts", contents)
			restored(t, with(settings, "BACKUP_DATABASE", "umlauts", "BACKUP_QUERY", `SELECT count(*) = 3 FROM "größe"`))
			if after := sql(t, "copy", contents); after != before || !strings.Contains(after, test.bytes) {
				t.Errorf("before: %s\nafter:  %s", before, after)
			}
		})
	}
}

// A standby is a source for backups. A restore into it is refused, because it is read only.
func TestAStandbyAsTheSource(t *testing.T) {
	settings := target(t)
	dir, port := folder(t), port(t)
	var out, errs strings.Builder
	base := process(t, &out, &errs, []string{"PGPASSWORD=" + password}, "pg_basebackup", "--pgdata="+dir+"/data", "--write-recovery-conf",
		"--checkpoint=fast", "--no-sync", "--host="+serverDir, "--port="+serverPort, "--username="+superuser)
	if err := base.Wait(); err != nil {
		t.Fatal(err, errs.String())
	}
	p, _ := workplace()
	process(t, &out, &errs, []string{"LC_ALL=C", "LOCPATH=" + p.dir}, toolsDir+"/postgres", "-D", dir+"/data", "-k", dir, "-p", port,
		"-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=16MB")
	standby := with(settings, "PGHOST", dir, "PGPORT", port)
	must(t, verbBackup, standby, ReasonBackupSucceeded)
	must(t, verbRestore, with(standby, "BACKUP_DATABASE", "copy"), ReasonPermissionDenied)
	dropAfter(t, "copy")
	must(t, verbRestore, with(settings, "BACKUP_DATABASE", "copy"), ReasonRestoreSucceeded)
	if rows := sql(t, "copy", "SELECT count(*), sum(a) FROM t"); rows != "100|5050" {
		t.Error(rows)
	}
}

// A backup needs programs that are as new as the server, and a restore a server that is as new as the programs.
func TestVersionsThatDoNotFit(t *testing.T) {
	settings := target(t)
	image := func(version string) map[string]string { return with(settings, "PG_MAJOR", version) }
	must(t, verbBackup, image("9"), ReasonVersionMismatch)
	if o := must(t, verbBackup, image("99"), ReasonBackupSucceeded); !strings.Contains(o.result.Warning, "99") {
		t.Errorf("%+v", o.result)
	}
	must(t, verbRestore, with(image("99"), "BACKUP_DATABASE", "copy"), ReasonVersionMismatch)
}
