package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"crypto/x509"
	"debug/elf"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	root        = "../../.."
	mostBytes   = 60_000_000 // of an image, unpacked
	mostContext = 3_000_000  // of the build context
)

// must ends a test when there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// options returns options for an image that a test builds. The test is skipped where the chapters are missing.
func options(t *testing.T, impl string) Options {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, Sources[impl].Chapter)); err != nil {
		t.Skip("the operators' source is not beside this folder")
	}
	return Options{Impl: impl, Root: root, Arch: "amd64", Name: "myweb-operator:workshop",
		Version: "v1.2.3", Commit: "0123abc"}
}

// written builds an image, writes it and returns the archive.
func written(t *testing.T, o Options) (path string) {
	t.Helper()
	built, tag, err := Build(t.Context(), o)
	must(t, err)
	path = filepath.Join(t.TempDir(), "dist", "image.tar")
	must(t, Write(path, tag, built))
	return path
}

func loaded(t *testing.T, path string) v1.Image {
	t.Helper()
	image, err := tarball.ImageFromPath(path, nil)
	must(t, err)
	return image
}

func TestTheImageHasTheProgramAndNothingThatCanBeChanged(t *testing.T) {
	for impl, p := range Sources {
		o := options(t, impl)
		image := loaded(t, written(t, o))
		config, err := image.ConfigFile()
		must(t, err)
		want := v1.Config{User: "65532:65532", Entrypoint: []string{"/myweb-operator"}, WorkingDir: "/",
			Labels: map[string]string{
				"org.opencontainers.image.title": p.Title, "org.opencontainers.image.version": "v1.2.3",
				"org.opencontainers.image.revision": "0123abc", "org.opencontainers.image.source": source}}
		if diff := cmp.Diff(want, config.Config); diff != "" {
			t.Errorf("%s: configuration (-want +got):\n%s", impl, diff)
		}
		if config.OS != "linux" || config.Architecture != "amd64" || config.Created.Unix() != 0 {
			t.Errorf("%s: it is for %s/%s, made at %s", impl, config.OS, config.Architecture, config.Created)
		}
		size, err := Size(image)
		must(t, err)
		t.Logf("%s: %.1f MB, unpacked %.1f MB", impl, float64(size.Packed)/1e6, float64(size.Unpacked)/1e6)
		if size.Unpacked > mostBytes {
			t.Errorf("%s: it has %d bytes, more than %d", impl, size.Unpacked, mostBytes)
		}
		files := contents(t, image)
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range files {
				if !yield(name) {
					return
				}
			}
		})
		if diff := cmp.Diff([]string{"etc/", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/ca-certificates.crt",
			"myweb-operator"}, names); diff != "" {
			t.Errorf("%s: files (-want +got):\n%s", impl, diff)
		}
		isStatic(t, files["myweb-operator"], o)
		areCertificates(t, files["etc/ssl/certs/ca-certificates.crt"])
	}
}

// contents are the files of an image. None may be changed by the image's user, or set a user.
func contents(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	layers, err := image.Layers()
	must(t, err)
	files := map[string][]byte{}
	for _, layer := range layers {
		r, err := layer.Uncompressed()
		must(t, err)
		defer r.Close()
		for archive := tar.NewReader(r); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			if header.Mode&0o7022 != 0 || header.Uid != 0 || header.Gid != 0 {
				t.Errorf("%s has mode %o and belongs to %d:%d", header.Name, header.Mode, header.Uid, header.Gid)
			}
			if files[header.Name], err = io.ReadAll(archive); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files
}

// isStatic checks that the program needs no loader and no library, has its version, and contains no path of the
// machine that built it.
func isStatic(t *testing.T, program []byte, o Options) {
	t.Helper()
	binary, err := elf.NewFile(bytes.NewReader(program))
	must(t, err)
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 || binary.Section(".interp") != nil {
		t.Errorf("it is not static: it wants %v (%v)", libraries, err)
	}
	file := filepath.Join(t.TempDir(), "program")
	must(t, os.WriteFile(file, program, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "tool", "buildid", file).CombinedOutput()
	if got := strings.TrimSpace(string(out)); err != nil || got != o.Version+"/"+o.Commit {
		t.Errorf("its build ID is %q (%v)", got, err)
	}
	here, err := filepath.Abs(root)
	must(t, err)
	if bytes.Contains(program, []byte(here)) {
		t.Errorf("it names %s, where it was made", here)
	}
}

func areCertificates(t *testing.T, data []byte) {
	t.Helper()
	n := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err != nil || !c.IsCA {
			t.Errorf("certificate %d: %v", n, err)
		}
		n++
	}
	if n < 100 {
		t.Errorf("there are %d certificates", n)
	}
}

// Only this test needs packages that are compiled for another processor, so the program is small.
func TestAnotherProcessorsImageIsMadeHere(t *testing.T) {
	Sources["hello"] = Source{Chapter: "06-deploy", Package: "./internal/image/testdata/hello", Title: "hello"}
	defer delete(Sources, "hello")
	o := options(t, "hello")
	o.Arch = "arm64"
	image := loaded(t, written(t, o))
	binary, err := elf.NewFile(bytes.NewReader(contents(t, image)["myweb-operator"]))
	must(t, err)
	if binary.Machine != elf.EM_AARCH64 {
		t.Errorf("the program is for %s", binary.Machine)
	}
	if config, err := image.ConfigFile(); err != nil || config.Architecture != "arm64" {
		t.Errorf("the image says %s (%v)", config.Architecture, err)
	}
}

func TestBadInputIsNamed(t *testing.T) {
	good := options(t, "04")
	for name, test := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no such operator":    {func(o *Options) { o.Impl = "07" }, "IMPL=07: there is no such operator: choose 03 or 04"},
		"no source":           {func(o *Options) { o.Root = t.TempDir() }, "set WORKSHOP_ROOT to a checkout of the workshop"},
		"a name that is none": {func(o *Options) { o.Name = "My Operator" }, "--name: "},
		"no version":          {func(o *Options) { o.Version = "" }, `--version is ""`},
		"a commit in quotes":  {func(o *Options) { o.Commit = `"x"` }, "--commit is "},
		"no such processor":   {func(o *Options) { o.Arch = "pdp11" }, "for linux/pdp11"},
	} {
		o := good
		test.change(&o)
		if _, _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// The test cannot build the Dockerfile, because a build pulls a base image. So it reads the lines on which both ways
// must agree.
func TestTheDockerfileMakesTheSameImage(t *testing.T) {
	o := options(t, "04")
	data, err := os.ReadFile("../../Dockerfile")
	must(t, err)
	for what, text := range map[string]string{
		"user":         "\nUSER " + user + "\n",
		"entrypoint":   "\nENTRYPOINT [\"" + programPath + "\"]\n",
		"certificates": " " + certificatesPath + "\n",
		"flags":        `go build -trimpath -buildvcs=false -ldflags="-s -w -buildid=${VERSION}/${COMMIT}"`,
		"chapter":      "\nARG CHAPTER=" + Sources[o.Impl].Chapter + "\n",
		"package":      "\nARG PACKAGE=" + Sources[o.Impl].Package + "\n",
		"base":         "\nFROM scratch\n",
	} {
		if !strings.Contains(string(data), text) {
			t.Errorf("%s: the Dockerfile has no %q", what, text)
		}
	}
	for label := range map[string]string{"title": "", "version": "", "revision": "", "source": ""} {
		if !regexp.MustCompile(`org\.opencontainers\.image\.` + label + `="`).Match(data) {
			t.Errorf("the Dockerfile does not label the image's %s", label)
		}
	}
}

// The files that the ignore file lets in are enough to compile both operators, to the same bytes, and not many more.
func TestTheContextIsSmallAndEnough(t *testing.T) {
	options(t, "04")
	copied, bytes := t.TempDir(), int64(0)
	for _, name := range let(t, "../../Dockerfile.dockerignore") {
		data, err := os.ReadFile(filepath.Join(root, name))
		must(t, err)
		bytes += int64(len(data))
		to := filepath.Join(copied, name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o600)))
	}
	t.Logf("the context has %.1f MB", float64(bytes)/1e6)
	if bytes > mostContext {
		t.Errorf("the context has %d bytes, more than %d", bytes, mostContext)
	}
	for impl := range Sources {
		o, here, there := options(t, impl), filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "program")
		must(t, Compile(t.Context(), o, here))
		o.Root = copied
		if err := Compile(t.Context(), o, there); err != nil {
			t.Errorf("%s: %v", impl, err)
			continue
		}
		a, errA := os.ReadFile(here)
		b, errB := os.ReadFile(there)
		if err := errors.Join(errA, errB); err != nil || string(a) != string(b) {
			t.Errorf("%s: compiled in another folder the program is another one (%v)", impl, err)
		}
	}
}

// let returns the files of the repository that an ignore file includes. It supports the three forms of lines in
// the file: exclude everything, include a path, exclude a pattern in any folder.
func let(t *testing.T, ignore string) (names []string) {
	t.Helper()
	f, err := os.Open(ignore)
	must(t, err)
	defer f.Close()
	var in, out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "!"):
			in = append(in, line[1:])
		case strings.HasPrefix(line, "**/"):
			out = append(out, line[3:])
		case line != "*" && !strings.HasPrefix(line, "#"):
			t.Fatalf("%s: what does %q mean?", ignore, line)
		}
	}
	for _, start := range in {
		err := filepath.WalkDir(filepath.Join(root, start), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || slices.ContainsFunc(out, func(p string) bool {
				no, _ := path.Match(p, d.Name())
				return no
			}) {
				return err
			}
			name, err := filepath.Rel(root, file)
			names = append(names, name)
			return err
		})
		must(t, err)
	}
	return names
}
