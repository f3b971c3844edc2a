package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	syscall.Umask(0o007) // the group of the volume may read and prune, others may not even look
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
