package tools

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatIsReadyMadeIsNotCompiled(t *testing.T) {
	for what, test := range map[string]struct{ stamp, says string }{
		"the pinned version":               {"", "ready-made"},
		"another program of the same size": {"as it was", "hello v2.0.0"},
		"another version":                  {"hello example.test/hello/v2@v1.9.0 ready-made linux/amd64 sha256:00\n", "hello v2.0.0"},
	} {
		t.Run(what, func(t *testing.T) {
			r := newRepository(t)
			stamps, err := r.Stamps(t.Context(), "hello")
			if err != nil {
				t.Fatal(err)
			}
			r.Ready = t.TempDir()
			program := []byte("#!/bin/sh\necho ready-made >&2\n")
			before, err := os.Stat(filepath.Join(r.Bin(), "hello"))
			if err != nil {
				t.Fatal(err)
			}
			program = append(program, make([]byte, before.Size()-int64(len(program)))...)
			stamp, was := test.stamp, stamps["hello"]
			switch stamp {
			case "":
				stamp = strings.Replace(was, fileSum(t, filepath.Join(r.Bin(), "hello")), fmt.Sprintf("%x", sha256.Sum256(program)), 1)
			case "as it was":
				stamp = was
			}
			if err := os.Mkdir(filepath.Join(r.Ready, ".stamps"), 0o755); err != nil {
				t.Fatal(err)
			}
			for path, data := range map[string]string{"hello": string(program), ".stamps/hello": stamp} {
				if err := os.WriteFile(filepath.Join(r.Ready, path), []byte(data), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(filepath.Join(r.Bin(), "hello")); err != nil {
				t.Fatal(err)
			}
			if err := r.ensure(); err != nil {
				t.Fatal(err)
			}
			out, _ := exec.Command(filepath.Join(r.Bin(), "hello")).CombinedOutput()
			if got := strings.Trim(string(out), "\x00\n"); !strings.HasPrefix(got, test.says) {
				t.Errorf("it says %.80q, wanted %q\n%s", got, test.says, r.out)
			}
		})
	}
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	hex, err := sum(path)
	if err != nil {
		t.Fatal(err)
	}
	return hex
}
