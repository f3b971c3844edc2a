// Command image builds an operator's image without Docker, writes it as an archive or pushes it, and prints
// its digest.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"example.com/operator-workshop/06-deploy/internal/image"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o image.Options
	var archive string
	var push bool
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.Impl, "impl", "04", "the operator: 03 or 04")
	flags.StringVar(&o.Root, "root", "..", "folder with the chapters")
	flags.StringVar(&o.Arch, "arch", runtime.GOARCH, "processor: amd64, arm64, …")
	flags.StringVar(&o.Name, "name", "myweb-operator:workshop", "name and tag")
	flags.StringVar(&o.Version, "version", "v0.1.0", "version to stamp")
	flags.StringVar(&o.Commit, "commit", "unknown", "commit to stamp")
	flags.StringVar(&archive, "archive", "dist/image.tar", "file to write")
	flags.BoolVar(&push, "push", false, "push it to the registry in its name, instead of writing a file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	built, tag, err := image.Build(ctx, o)
	if err != nil {
		return err
	}
	if push {
		if err := remote.Write(tag, built, remote.WithContext(ctx),
			remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w: log in (docker login %s), or choose another name (IMG=)", tag, err,
				tag.RegistryStr())
		}
		return report(out, tag, built, "pushed")
	}
	if err := image.Write(archive, tag, built); err != nil {
		return err
	}
	return report(out, tag, built, archive)
}

// report prints the result of a build.
func report(out io.Writer, tag name.Tag, built v1.Image, where string) error {
	digest, err := built.Digest()
	if err != nil {
		return err
	}
	size, err := image.Size(built)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "image   %s\ndigest  %s\nsize    %.1f MB, unpacked %.1f MB\nwhere   %s\n",
		tag, digest, float64(size.Packed)/1e6, float64(size.Unpacked)/1e6, where)
	return err
}
