// Command hook serves the sync function over HTTP.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/example/composite-operator/hook"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8090", "host:port for /sync; port 0 is a free one")
	withStdin := flag.Bool("end-with-stdin", false, "end when stdin is closed, as it is when the starter of the hook ends")
	flag.Parse()
	if err := run(*address, *withStdin); err != nil {
		fmt.Fprintln(os.Stderr, "hook:", err)
		os.Exit(1)
	}
}

// run prints the URL of the hook, and serves it.
func run(address string, withStdin bool) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/sync\n", listener.Addr())
	if withStdin {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = listener.Close()
		}()
	}
	server := &http.Server{Handler: handler(), ReadHeaderTimeout: 5 * time.Second}
	if err := server.Serve(listener); !withStdin || !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sync", sync)
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	return mux
}

func sync(w http.ResponseWriter, r *http.Request) {
	var request hook.Request
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(hook.Sync(request, time.Now())) // an error means that the client has gone
}
