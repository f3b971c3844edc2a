// Package image builds the image of an operator without Docker: it compiles the program, puts it into a
// layer, and writes an archive for `docker load` and `kind load image-archive`.
package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A Source is the source of an operator of the workshop.
type Source struct {
	// Chapter is the folder beside this one, Package the main package in it.
	Chapter, Package string
	// Title describes the program.
	Title string
}

// Sources are the operators that this chapter deploys, by the number of their chapter.
var Sources = map[string]Source{
	"03": {"03-client-go-controller", "./cmd/myweb-controller", "MyWeb operator on client-go"},
	"04": {"04-controller-runtime", "./cmd/myweb-operator", "MyWeb operator on controller-runtime"},
}

// Options say what to build. Two builds with the same options, source and Go give the same bytes.
type Options struct {
	// Impl is a key of Sources, Root the folder that its chapter is in.
	Impl, Root string
	// Arch is a GOARCH.
	Arch string
	// Name is the image's name and tag.
	Name string
	// Version and Commit are stamped into the program and onto the image.
	Version, Commit string
}

// program returns the source that the options name.
func (o Options) program() (Source, error) {
	p, ok := Sources[o.Impl]
	if !ok {
		return p, fmt.Errorf("IMPL=%s: there is no such operator: choose 03 or 04", o.Impl)
	}
	if _, err := os.Stat(filepath.Join(o.Root, p.Chapter, "go.mod")); err != nil {
		return p, fmt.Errorf("the source of the operator should be in %s: %w: set WORKSHOP_ROOT to a checkout of the workshop",
			filepath.Join(o.Root, p.Chapter), err)
	}
	return p, nil
}

// Compile writes the operator's program, for Linux, to a file.
func Compile(ctx context.Context, o Options, file string) error {
	p, err := o.program()
	if err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	// The program contains no symbols, no paths of this machine, and nothing from the state of git. Version and commit
	// say which source it was made from. They are in the build ID, which every Go program has, so that the source of
	// the operators needs no variable for them.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid="+o.stamp(), "-o", file, p.Package)
	cmd.Dir = filepath.Join(o.Root, p.Chapter)
	cmd.Env = append(clean(os.Environ()), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+o.Arch, "GOWORK=off",
		"GOFLAGS=-mod=readonly")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile %s of %s for linux/%s: %w\n%s", p.Package, p.Chapter, o.Arch, err,
			strings.TrimSpace(said.String()))
	}
	return nil
}

// clean leaves out variables that a user may have set for other builds: they would change the program.
func clean(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GOEXPERIMENT", "GOAMD64", "GOARM64", "GODEBUG"}, name)
	})
}

// stamp is the program's build ID: `go tool buildid FILE` prints it.
func (o Options) stamp() string { return o.Version + "/" + o.Commit }

// check returns an error that names the first invalid option.
func (o Options) check() error {
	for name, value := range map[string]string{"--version": o.Version, "--commit": o.Commit} {
		if value == "" || strings.ContainsAny(value, " \t\n'\"/\\") {
			return fmt.Errorf("%s is %q: it must be one word without quotes and slashes, such as v0.1.0", name, value)
		}
	}
	return nil
}
