// Command myweb-controller turns MyWebs into running websites.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"example.com/operator-workshop/03-client-go-controller/internal/operator"
)

func main() {
	var o operator.Options
	o.Bind(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := operator.Run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "myweb-controller:", err)
		os.Exit(1)
	}
}
