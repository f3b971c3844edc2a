package operator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// probeHandler answers /healthz, whether the process can continue, and /readyz, whether its caches have synced.
func probeHandler(hasSynced func() bool, held *lease) http.Handler {
	mux := http.NewServeMux()
	handle := func(path string, check func() error) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			if err := check(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, "ok")
		})
	}
	handle("/healthz", func() error {
		if held == nil {
			return nil
		}
		return held.elector.Check(leaseDuration) // a leader that hangs since its lease expired
	})
	handle("/readyz", func() error {
		if !hasSynced() {
			return errors.New("the caches have not synced yet")
		}
		return nil
	})
	return mux
}

// listen opens the address that a flag names. It returns nil when the flag is 0, which means off.
func listen(flag, address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w: choose another one, or 0 for none", flag, err)
	}
	return l, nil
}

// serve answers requests until ctx ends. A nil listener is off.
func serve(ctx context.Context, l net.Listener, handler http.Handler) {
	if l == nil {
		return
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Could not serve", "address", l.Addr())
		}
	}()
}
