package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// packSpace is the space that restic needs for one of its files.
const packSpace = 32 << 20

// probe looks at the store without restic, whose exit code is the same for most faults, and which would make a bucket whose
// name is mistyped. Without an error, the store can be reached, or the folder can be written and has space.
func (p *program) probe(ctx context.Context) error {
	if !remote(p.config.Repository) {
		return p.probeFolder()
	}
	kind, address, _ := strings.Cut(p.config.Repository, ":")
	store, err := url.Parse(address)
	if err != nil {
		return because(err, ReasonInvalidSettings, "RESTIC_REPOSITORY has no address that can be used")
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	if text, err := os.ReadFile(p.config.environ["RESTIC_CACERT"]); err == nil { // restic trusts no other CA then
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(text)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ask := p.askServer
	if kind == "s3" {
		ask = p.askForBucket
	}
	status, err := ask(ctx, transport, store)
	switch {
	case isTLS(err):
		return because(err, ReasonTLSFailed, "the store")
	case err != nil:
		return because(err, ReasonRepositoryUnreachable)
	case status >= http.StatusInternalServerError:
		return because(nil, ReasonRepositoryUnreachable, fmt.Sprintf("it answers with status %d", status))
	case kind == "s3" && status == http.StatusNotFound:
		return because(nil, ReasonRepositoryMissing, "the bucket does not exist")
	case kind == "rest" && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return because(nil, ReasonRepositoryRefused)
	}
	return nil
}

// askServer returns the status of the answer of a REST server.
func (p *program) askServer(ctx context.Context, transport http.RoundTripper, store *url.URL) (status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, store.String(), nil)
	if err != nil {
		return 0, err
	}
	if user := p.config.environ["RESTIC_REST_USERNAME"]; user != "" {
		request.SetBasicAuth(user, p.config.environ["RESTIC_REST_PASSWORD"])
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// askForBucket returns the status of the answer of an S3 store about the bucket of the repository.
func (p *program) askForBucket(ctx context.Context, transport http.RoundTripper, store *url.URL) (status int, err error) {
	client, err := minio.New(store.Host, &minio.Options{Secure: store.Scheme == "https", Transport: transport, MaxRetries: 1,
		Region: cmp.Or(p.config.environ["AWS_DEFAULT_REGION"], "us-east-1"),
		Creds:  credentials.NewStaticV4(p.config.environ["AWS_ACCESS_KEY_ID"], p.config.environ["AWS_SECRET_ACCESS_KEY"], "")})
	if err != nil {
		return 0, err
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(store.Path, "/"), "/")
	exists, err := client.BucketExists(ctx, bucket)
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		return answer.StatusCode, nil
	}
	if err == nil && !exists {
		status = http.StatusNotFound
	}
	return status, err
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
