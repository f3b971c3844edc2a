package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// packSpace is the space that restic needs for one of its files.
const packSpace = 32 << 20

// probe looks at the store without restic, whose exit code is the same for most faults. Without an error, the store
// can be reached, or the folder can be written and has space.
func (p *program) probe(ctx context.Context) error {
	if !remote(p.config.Repository) {
		return p.probeFolder()
	}
	kind, address, _ := strings.Cut(p.config.Repository, ":")
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return because(err, ReasonInvalidSettings, "RESTIC_REPOSITORY has no address that can be used")
	}
	if user := p.config.environ["RESTIC_REST_USERNAME"]; user != "" {
		request.SetBasicAuth(user, p.config.environ["RESTIC_REST_PASSWORD"])
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	if text, err := os.ReadFile(p.config.environ["RESTIC_CACERT"]); err == nil { // restic trusts no other CA then
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	switch {
	case isTLS(err):
		return because(err, ReasonTLSFailed, "the store")
	case err != nil:
		return because(err, ReasonRepositoryUnreachable)
	}
	_ = response.Body.Close()
	switch status := response.StatusCode; {
	case status >= http.StatusInternalServerError:
		return because(nil, ReasonRepositoryUnreachable, "it answers with status "+response.Status)
	case kind == "rest" && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return because(nil, ReasonRepositoryRefused)
	}
	return nil
}

// probeFolder checks that a folder can be read, and that it can be written and has space unless the run only reads.
func (p *program) probeFolder() error {
	dir := p.config.Repository
	for dir != "/" {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir = filepath.Dir(dir)
	}
	mode := uint32(7) // read, write, search
	if p.config.Verb == verbRestore {
		mode = 5
	}
	if err := syscall.Access(dir, mode); err != nil {
		return because(err, ReasonRepositoryRefused, "the volume")
	}
	if p.config.Verb != verbRestore && noSpace(dir) {
		return because(nil, ReasonRepositoryFull)
	}
	return nil
}

// noSpace reports whether a file system has too little space for one file of restic.
func noSpace(dir string) bool {
	var free syscall.Statfs_t
	return syscall.Statfs(dir, &free) == nil && free.Bavail*uint64(free.Bsize) < packSpace
}
