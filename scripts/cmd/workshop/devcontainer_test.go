package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The dev container cannot be built by a test. What it says of this repository can be held against it.
func TestTheDevContainerFitsTheRepository(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var container struct {
		Image            string
		PostCreate       string `json:"postCreateCommand"`
		HostRequirements struct {
			CPUs            int
			Memory, Storage string
		}
	}
	if err := json.Unmarshal(read(".devcontainer/devcontainer.json"), &container); err != nil {
		t.Fatal(err)
	}
	var pins struct{ Go string }
	if err := yaml.Unmarshal(read("scripts/versions.yaml"), &pins); err != nil {
		t.Fatal(err)
	}
	if _, tag, _ := strings.Cut(container.Image, ":"); tag == "" || !strings.HasPrefix(pins.Go+".", tag+".") {
		t.Errorf("the image is %s, scripts/versions.yaml pins Go %s", container.Image, pins.Go)
	}
	targets, ok := strings.CutPrefix(container.PostCreate, "make ")
	makefile := read("Makefile")
	for _, target := range strings.Fields(targets) {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
			t.Errorf("the Makefile has no target %q", target)
		}
	}
	if !ok || !slices.Contains(strings.Fields(targets), "tools") {
		t.Errorf("%q does not compile the tools ahead", container.PostCreate)
	}
	if h := container.HostRequirements; h.CPUs < 2 || h.Memory != "8gb" || h.Storage != "32gb" {
		t.Errorf("TEACHING.md and the first build ask for 2 cores, 8 GB of memory and 32 GB of disk: %+v", h)
	}
}
