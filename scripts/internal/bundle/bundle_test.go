package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
	"example.com/operator-workshop/scripts/internal/tools"
	"example.com/operator-workshop/scripts/internal/unbundle"
)

// proxy is a module proxy in a folder, with one module that has one package.
func proxy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	const version, mod = "example.test/dep/@v/v1.0.0", "module example.test/dep\n\ngo 1.26.0\n"
	var packed bytes.Buffer
	files := zip.NewWriter(&packed)
	const source = "package dep\n\nconst Says = \"from the bundle\"\n"
	for name, text := range map[string]string{"go.mod": mod, "dep.go": source} {
		w, err := files.Create("example.test/dep@v1.0.0/" + name)
		testkit.Must(t, err)
		_, err = io.WriteString(w, text)
		testkit.Must(t, err)
	}
	testkit.Must(t, files.Close())
	testkit.Write(t, filepath.Join(dir, version+".info"), `{"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"}`)
	testkit.Write(t, filepath.Join(dir, version+".mod"), mod)
	testkit.Write(t, filepath.Join(dir, version+".zip"), packed.String())
	return "file://" + dir
}

// newPacker is a small workshop: a chapter that needs a module, its test, and a tool.
func newPacker(t *testing.T) Packer {
	t.Helper()
	root := filepath.Join(t.TempDir(), `a teacher's "checkout"`)
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOPROXY", proxy(t))
	for path, text := range map[string]string{
		"README.md":             "the workshop",
		"scripts/versions.yaml": "go: 1.26.0\n",
		".gitignore":            "bin/\nout/\n.workshop/\n",
		"01-crd/go.mod":         "module example.test/chapter\n\ngo 1.26.0\n\nrequire example.test/dep v1.0.0\n",
		"01-crd/x.go":           "package chapter\n\nimport \"example.test/dep\"\n\nvar Says = dep.Says\n",
		"01-crd/x_test.go": "package chapter\n\nimport \"testing\"\n\n" +
			"func TestX(t *testing.T) {\n\tif Says != \"from the bundle\" {\n\t\tt.Error(Says)\n\t}\n}\n",
		"scripts/tools/go.mod": "module example.test/tools\n\ngo 1.26.0\n\nrequire example.test/hello v1.0.0\n\n" +
			"replace example.test/hello => ./hello\n",
		"scripts/tools/go.sum":        "",
		"scripts/tools/hello/go.mod":  "module example.test/hello\n\ngo 1.26.0\n",
		"scripts/tools/hello/main.go": "package main\n\nfunc main() { println(\"hello\") }\n",
		"scripts/linters/go.mod":      "module example.test/linters\n\nrequire example.test/missing v1.0.0\n",
	} {
		testkit.Write(t, filepath.Join(root, path), text)
	}
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOSUMDB", "off")
	testkit.Run(t, filepath.Join(root, "01-crd"), "go", "mod", "tidy")
	testkit.Run(t, root, "git", "init", "-q")
	testkit.Run(t, root, "git", "add", "-A")
	testkit.Run(t, root, "git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "x")
	testkit.Write(t, filepath.Join(root, "README.md"), "not committed")
	return Packer{Builder: builder(root), Out: filepath.Join(root, "out", "bundle"), Platforms: []string{here()}}
}

func builder(root string) tools.Builder {
	return tools.Builder{Root: root, Report: tools.Reporter{W: &bytes.Buffer{}, Every: time.Hour},
		Tools: []tools.Tool{{Name: "hello", Package: "example.test/hello"}},
		Env:   []string{"GOFLAGS=-mod=readonly -modcacherw"}}
}

func said(b tools.Builder) string { return b.Report.W.(*bytes.Buffer).String() }

// files are the names of all files below a folder.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	testkit.Must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	}))
	return names
}

// The test starts itself in a network namespace, like a learner's machine without any network.
const learner = "WORKSHOP_BUNDLE_TEST"

func TestABundleWorksWithoutANetwork(t *testing.T) {
	if os.Getenv(learner) != "" {
		install(t)
		return
	}
	p := newPacker(t)
	testkit.Must(t, p.Pack(t.Context()))
	const module = "modules/example.test/dep/@v/v1.0.0"
	want := fmt.Sprint([]string{"SHA256SUMS", module + ".info", module + ".mod", module + ".zip", unbundle.File(here())})
	if got := fmt.Sprint(files(t, p.Out)); got != want {
		t.Errorf("the folder has %s\nwanted %s", got, want)
	}
	for _, line := range []string{"changes that are not committed are not packed", "packing "} {
		if text := said(p.Builder); !strings.Contains(text, line) {
			t.Errorf("it said:\n%s\nwanted: %s", text, line)
		}
	}
	bundle := filepath.Join(p.Out, unbundle.File(here()))
	for what, prepare := range map[string]func(dir string) (root, file string){
		"unpacked by hand": func(dir string) (string, string) {
			testkit.Run(t, dir, "tar", "-xzf", bundle)
			if text, err := os.ReadFile(filepath.Join(dir, unbundle.Top, "README.md")); string(text) != "the workshop" {
				t.Errorf("the README is %q (%v)", text, err)
			}
			return filepath.Join(dir, unbundle.Top), ""
		},
		"into a clone": func(dir string) (string, string) {
			testkit.Run(t, dir, "git", "clone", "-q", p.Builder.Root, "clone")
			return filepath.Join(dir, "clone"), bundle
		},
	} {
		t.Run(what, func(t *testing.T) {
			root, file := prepare(t.TempDir())
			script, err := filepath.Abs("../../offline.sh")
			testkit.Must(t, err)
			if out, err := exec.Command(script, "true").CombinedOutput(); err != nil {
				t.Skipf("no network namespace can be made here: %s", out)
			}
			cmd := exec.Command(script, os.Args[0], "-test.run=^TestABundleWorksWithoutANetwork$")
			cmd.Env = append(os.Environ(), learner+"=yes", "ROOT="+root, "FILE="+file, "GOMODCACHE="+t.TempDir(),
				"GOPROXY=", "GOFLAGS=", "GOSUMDB=")
			if file != "" {
				sums, err := os.ReadFile(filepath.Join(p.Out, unbundle.SumsFile))
				testkit.Must(t, err)
				cmd.Env = append(cmd.Env, "CODE="+unbundle.Code(sums))
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// install does the work of make from-bundle, then that of a learner.
func install(t *testing.T) {
	root := os.Getenv("ROOT")
	if connection, err := net.DialTimeout("tcp", "192.0.2.1:443", time.Second); err == nil {
		connection.Close()
		t.Fatal("there is a network")
	}
	dir, err := unbundle.Open(t.Context(), root, os.Getenv("FILE"), os.Getenv("CODE"))
	testkit.Must(t, err)
	usual := os.Getenv("GOPROXY")
	t.Setenv("GOPROXY", (&url.URL{Scheme: "file", Path: dir + "/modules"}).String())
	b := builder(root)
	testkit.Must(t, Install(t.Context(), b, filepath.Join(root, ".workshop")))
	t.Setenv("GOPROXY", usual)
	testkit.Run(t, filepath.Join(root, "01-crd"), "go", "test", "./...")
	if out := testkit.Run(t, root, filepath.Join(root, "bin", "hello")); strings.TrimSpace(out) != "hello" {
		t.Errorf("the tool says %q", out)
	}
	testkit.Must(t, b.Ensure(t.Context(), "hello"))
	if text := said(b); strings.Contains(text, "building") {
		t.Errorf("a tool was compiled:\n%s", text)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the unpacked bundle is still there: %v", err)
	}
}

func TestABundleIsMadeForAnotherPlatform(t *testing.T) {
	p := newPacker(t)
	p.Platforms = []string{"darwin/arm64"}
	if here() == p.Platforms[0] {
		p.Platforms[0] = "darwin/amd64"
	}
	testkit.Must(t, p.Pack(t.Context()))
	file := filepath.Join(p.Out, unbundle.File(p.Platforms[0]))
	member := filepath.Join(unbundle.Top, unbundle.Dir, "bin", "hello")
	if program := testkit.Run(t, p.Out, "tar", "-xzOf", file, member); !strings.HasPrefix(program, "\xcf\xfa\xed\xfe") {
		t.Errorf("a program for macOS does not begin with %q", program[:4])
	}
	_, err := unbundle.Open(t.Context(), t.TempDir(), file, unbundle.NoCode)
	if err == nil || !strings.Contains(err.Error(), "is for darwin/") {
		t.Errorf("this machine takes it: %v", err)
	}
}

func TestABundleIsMadeWholeOrNotAtAll(t *testing.T) {
	p := newPacker(t)
	testkit.Must(t, p.Pack(t.Context()))
	before := testkit.Run(t, p.Out, "cat", "SHA256SUMS")
	for what, fail := range map[string]func(p *Packer) context.Context{
		"another platform":   func(p *Packer) context.Context { p.Platforms = []string{"plan9/arm"}; return t.Context() },
		"no checkout of git": func(p *Packer) context.Context { p.Builder.Root = t.TempDir(); return t.Context() },
		"images for no platform": func(p *Packer) context.Context {
			p.Images = []string{"x"}
			fakeDocker(t, `[ "$1" = version ] && echo s390x`)
			return t.Context()
		},
		"Docker does not answer": func(p *Packer) context.Context {
			p.Images = []string{"x"}
			fakeDocker(t, "echo no daemon >&2; exit 1")
			return t.Context()
		},
		"Ctrl-C": func(*Packer) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx
		},
		"Ctrl-C while it packs": func(p *Packer) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			p.Builder.Report.W = writer(func(text []byte) {
				if bytes.Contains(text, []byte("packing ")) {
					cancel()
				}
			})
			return ctx
		},
	} {
		t.Run(what, func(t *testing.T) {
			p := p
			if err := p.Pack(fail(&p)); err == nil {
				t.Error("no error")
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(p.Out), "*")); len(left) != 1 {
				t.Errorf("left behind: %q", left)
			}
			if after := testkit.Run(t, p.Out, "cat", "SHA256SUMS"); after != before {
				t.Errorf("the bundle that was there is another one")
			}
			testkit.Run(t, p.Out, "sha256sum", "-c", "SHA256SUMS")
		})
	}
}

type writer func(text []byte)

func (w writer) Write(text []byte) (int, error) { w(text); return len(text), nil }

// fakeDocker puts a docker into PATH.
func fakeDocker(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, "docker"), "#!/bin/sh\n"+script+"\n")
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func TestImagesArePackedAndLoaded(t *testing.T) {
	p := newPacker(t)
	p.Images, p.NodeImage = []string{"nginx:latest"}, "kindest/node:v1.37.0@sha256:abc"
	log := filepath.Join(t.TempDir(), "log")
	_, arch, _ := strings.Cut(here(), "/")
	fakeDocker(t, `echo "$@" >>`+log+`
case $1 in
version) [ ! -e `+log+`.down ] && echo `+arch+` ;;
image) [ "$3" != nginx:latest ] ;; # is not here yet
save) echo images >"$3" ;;
load) grep -q images "$3" ;;
esac`)
	other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[arch]
	p.Platforms = []string{"darwin/" + arch, "linux/" + arch, "linux/" + other}
	testkit.Must(t, p.Pack(t.Context()))
	const none = " has no images"
	if text := said(p.Builder); strings.Count(text, none) != 1 || !strings.Contains(text, p.Platforms[2]+none) {
		t.Errorf("it said:\n%s", text)
	}
	file := filepath.Join(p.Out, unbundle.File(here()))
	dir, err := unbundle.Open(t.Context(), p.Builder.Root, file, unbundle.NoCode)
	testkit.Must(t, err)
	state := filepath.Join(p.Builder.Root, ".workshop")
	testkit.Write(t, log+".down", "")
	testkit.Must(t, Install(t.Context(), p.Builder, state))
	if _, err := os.Stat(filepath.Join(dir, imagesFile)); err != nil || !strings.Contains(said(p.Builder), "without FILE") {
		t.Errorf("the images cannot be loaded later: %v\n%s", err, said(p.Builder))
	}
	testkit.Must(t, os.Remove(log+".down"))
	_, err = unbundle.Open(t.Context(), p.Builder.Root, "", "")
	testkit.Must(t, err)
	testkit.Must(t, Install(t.Context(), p.Builder, state))
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the unpacked bundle is still there: %v", err)
	}
	calls, err := os.ReadFile(log)
	testkit.Must(t, err)
	for _, call := range []string{"pull -q nginx:latest\n", "tag kindest/node:v1.37.0@sha256:abc kindest/node:v1.37.0\n",
		"images.tar kindest/node:v1.37.0 nginx:latest\n", "load -i " + dir + "/images.tar\n"} {
		if !strings.Contains(string(calls), call) {
			t.Errorf("no call of docker %q in:\n%s", call, calls)
		}
	}
	if node, err := os.ReadFile(filepath.Join(state, NodeFile)); string(node) != "kindest/node:v1.37.0\n" {
		t.Errorf("the node is %q (%v)", node, err)
	}
	if about, err := os.Stat(state); err != nil || about.Mode().Perm() != 0o700 {
		t.Errorf("another user can read the state: %v, %v", about.Mode(), err)
	}
}

func TestBundlesAreServed(t *testing.T) {
	dir := t.TempDir()
	name := unbundle.File("linux/amd64")
	for path, text := range map[string]string{name: "bundle", "SHA256SUMS": strings.Repeat("a", 64) + "  " + name + "\n",
		"modules/example.test/dep/@v/v1.0.0.mod": "module", "modules/secret": "x", "secret": "x", "../secret": "x"} {
		testkit.Write(t, filepath.Join(dir, path), text)
	}
	testkit.Must(t, os.Symlink("../secret", filepath.Join(dir, unbundle.File("linux/arm64"))))
	ctx, cancel := context.WithCancel(t.Context())
	reader, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, dir, "127.0.0.1:0", nil, out) }()
	text := make([]byte, 8192)
	n, err := reader.Read(text)
	testkit.Must(t, err)
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	_, line, _ := strings.Cut(string(text[:n]), "curl -fC - -O ")
	base, _, _ := strings.Cut(line, "/"+name)
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for path, want := range map[string]int{
		"/" + name: 200, "/SHA256SUMS": 200, "/modules/example.test/dep/@v/v1.0.0.mod": 200,
		"/": 200, "/modules/": 404, "/modules": 404, "/secret": 404, "/modules/secret": 404, "/modules/../secret": 404,
		"/%2e%2e/secret": 404, "/modules/%2e%2e/%2e%2e/secret": 404, "/" + unbundle.File("linux/arm64"): 500} {
		request, err := http.NewRequest(http.MethodGet, base+"/", nil)
		testkit.Must(t, err)
		request.URL.Opaque = path // as it is, not cleaned
		response, err := client.Do(request)
		testkit.Must(t, err)
		if response.StatusCode != want && (want == 200 || response.StatusCode < 300) {
			t.Errorf("%s: %s, wanted %d", path, response.Status, want)
		}
		body, err := io.ReadAll(response.Body)
		testkit.Must(t, errors.Join(err, response.Body.Close()))
		if path == "/" && !strings.Contains(string(body), "curl -fC - -O "+base+"/"+name+"; if ") {
			t.Errorf("in a browser one reads:\n%s", body)
		}
	}
	request, err := http.NewRequest(http.MethodGet, base+"/"+name, nil)
	testkit.Must(t, err)
	request.Header.Set("Range", "bytes=3-")
	response, err := client.Do(request)
	testkit.Must(t, err)
	body, err := io.ReadAll(response.Body)
	testkit.Must(t, errors.Join(err, response.Body.Close()))
	if string(body) != "dle" {
		t.Errorf("a download that goes on is %s, %q", response.Status, body)
	}
	cancel()
	testkit.Must(t, <-done)
}

func TestOnlyANamedAddressIsServed(t *testing.T) {
	dir := t.TempDir()
	for address, want := range map[string]string{"0.0.0.0:8400": "name one address", ":8400": "name one address",
		"[::]:8400": "name one address", "8400": "HOST:PORT", "203.0.113.1:8400": "ADDRESS=HOST:PORT"} {
		if err := Serve(t.Context(), dir, address, nil, io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
