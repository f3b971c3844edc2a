package tools

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A site publishes releases of small programs.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	files map[string][]byte
	// begin is called before a file is sent, and may send it itself.
	begin  func(w http.ResponseWriter, r *http.Request, data []byte) bool
	ranges []string
}

func newSite(t *testing.T) *site {
	s := &site{files: map[string][]byte{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		data, found := s.files[r.URL.Path]
		if asked := r.Header.Get("Range"); asked != "" {
			s.ranges = append(s.ranges, asked)
		}
		begin := s.begin
		s.mu.Unlock()
		switch {
		case !found:
			http.NotFound(w, r)
		case begin != nil && begin(w, r, data):
		default:
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// program is a script that prints, and is long enough to be cut off in the middle.
func program(says string) []byte {
	return []byte("#!/bin/sh\necho " + says + " >&2\n" + strings.Repeat("# filler\n", 1<<15))
}

func hash(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// newDownload is a repository that pins three programs, and a site where all of them are released.
func newDownload(t *testing.T) (repository, *site) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are released for Linux")
	}
	r, s := newRepository(t), newSite(t)
	r.Releases = &Releases{s.URL + "/k8s", s.URL + "/etcd", s.URL + "/kwok", s.URL + "/api", time.Minute, time.Minute}
	r.Tools = []Tool{{Name: "kwok", Package: "example.test/hello/v2"}, {Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl"},
		{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}}
	requires, replaces := "", ""
	for path, pkg := range map[string]string{"example.test/hello/v2 v2.0.0": ".",
		"k8s.io/kubernetes v1.37.1": "cmd/kubectl", "go.etcd.io/etcd/server/v3 v3.7.0": "."} {
		module, _, _ := strings.Cut(path, " ")
		folder := "copy/" + filepath.Base(filepath.Dir(module))
		requires += "require " + path + "\n"
		replaces += "replace " + module + " => ./" + folder + "\n"
		r.write(folder+"/go.mod", "module "+module+"\n\ngo 1.26.0\n")
		r.write(folder+"/"+pkg+"/main.go", "package main\n\nfunc main() { println(\"compiled\") }\n")
	}
	r.write("go.mod", "module example.test/tools\n\ngo 1.26.0\n\n"+requires+replaces)

	kubectl, kwok := program("released kubectl"), program("released kwok")
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range []string{"README.md", "etcd"} {
		data := program("released " + name)
		name = "etcd-v3.7.0-linux-" + runtime.GOARCH + "/" + name
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		_, _ = archive.Write(data)
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	dir := "/k8s/v1.37.1/bin/linux/" + runtime.GOARCH
	s.files[dir+"/kubectl"] = kubectl
	s.files[dir+"/kubectl.sha256"] = []byte(hash(kubectl))
	s.files["/kwok/v2.0.0/kwok-linux-"+runtime.GOARCH] = kwok
	s.files["/api/v2.0.0"] = fmt.Appendf(nil, `{"tag_name": "v2.0.0", "assets": [
		{"name": "kwok.yaml", "digest": "sha256:00"}, {"name": "kwok-linux-%s", "digest": "sha256:%s"}]}`,
		runtime.GOARCH, hash(kwok))
	name := "etcd-v3.7.0-linux-" + runtime.GOARCH + ".tar.gz"
	s.files["/etcd/v3.7.0/"+name] = packed.Bytes()
	r.write("releases.sum", fmt.Sprintf("%s  %s%s\n%s  %s%s\n%s  %s%s\n", hash(kubectl), s.URL, dir+"/kubectl",
		hash(kwok), s.URL, "/kwok/v2.0.0/kwok-linux-"+runtime.GOARCH, hash(packed.Bytes()), s.URL, "/etcd/v3.7.0/"+name))
	s.files["/etcd/v3.7.0/SHA256SUMS"] = fmt.Appendf(nil, "%s  other\n%s  %s\n", hash(nil), hash(packed.Bytes()), name)
	return r, s
}

// is checks what a program of bin/ says, and that nothing half is left.
func (r repository) is(name, says string) {
	r.t.Helper()
	if got := r.says(name); got != says {
		r.t.Errorf("%s says %q, wanted %q; the output:\n%s", name, got, says, r.out)
	}
	if left, _ := filepath.Glob(filepath.Join(r.Bin(), ".download", "*")); len(left) > 0 {
		r.t.Errorf("left behind: %q", left)
	}
}

func (r repository) says(name string) string {
	out, err := exec.Command(filepath.Join(r.Bin(), name)).CombinedOutput()
	if err != nil {
		r.t.Errorf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

func TestReleasedProgramsAreDownloaded(t *testing.T) {
	r, s := newDownload(t)
	names := []string{"kwok", "kubectl", "etcd"}
	for range 2 { // the second time nothing is left to do
		if err := r.Ensure(t.Context(), names...); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			r.is(name, "released "+name)
		}
		s.files = nil
	}
	r.Releases = nil
	r.write("go.sum", "\n") // another checksum of all pins: a released program does not depend on them
	if err := r.Ensure(t.Context(), names...); err != nil || strings.Contains(r.out.String(), "building") {
		t.Errorf("what was downloaded is compiled: %v\n%s", err, r.out)
	}
}

func TestWhatWasCompiledIsNotDownloaded(t *testing.T) {
	r, s := newDownload(t)
	releases := r.Releases
	r.Releases = nil
	if err := r.Ensure(t.Context(), "kwok"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(r.out.String(), "`make up DOWNLOAD=1`") {
		t.Errorf("DOWNLOAD=1 is not named:\n%s", r.out)
	}
	r.Releases, s.files = releases, nil
	if err := r.Ensure(t.Context(), "kwok"); err != nil {
		t.Fatal(err)
	}
	r.is("kwok", "compiled")
}

// interrupted sends the first half of a large file, and then does what is given.
func interrupted(then func(r *http.Request)) func(http.ResponseWriter, *http.Request, []byte) bool {
	return func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		if len(data) < 1<<10 || r.Header.Get("Range") != "" {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		then(r)
		panic(http.ErrAbortHandler)
	}
}

func TestADownloadThatWasCutOffGoesOn(t *testing.T) {
	r, s := newDownload(t)
	s.begin = interrupted(func(*http.Request) {})
	if err := r.Ensure(t.Context(), "kwok"); err != nil {
		t.Fatal(err)
	}
	r.is("kwok", "released kwok")
	if want := fmt.Sprintf("[bytes=%d-]", len(program("released kwok"))/2); fmt.Sprint(s.ranges) != want {
		t.Errorf("asked for %s, wanted %s", s.ranges, want)
	}
}

func TestADownloadWhoseServerFellSilentGoesOn(t *testing.T) {
	r, s := newDownload(t)
	r.Releases.Stall = time.Second
	s.begin = interrupted(func(r *http.Request) { <-r.Context().Done() })
	if err := r.Ensure(t.Context(), "kwok"); err != nil {
		t.Fatal(err)
	}
	r.is("kwok", "released kwok")
}

func TestWithoutANetworkOneSentenceSaysSo(t *testing.T) {
	r, s := newDownload(t)
	s.Close()
	if err := r.Ensure(t.Context(), "kwok", "kubectl", "etcd"); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(r.out.String(), "connection refused"); n != 1 ||
		!strings.Contains(r.out.String(), "compiled: etcd, kubectl, kwok (") {
		t.Errorf("%d sentences in:\n%s", n, r.out)
	}
}

func TestADownloadThatWasInterruptedGoesOnTheNextTime(t *testing.T) {
	r, s := newDownload(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.begin = interrupted(func(request *http.Request) {
		part := filepath.Join(r.Bin(), ".download", "kwok-v2.0.0-"+runtime.GOARCH+".part")
		for info, err := os.Stat(part); err != nil || info.Size() == 0; info, err = os.Stat(part) {
			time.Sleep(time.Millisecond)
		}
		cancel()
		<-request.Context().Done()
	})
	if err := r.Ensure(ctx, "kwok"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := r.Ensure(t.Context(), "kwok"); err != nil {
		t.Fatal(err)
	}
	r.is("kwok", "released kwok")
	if len(s.ranges) != 1 || s.ranges[0] == "bytes=0-" {
		t.Errorf("asked for %s", s.ranges)
	}
}

// The rest of an earlier download may be of another file, or longer than the file is: it is downloaded once more.
func TestTheRestOfAnotherDownloadIsReplaced(t *testing.T) {
	for name, rest := range map[string][]byte{
		"longer than the file":     append(program("released kwok"), "more"...),
		"the beginning of another": []byte("another"),
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newDownload(t)
			dir := filepath.Join(r.Bin(), ".download")
			part := filepath.Join(dir, "kwok-v2.0.0-"+runtime.GOARCH+".part")
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(part, rest, 0o644)); err != nil {
				t.Fatal(err)
			}
			if err := r.Ensure(t.Context(), "kwok"); err != nil {
				t.Fatal(err)
			}
			r.is("kwok", "released kwok")
		})
	}
}

func TestWhatCannotBeDownloadedIsCompiled(t *testing.T) {
	kwok, sums := "/kwok/v2.0.0/kwok-linux-"+runtime.GOARCH, "/api/v2.0.0"
	for what, fault := range map[string]struct {
		make   func(r repository, s *site)
		reason string
	}{
		"another file, with its checksum, on a server that was broken into": {func(_ repository, s *site) {
			s.files[kwok] = program("planted")
			s.files[sums] = bytes.ReplaceAll(s.files[sums], []byte(hash(program("released kwok"))),
				[]byte(hash(s.files[kwok])))
		}, "has another checksum than scripts/tools/releases.sum records"},
		"no checksum is recorded": {func(r repository, _ *site) { r.write("releases.sum", "") },
			"`scripts/workshop record-sums` records it"},
		"a file that is not there": {func(_ repository, s *site) { delete(s.files, kwok) }, "404 Not Found"},
		"a server that falls silent each time": {func(r repository, s *site) {
			r.Releases.Stall = time.Second
			begin := interrupted(func(r *http.Request) { <-r.Context().Done() })
			s.begin = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
				r.Header.Del("Range")
				return begin(w, r, data)
			}
		}, "its server sent nothing for 1s"},
		"a server that never answers": {func(r repository, s *site) {
			r.Releases.Stall = time.Second
			s.begin = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool { <-r.Context().Done(); return true }
		}, "its server sent nothing for 1s"},
		"a server that is too slow": {func(r repository, s *site) {
			r.Releases.Limit, s.begin = 2*time.Second, drip
		}, "it was not complete after 2s"},
		"no network": {func(_ repository, s *site) { s.Close() }, "connection refused"},
		"every connection is cut": {func(_ repository, s *site) {
			s.begin = func(_ http.ResponseWriter, _ *http.Request, data []byte) bool {
				if len(data) > 1<<10 {
					panic(http.ErrAbortHandler)
				}
				return false
			}
		}, "EOF"},
	} {
		t.Run(what, func(t *testing.T) {
			r, s := newDownload(t)
			fault.make(r, s)
			start := time.Now()
			if err := r.Ensure(t.Context(), "kwok"); err != nil {
				t.Fatal(err)
			}
			r.is("kwok", "compiled")
			said := ""
			for line := range strings.Lines(r.out.String()) {
				if strings.Contains(line, "not downloaded, and so compiled: kwok (") {
					said += line
				}
			}
			if strings.Count(said, "\n") != 1 || !strings.Contains(said, fault.reason) || time.Since(start) > 30*time.Second {
				t.Errorf("after %s it said: %s\nwanted one sentence with: %s", time.Since(start), r.out, fault.reason)
			}
		})
	}
}

// drip sends a little now and then.
func drip(w http.ResponseWriter, r *http.Request, data []byte) bool {
	if len(data) < 1<<10 {
		return false
	}
	for ; r.Context().Err() == nil; time.Sleep(50 * time.Millisecond) {
		_, _ = w.Write([]byte("#"))
		w.(http.Flusher).Flush()
	}
	return true
}

func TestADownloadShowsHowFarItIs(t *testing.T) {
	r, s := newDownload(t)
	s.begin = func(w http.ResponseWriter, r *http.Request, data []byte) bool {
		if len(data) > 1<<10 {
			time.Sleep(50 * time.Millisecond)
		}
		return false
	}
	if err := r.Ensure(t.Context(), "kwok"); err != nil || !strings.Contains(r.out.String(), "  downloading MB: 0") {
		t.Errorf("%v\n%s", err, r.out)
	}
}

func TestChecksumsAreRecorded(t *testing.T) {
	r, s := newDownload(t)
	path := filepath.Join(r.moduleDir(""), "releases.sum")
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[runtime.GOARCH]
	for name, data := range maps.Clone(s.files) { // the same programs for the other processor
		if strings.Contains(name, runtime.GOARCH) {
			s.files[strings.ReplaceAll(name, runtime.GOARCH, other)] = data
		}
	}
	kwok, sums := "/kwok/v2.0.0/kwok-linux-", "/api/v2.0.0"
	both := fmt.Appendf(nil, `{"assets": [{"name": "kwok-linux-%s", "digest": "sha256:%s"},
		{"name": "kwok-linux-%s", "digest": "sha256:%s"}]}`, runtime.GOARCH, hash(s.files[kwok+runtime.GOARCH]),
		other, hash(s.files[kwok+other]))
	etcd := "/etcd/v3.7.0/SHA256SUMS"
	s.files[etcd] = append(s.files[etcd], bytes.ReplaceAll(s.files[etcd], []byte(runtime.GOARCH), []byte(other))...)
	s.files[sums] = both
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(path), r.RecordSums(t.Context())); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(before)) {
		if !strings.Contains(string(after), line) {
			t.Errorf("recorded\n%swithout %s", after, line)
		}
	}
	if n := strings.Count(string(after), "\n"); n != 6 {
		t.Errorf("%d checksums are recorded:\n%s", n, after)
	}
	for what, fault := range map[string]struct {
		published, says string
	}{
		"a release that was replaced": {strings.ReplaceAll(string(both), hash(s.files[kwok+other]), hash(nil)),
			"the release was replaced"},
		"checksums of other files": {`{"assets": []}`, "has no SHA-256 checksum"},
		"a login page":             {"<html> log in", "has no SHA-256 checksum"},
	} {
		s.files[sums] = []byte(fault.published)
		if err := r.RecordSums(t.Context()); err == nil || !strings.Contains(err.Error(), fault.says) {
			t.Errorf("%s: %v", what, err)
		}
		if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data, after) {
			t.Errorf("%s changed the file: %v\n%s", what, err, data)
		}
	}
}
