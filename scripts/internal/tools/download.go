package tools

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Releases say where projects publish the programs that they build for Linux, and how long their servers are waited
// for.
type Releases struct {
	// Kubernetes, Etcd and Kwok are the addresses above their versions. KwokSums describes releases of kwok: the project
	// publishes no file with checksums, but GitHub computes one for each file of a release.
	Kubernetes, Etcd, Kwok, KwokSums string
	// Stall is how long a server may send nothing, Limit how long a download may take; what came is kept for the next.
	Stall, Limit time.Duration
}

// Published are the releases of the projects themselves.
func Published() *Releases {
	return &Releases{
		Kubernetes: "https://dl.k8s.io",
		Etcd:       "https://github.com/etcd-io/etcd/releases/download",
		Kwok:       "https://github.com/kubernetes-sigs/kwok/releases/download",
		KwokSums:   "https://api.github.com/repos/kubernetes-sigs/kwok/releases/tags",
		Stall:      20 * time.Second,
		Limit:      20 * time.Minute,
	}
}

// A release is a published file with a program, or with an archive that has it as member.
type release struct{ url, sums, member string }

// of returns where a tool is published; false when it is not.
func (r Releases) of(t pinned, arch string) (release, bool) {
	switch {
	case strings.HasPrefix(t.Package, "k8s.io/kubernetes/"):
		url := r.Kubernetes + "/" + t.version + "/bin/linux/" + arch + "/" + t.Name
		return release{url: url, sums: url + ".sha256"}, true
	case t.Name == "etcd":
		name := "etcd-" + t.version + "-linux-" + arch
		base := r.Etcd + "/" + t.version + "/"
		return release{url: base + name + ".tar.gz", sums: base + "SHA256SUMS", member: name + "/etcd"}, true
	case t.Name == "kwok":
		return release{url: r.Kwok + "/" + t.version + "/kwok-linux-" + arch, sums: r.KwokSums + "/" + t.version}, true
	}
	return release{}, false
}

// canDownload tells whether any of the tools is published for this machine.
func (b Builder) canDownload(wanted []pinned) bool {
	goos, arch := b.platform()
	for _, t := range wanted {
		if _, ok := Published().of(t, arch); ok && goos == "linux" {
			return true
		}
	}
	return false
}

// download installs those of the tools that are published for this machine, and returns the others and those that
// failed: they are to be compiled.
func (b Builder) download(ctx context.Context, wanted []pinned) (rest []pinned, err error) {
	goos, arch := b.platform()
	if len(wanted) > 0 && goos != "linux" {
		b.Report.Line("DOWNLOAD=1 is for Linux only: on this system the programs are compiled")
		return wanted, nil
	}
	dir := filepath.Join(b.Bin(), ".download") // stays after Ctrl-C, to be resumed
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	recorded, err := b.recordedSums()
	if err != nil {
		return nil, err
	}
	b.Report.Line("downloading released programs")
	meter := b.Report.Meter("downloading MB")
	failed := make([]error, len(wanted))
	fetched := make([]string, len(wanted))
	var size progress
	var all sync.WaitGroup
	for i, t := range wanted {
		if from, ok := b.Releases.of(t, arch); ok {
			all.Go(func() {
				part := filepath.Join(dir, t.Name+"-"+t.version+"-"+arch+".part")
				fetched[i], failed[i] = b.Releases.fetch(ctx, from, recorded[from.url], part, &reader{meter: meter, all: &size})
			})
		}
	}
	all.Wait()
	meter.Stop()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var names, reasons []string
	for i, t := range wanted {
		if fetched[i] != "" {
			failed[i] = b.install(fetched[i], t.Name, t.readyMade)
		}
		switch {
		case failed[i] != nil:
			names, reasons, rest = append(names, t.Name), append(reasons, failed[i].Error()), append(rest, t)
		case fetched[i] == "":
			rest = append(rest, t)
		default:
			b.Report.Line("downloaded %s %s into bin/, its checksum is the recorded one", t.Name, t.version)
		}
	}
	if len(names) > 0 {
		reasons = slices.Compact(slices.Sorted(slices.Values(reasons)))
		b.Report.Line("not downloaded, and so compiled: %s (%s)", strings.Join(names, ", "), strings.Join(reasons, "; "))
	}
	return rest, os.RemoveAll(dir) // of what is compiled, no part is needed any more
}

// progress is how much of all downloads has come, in bytes.
type progress struct{ done, total atomic.Int64 }

// A reader counts for the meter what is read.
type reader struct {
	io.Reader
	meter *Meter
	all   *progress
	alive func()
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.alive()
	r.meter.Set(int(r.all.done.Add(int64(n))>>20), int(r.all.total.Load()>>20))
	return n, err
}

// attempts is how often a download is begun; each goes on where the one before stopped.
const attempts = 3

// fetch returns the path of a program that was downloaded by way of the file part, and has the checksum that is wanted.
func (r Releases) fetch(ctx context.Context, from release, want, part string, count *reader) (string, error) {
	if want == "" {
		return "", fmt.Errorf("scripts/tools/%s has no checksum of it: `scripts/workshop record-sums` records it", sumsFile)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit, fmt.Errorf("it was not complete after %s", r.Limit))
	defer cancel()
	_, resumed := os.Stat(part)
	var err error
	for range attempts {
		err = r.get(ctx, from.url, part, count)
		if err == nil || ctx.Err() != nil || errors.Is(err, errAnswer) || errors.Is(err, syscall.ENOSPC) {
			break
		}
	}
	if err != nil {
		return "", err
	}
	got, err := sum(part)
	if err != nil {
		return "", err
	}
	if got != want && resumed == nil { // the rest of an earlier download, of which nothing is known
		if err := os.Remove(part); err != nil {
			return "", err
		}
		return r.fetch(ctx, from, want, part, count)
	}
	if got != want {
		return "", errors.Join(os.Remove(part),
			fmt.Errorf("%s has another checksum than scripts/tools/%s records", from.url, sumsFile))
	}
	if from.member == "" {
		return part, os.Chmod(part, 0o755)
	}
	defer os.Remove(part)
	return extract(part, from.member)
}

// errAnswer marks an answer that another attempt would not change.
var errAnswer = errors.New("that is not the file")

// get appends to part what is missing of the file at url.
func (r Releases) get(ctx context.Context, url, part string, count *reader) error {
	var have int64
	if info, err := os.Stat(part); err == nil {
		have = info.Size()
	}
	response, alive, err := r.ask(ctx, url, have)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	how := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	switch response.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable: // it has all; or it is another file, which its checksum will say
		return nil
	case http.StatusOK: // all of it, from the beginning
		how |= os.O_TRUNC
	}
	file, err := os.OpenFile(part, how, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	count.all.total.Add(max(0, response.ContentLength))
	count.Reader, count.alive = response.Body, alive
	copied, err := io.Copy(file, count)
	if err == nil {
		return file.Close()
	}
	count.all.total.Add(-max(0, response.ContentLength-copied)) // the next attempt adds what is left
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is full: %w", err)
	}
	if cause := context.Cause(response.Request.Context()); cause != nil {
		return fmt.Errorf("%s: %w", url, cause)
	}
	return fmt.Errorf("%s: the connection was cut: %w", url, err)
}

// ask requests a file from an offset on. The request ends when alive is not called for longer than r.Stall.
func (r Releases) ask(ctx context.Context, url string, offset int64) (_ *http.Response, alive func(), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stalled := time.AfterFunc(r.Stall, func() { cancel(fmt.Errorf("its server sent nothing for %s", r.Stall)) })
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	if offset > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	request.Header.Set("Accept-Encoding", "identity") // ranges and checksums are those of the file itself
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		// The error has the whole address. Without it the reason is the same one for all programs.
		err = cmp.Or(context.Cause(ctx), errors.Unwrap(err), err)
		return nil, nil, fmt.Errorf("%s: %w", request.URL.Host, err)
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusPartialContent, http.StatusRequestedRangeNotSatisfiable:
		return response, func() { stalled.Reset(r.Stall) }, nil
	}
	return nil, nil, errors.Join(fmt.Errorf("%s answers %s: %w", url, response.Status, errAnswer),
		response.Body.Close())
}

// sum is the SHA-256 of a file.
func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}

// extract writes a program that is in a tar.gz archive beside it, and returns its path.
func extract(archive, member string) (_ string, err error) {
	file, err := os.Open(archive)
	if err != nil {
		return "", err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return "", fmt.Errorf("%s has no %s: %w", filepath.Base(archive), member, fs.ErrNotExist)
		}
		if err != nil {
			return "", err
		}
		if header.Name != member || header.Typeflag != tar.TypeReg {
			continue
		}
		program, err := os.OpenFile(archive+".program", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(program, files)
		return program.Name(), errors.Join(err, program.Close())
	}
}
