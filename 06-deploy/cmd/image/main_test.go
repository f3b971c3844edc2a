package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"

	"example.com/operator-workshop/06-deploy/internal/image"
)

// source returns the flag that names the folder of the chapters; without them the test is skipped.
func source(t *testing.T) string {
	t.Helper()
	const root = "../../.."
	if _, err := os.Stat(filepath.Join(root, image.Sources["04"].Chapter)); err != nil {
		t.Skip("the chapters are not beside this folder")
	}
	return "--root=" + root
}

// A small program compiles at once. The images of the operators are tested where they are made.
func init() {
	image.Sources["hello"] = image.Source{Chapter: "06-deploy", Package: "./internal/image/testdata/hello", Title: "hello"}
}

var digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// The archive and the image in a registry are the same.
func TestPushedOrWrittenItIsTheSameImage(t *testing.T) {
	root := source(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	name := "--name=" + strings.TrimPrefix(server.URL, "http://") + "/team/myweb-operator:v1"
	archive := filepath.Join(t.TempDir(), "image.tar")
	var written, pushed bytes.Buffer
	if err := run(t.Context(), []string{root, "--impl=hello", name, "--archive=" + archive}, &written); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), []string{root, "--impl=hello", name, "--push"}, &pushed); err != nil {
		t.Fatal(err)
	}
	got, err := crane.Digest(strings.TrimPrefix(name, "--name="))
	if err != nil {
		t.Fatal(err)
	}
	for where, out := range map[string]string{"written": written.String(), "pushed": pushed.String()} {
		if digest.FindString(out) != got {
			t.Errorf("%s: the registry has %s:\n%s", where, got, out)
		}
	}
	if _, err := crane.Load(archive); err != nil {
		t.Errorf("the archive cannot be loaded: %v", err)
	}
}

func TestBadInputSaysWhatToDo(t *testing.T) {
	root := source(t)
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"a registry that is not there": {[]string{root, "--impl=hello", "--name=127.0.0.1:1/myweb-operator:v1", "--push"},
			"log in (docker login 127.0.0.1:1), or choose another name (IMG=)"},
		"a folder that is a file": {[]string{root, "--impl=hello", "--archive=main.go/image.tar"}, "main.go"},
		"an unknown flag":         {[]string{"--colour"}, "flag provided but not defined: -colour"},
	} {
		err := run(t.Context(), test.args, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}
