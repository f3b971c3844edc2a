// Command unbundle is the first half of `make from-bundle`: it checks and unpacks a bundle, and prints the folder of
// its modules, for GOPROXY. The second half is built from those modules; unbundle needs only Go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"example.com/operator-workshop/scripts/internal/unbundle"
)

func main() {
	root := flag.String("root", "", "the checkout")
	file := flag.String("file", "", "the bundle")
	code := flag.String("code", "", "the code on the screen of the person who made it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	dir, err := unbundle.Open(ctx, *root, *file, *code)
	switch {
	case errors.Is(err, context.Canceled):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	if *code == unbundle.NoCode {
		fmt.Fprintln(os.Stderr, "note: no code was compared for this bundle; its programs run as your user")
	}
	fmt.Println(&url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(dir, "modules"))})
}
