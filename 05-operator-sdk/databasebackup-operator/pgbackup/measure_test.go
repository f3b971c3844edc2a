//go:build linux

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A database has ten daily backups, while 1 % of its rows change each day. restic stores a part of the data again when it
// has one changed row, so it matters where these rows are.
func TestTenDailyBackups(t *testing.T) {
	for _, test := range []struct {
		rows, changed string
		limit         int64 // percent of the dumps' size
	}{
		{"the newest rows change", "id > 99000", 20},
		{"rows in all parts of the table change", "id % 100 = $DAY", 50},
	} {
		t.Run(test.rows, func(t *testing.T) {
			settings := with(target(t), "BACKUP_DATABASE", "shop")
			database(t, "shop", `CREATE TABLE orders AS SELECT id, 'customer ' || id % 1000 AS customer, 'new' AS state,
				md5(id::text) || md5((-id)::text) || md5((2 * id)::text) AS reference, now() AS ordered FROM generate_series(1, 100000) id;`)
			var plain int64
			var first, last outcome
			for day := range 10 {
				sql(t, "shop", "UPDATE orders SET state = 'state "+fmt.Sprint(day)+"' WHERE "+
					os.Expand(test.changed, func(string) string { return fmt.Sprint(day) }))
				last = must(t, verbBackup, earlier(settings, 24*(10-day)), ReasonBackupSucceeded)
				plain += last.result.Backup.Size
				if day == 0 {
					first = last
				}
			}
			dump, start := settings["TMPDIR"]+"/plain", time.Now()
			pgDump(t, "--compress=0", "--file="+dump)
			plainTime := time.Since(start).Seconds()
			pgDump(t, "--file="+dump+".gz")
			dropAfter(t, "copy")
			restore := must(t, verbRestore, with(earlier(settings, 24), "BACKUP_DATABASE", "copy"), ReasonRestoreSucceeded)
			const contents = "SELECT count(*), md5(string_agg(o::text, '' ORDER BY id)) FROM orders o"
			if sql(t, "copy", contents) != sql(t, "shop", contents) {
				t.Error("the restored rows differ")
			}
			stored, compressed := size(t, settings["RESTIC_REPOSITORY"]), 10*size(t, dump+".gz")
			t.Logf("%s: of 100 bytes of ten plain dumps, ten compressed dumps have %d, and restic stores %d",
				test.rows, 100*compressed/plain, 100*stored/plain)
			t.Logf("%s: pg_dump takes 1, the first backup %.1f, the tenth %.1f, a restore %.1f", test.rows,
				first.result.Seconds/plainTime, last.result.Seconds/plainTime, restore.result.Seconds/plainTime)
			if 100*stored/plain > test.limit {
				t.Errorf("restic stores %d bytes of %d", stored, plain)
			}
		})
	}
}

// pgDump runs pg_dump as people without restic do.
func pgDump(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("pg_dump", append(args, "--format=custom", "--dbname=shop")...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "PGHOST=" + serverDir, "PGPORT=" + serverPort, "PGUSER=" + superuser,
		"PGPASSWORD=" + password}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// size is the size of the files below a path.
func size(t *testing.T, path string) (total int64) {
	t.Helper()
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			info, infoErr := entry.Info()
			if infoErr != nil {
				return infoErr
			}
			total += info.Size()
		}
		return err
	})
	noError(t, err)
	return total
}
