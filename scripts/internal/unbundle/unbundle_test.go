package unbundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// A file of a bundle; the empty type is a regular file.
type file struct {
	name, text string
	kind       byte
	link       string
}

const inside = Top + "/" + Dir + "/"

func about(platform, goVersion string) file {
	text := fmt.Sprintf(`{"platform": %q, "go": %q, "commit": "abc"}`, platform, goVersion)
	return file{name: inside + AboutFile, text: text}
}

var good = []file{
	about(runtime.GOOS+"/"+runtime.GOARCH, "1.26.0"),
	{name: Top + "/README.md", text: "of the bundle"},
	{name: inside + "modules", kind: tar.TypeDir},
	{name: inside + "modules/example.test/dep/@v/v1.0.0.mod", text: "module example.test/dep"},
	{name: inside + "bin/hello", text: strings.Repeat("program ", 1<<12)},
}

func pack(t *testing.T, files []file) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	all := tar.NewWriter(zipped)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Typeflag: f.kind, Linkname: f.link, Mode: 0o755, Size: int64(len(f.text))}
		if f.kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		testkit.Must(t, all.WriteHeader(header))
		if _, err := all.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Must(t, errors.Join(all.Close(), zipped.Close()))
	return packed.Bytes()
}

// put writes a bundle and its checksum to a new folder.
func put(t *testing.T, data []byte, sum string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.tar.gz")
	sums := filepath.Join(filepath.Dir(path), SumsFile)
	err := errors.Join(os.WriteFile(path, data, 0o600), os.WriteFile(sums, []byte(sum+"  bundle.tar.gz\n"), 0o600))
	testkit.Must(t, err)
	return path
}

func checksum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }

// list returns all files in a folder.
func list(t *testing.T, dir string) string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		data, err := os.ReadFile(path)
		found = append(found, fmt.Sprintf("%s: %.20s", name, data))
		return err
	})
	testkit.Must(t, err)
	return strings.Join(found, "\n")
}

// newRoot makes a checkout with a file of the reader and a bundle that was unpacked before.
func newRoot(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), `a learner's "checkout"`)
	for name, text := range map[string]string{
		"README.md": "mine", Dir + "/" + AboutFile: good[0].text, Dir + "/old": "old",
	} {
		testkit.Write(t, filepath.Join(root, name), text)
	}
	return root
}

func TestABundleIsUnpackedBesideTheReadersFiles(t *testing.T) {
	root, data := newRoot(t), pack(t, good)
	dir, err := Open(t.Context(), root, put(t, data, checksum(data)), NoCode)
	testkit.Must(t, err)
	want := ".workshop/bundle/about.json: {\"platform\": \"linux/\n.workshop/bundle/bin/hello: program program prog\n" +
		".workshop/bundle/modules/example.test/dep/@v/v1.0.0.mod: module example.test/\nREADME.md: mine"
	if got := list(t, root); strings.ReplaceAll(got, runtime.GOOS, "linux") != want {
		t.Errorf("the checkout has\n%s\nwanted\n%s", got, want)
	}
	if info, err := os.Stat(filepath.Join(dir, "bin", "hello")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the program: %v %v", info, err)
	}
	if found, err := Open(t.Context(), root, "", ""); err != nil || found != dir {
		t.Errorf("what is unpacked is not found: %s %v", found, err)
	}
}

func TestABadBundleChangesNothing(t *testing.T) {
	whole := pack(t, good)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)/2] ^= 1
	with := func(f ...file) []byte { return pack(t, append(good[:1:1], f...)) }
	for what, bad := range map[string]struct {
		data []byte
		sum  string // empty means the right checksum
		want string
	}{
		"cut off":                      {whole[:len(whole)/2], checksum(whole), "differs from its checksum"},
		"damaged":                      {damaged, checksum(whole), "differs from its checksum"},
		"cut off before it was summed": {whole[:len(whole)/2], "", "is cut off: copy it again"},
		"another platform": {pack(t, []file{about("plan9/arm", "1.26.0")}),
			"", "the bundle is for plan9/arm, and this machine is"},
		"a newer Go": {pack(t, []file{about(runtime.GOOS+"/"+runtime.GOARCH, "1.99.1")}),
			"", "needs Go 1.99.1 or newer"},
		"a path out of its folder": {with(file{name: inside + "../../../evil", text: "x"}),
			"", "leads out of the folder"},
		"a path that begins with ..": {with(file{name: "../evil", text: "x"}), "", "leads out of the folder"},
		"an absolute path":           {with(file{name: "/tmp/evil", text: "x"}), "", "leads out of the folder"},
		"another folder":             {with(file{name: "elsewhere/evil", text: "x"}), "", "leads out of the folder"},
		"a symbolic link": {with(file{name: inside + "modules", kind: tar.TypeSymlink, link: "/tmp"},
			file{name: inside + "modules/evil", text: "x"}), "", "is neither a file nor a folder"},
		"a hard link": {with(file{name: inside + "evil", kind: tar.TypeLink, link: "/etc/passwd"}),
			"", "is neither a file nor a folder"},
		"a device": {with(file{name: inside + "evil", kind: tar.TypeFifo}),
			"", "is neither a file nor a folder"},
		"a file twice": {with(good[3], good[3]), "", "file exists"},
		"another archive": {pack(t, []file{{name: Top + "/README.md", text: "x"}}),
			"", "it is not a bundle of make bundle"},
		"no archive": {[]byte("<html>"), "", "is cut off"},
		"something else": {[]byte("<html> not found </html>"),
			"", "is not a bundle of make bundle, or is damaged"},
		"a checksum of another file": {whole, strings.Repeat("0", 64) + "  other\n", "has no checksum of bundle.tar.gz"},
	} {
		t.Run(what, func(t *testing.T) {
			root, sum := newRoot(t), bad.sum
			if sum == "" {
				sum = checksum(bad.data)
			}
			before := list(t, filepath.Dir(root))
			_, err := Open(t.Context(), root, put(t, bad.data, sum), NoCode)
			if err == nil || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says: %v\nwanted one sentence with: %s", err, bad.want)
			}
			if after := list(t, filepath.Dir(root)); after != before {
				t.Errorf("it left\n%s\nbefore there was\n%s", after, before)
			}
		})
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	data := pack(t, good)
	lonely := put(t, data, "")
	testkit.Must(t, os.Remove(filepath.Join(filepath.Dir(lonely), SumsFile)))
	for what, test := range map[string]struct{ file, want string }{
		"no bundle at all":         {"", "make from-bundle FILE=…"},
		"a file that is not there": {"/nowhere/bundle.tar.gz", "no such file"},
		"no checksum":              {lonely, "SHA256SUMS, which has the checksum of bundle.tar.gz, is not beside it"},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := Open(t.Context(), t.TempDir(), test.file, NoCode); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("it says %v, wanted %s", err, test.want)
			}
		})
	}
}

func TestAnInterruptLeavesNothing(t *testing.T) {
	root, data := newRoot(t), pack(t, good)
	before := list(t, root)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, root, put(t, data, checksum(data)), NoCode); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := unpack(ctx, put(t, data, checksum(data)), t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if after := list(t, root); after != before {
		t.Errorf("it left\n%s", after)
	}
}
