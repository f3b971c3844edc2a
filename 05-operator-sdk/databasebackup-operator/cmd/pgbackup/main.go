// Command pgbackup takes, verifies, prunes and restores backups of PostgreSQL databases inside the Jobs of
// the operator. Package pgbackup tells its settings and its results.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/example/databasebackup-operator/internal/pgbackup"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := pgbackup.Main(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
