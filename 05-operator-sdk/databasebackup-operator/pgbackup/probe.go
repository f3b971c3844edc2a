package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
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
	return p.probeStore(ctx, false)
}

// probeStore looks at the address of the repository, or at its bucket: restic would make a bucket that does not exist,
// so that a mistyped name would get backups.
func (p *program) probeStore(ctx context.Context, bucket bool) error {
	kind, address, _ := strings.Cut(p.config.Repository, ":")
	if bucket && kind != "s3" {
		return nil
	}
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
	if bucket {
		name, _, _ := strings.Cut(strings.TrimPrefix(request.URL.Path, "/"), "/")
		request.URL.Path = "/" + name + "/"
		p.sign(request, now())
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
	case bucket && status == http.StatusNotFound:
		return because(nil, ReasonRepositoryRefused, "the bucket does not exist")
	case kind == "rest" && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		return because(nil, ReasonRepositoryRefused)
	}
	return nil
}

// sign signs a request without a body for S3 (AWS Signature Version 4). Some stores tell only a known user whether a
// bucket exists.
func (p *program) sign(r *http.Request, at time.Time) {
	date, region := at.Format("20060102T150405Z"), cmp.Or(p.config.environ["AWS_DEFAULT_REGION"], "us-east-1")
	scope := date[:8] + "/" + region + "/s3/aws4_request"
	body := fmt.Sprintf("%x", sha256.Sum256(nil))
	const headers = "host;x-amz-content-sha256;x-amz-date"
	request := fmt.Sprintf("%s\n%s\n\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n\n%s\n%s", r.Method, r.URL.EscapedPath(),
		r.URL.Host, body, date, headers, body)
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", date, scope, sha256.Sum256([]byte(request)))
	key := []byte("AWS4" + p.config.environ["AWS_SECRET_ACCESS_KEY"])
	for _, part := range []string{date[:8], region, "s3", "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	r.Header.Set("X-Amz-Date", date)
	r.Header.Set("X-Amz-Content-Sha256", body)
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%x",
		p.config.environ["AWS_ACCESS_KEY_ID"], scope, headers, key))
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
