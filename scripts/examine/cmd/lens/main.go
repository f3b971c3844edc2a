// Command lens takes the place of the local cluster's API server for all clients, and records the traffic: the events
// that each program receives, and the requests that it sends. SIGUSR1 makes it withhold events, and SIGUSR2 ends that.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/proxy"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	address := flag.String("address", "", "where to listen")
	server := flag.String("server", "", "the URL of the API server")
	pki := flag.String("pki", "", "the folder of the cluster's certificates")
	path := flag.String("ledger", "", "the file of the records")
	flag.Parse()
	if err := run(ctx, *address, *server, *pki, *path); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, server, pki, path string) error {
	file := func(name string) string { return filepath.Join(pki, name) }
	certificate, err := tls.LoadX509KeyPair(file("loopback.crt"), file("loopback.key"))
	if err != nil {
		return err
	}
	authority, err := os.ReadFile(file("ca.crt"))
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority)
	records, err := loop.Create(path, loop.Limit)
	if err != nil {
		return err
	}
	l := ledger.NewBounded()
	l.Copy(records.Write)
	p, err := proxy.StartFront(l, proxy.Front{Address: address, Certificate: certificate, Clients: clients,
		Target: server, Authority: file("ca.crt"), CertFile: file("front-proxy.crt"), KeyFile: file("front-proxy.key")})
	if err != nil {
		return errors.Join(err, records.Close())
	}
	obey(ctx, p, func(text string) {
		records.Write(loop.Record{Is: loop.Note, Time: time.Now(), By: loop.Client{Name: "lens"}, Note: text})
	})
	return errors.Join(p.Close(), records.Close())
}

// frozen is the longest time for which watches stay frozen.
const frozen = time.Minute

// obey freezes all watches on SIGUSR1, and thaws them on SIGUSR2, until the context ends. It notes both.
func obey(ctx context.Context, p *proxy.Proxy, note func(text string)) {
	freeze, thaw := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(freeze, syscall.SIGUSR1)
	signal.Notify(thaw, syscall.SIGUSR2)
	var over <-chan time.Time // nil while no watch is frozen
	for {
		select {
		case <-freeze:
			note("All watches are frozen for at most a minute: no event is delivered.")
			p.Add(proxy.Rule{Name: "freeze", Do: proxy.Freeze()})
			over = time.After(frozen)
			continue
		case <-thaw:
		case <-over:
		case <-ctx.Done():
			return
		}
		if over != nil {
			note("The watches go on: the events that were withheld are delivered.")
			p.Clear()
			over = nil
		}
	}
}
