// Package bundle packs the files that a room without a network needs, and installs and serves them there. A bundle has
// nothing of Go's build cache: compiled packages depend on the path of the module cache, which differs between home
// folders.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"example.com/operator-workshop/scripts/examine/lock"
	"example.com/operator-workshop/scripts/internal/chapter"
	"example.com/operator-workshop/scripts/internal/tools"
	"example.com/operator-workshop/scripts/internal/unbundle"
)

// A Packer makes bundles.
type Packer struct {
	// Builder builds the programs.
	Builder tools.Builder
	// Out is the folder of the bundles; it is replaced in one step.
	Out string
	// Platforms are the platforms of the bundles, such as linux/amd64.
	Platforms []string
	// Images are packed for the platforms for which Docker has them. Without Images, bundles have no images.
	Images []string
	// NodeImage is the image of kind's node. It may have a digest.
	NodeImage string
}

var platform = regexp.MustCompile(`^(linux|darwin)/(amd64|arm64)$`)

// Pack makes a bundle for each platform, their checksums, and a folder with all modules, which can be served as a
// proxy.
func (p Packer) Pack(ctx context.Context) (err error) {
	for _, name := range p.Platforms {
		if !platform.MatchString(name) {
			return fmt.Errorf("PLATFORMS=%s: the workshop runs on linux/amd64, linux/arm64, darwin/amd64 and darwin/arm64", name)
		}
	}
	if err := os.MkdirAll(filepath.Dir(p.Out), 0o755); err != nil {
		return err
	}
	release, err := lock.Acquire(ctx, p.Out+".lock", func(owner string) {
		p.Builder.Report.Line("process %s makes a bundle here, waiting for it", owner)
	})
	if err != nil {
		return err
	}
	defer release()
	defer os.Remove(p.Out + ".lock")
	fresh, old := p.Out+".new", p.Out+".old"
	if err := errors.Join(os.RemoveAll(fresh), os.RemoveAll(old), os.Mkdir(fresh, 0o755)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh), os.RemoveAll(old)) }()
	if err := p.pack(ctx, fresh); err != nil {
		return whole(err)
	}
	if err := os.Rename(p.Out, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, p.Out)
}

func whole(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("the disk is full; no bundle was made: free some space and try again: %w", err)
	}
	return err
}

// pack fills a folder.
func (p Packer) pack(ctx context.Context, dir string) error {
	commit, err := p.commit(ctx)
	if err != nil {
		return err
	}
	modules, err := Modules(p.Builder.Root)
	if err != nil {
		return err
	}
	goVersion, err := chapter.GoVersion(p.Builder.Root)
	if err != nil {
		return err
	}
	p.Builder.Report.Line("this takes about 2 GB of disk while it runs; a bundle has about 500 MB, without images")
	images, err := p.saveImages(ctx, dir)
	if err != nil {
		return err
	}
	p.Builder.Report.Line("collecting the modules that the workshop is built from")
	if err := p.collect(ctx, modules, dir); err != nil {
		return err
	}
	var sums strings.Builder
	for _, name := range p.Platforms {
		a := archive{Packer: p, dir: dir, about: unbundle.About{Platform: name, Go: goVersion, Commit: commit}}
		switch {
		case images == path.Base(name): // also on macOS, where Docker runs Linux
			a.about.NodeImage = tagged(p.NodeImage)
		case images != "":
			p.Builder.Report.Line("note: the bundle for %s has no images, because those of this Docker are for %s",
				name, images)
		}
		sum, err := a.write(ctx)
		if err != nil {
			return fmt.Errorf("pack for %s: %w", name, err)
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, unbundle.File(name))
	}
	if err := os.RemoveAll(filepath.Join(dir, imagesFile)); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, unbundle.SumsFile), []byte(sums.String()), 0o644)
}

// commit is the commit of the checkout that is packed.
func (p Packer) commit(ctx context.Context) (string, error) {
	out, err := p.git(ctx, "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "", fmt.Errorf("a bundle is made from committed files, and %s is not a checkout of git (%w)",
			p.Builder.Root, err)
	}
	if changed, _ := p.git(ctx, "status", "--porcelain", "--untracked-files=no").Output(); len(changed) > 0 {
		p.Builder.Report.Line("note: changes that are not committed are not packed (git status shows them)")
	}
	return strings.TrimSpace(string(out)), nil
}

func (p Packer) git(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "git", append([]string{"-C", p.Builder.Root}, args...)...)
}

// Modules are the modules whose dependencies a room needs. Linters are not among them: they are for developers of the
// workshop. operator-sdk and restic are packed as programs, and OLM runs on kind on a machine with a network. The editor
// works without gopls.
func Modules(root string) ([]string, error) {
	all, err := chapter.Modules(root)
	return slices.DeleteFunc(all, func(dir string) bool {
		dir = filepath.ToSlash(dir)
		return strings.HasPrefix(dir, "scripts/linters") ||
			slices.Contains([]string{"scripts/operator-sdk", "scripts/restic", "scripts/gopls", "05-operator-sdk/olm/programs"}, dir)
	}), err
}

// collect lets the go command fetch everything that it needs for the modules into an empty module cache. It takes a
// module from this machine's module cache where that has it. The fetched files have the form of a module proxy, and
// become the folder modules.
func (p Packer) collect(ctx context.Context, modules []string, dir string) error {
	cache := filepath.Join(dir, "cache")
	b := p.Builder
	reply, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		return fmt.Errorf("ask the go command for its module cache: %w", err)
	}
	have, proxy, _ := strings.Cut(strings.TrimSpace(string(reply)), "\n")
	local := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(have, "cache", "download"))}
	b.Env = []string{"GOMODCACHE=" + cache, "GOPROXY=" + local.String() + "," + proxy, "GOFLAGS=-mod=readonly -modcacherw",
		"GONOPROXY=none"}
	for _, b.Platform = range p.Platforms {
		for _, module := range modules {
			if err := b.Resolve(ctx, module); err != nil {
				return err
			}
		}
	}
	if err := os.Rename(filepath.Join(cache, "cache", "download"), filepath.Join(dir, "modules")); err != nil {
		return err
	}
	err = filepath.WalkDir(filepath.Join(dir, "modules"), func(path string, entry fs.DirEntry, err error) error {
		switch filepath.Ext(path) {
		case ".info", ".mod", ".zip":
			return err
		}
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Remove(path)
	})
	return errors.Join(err, os.RemoveAll(cache))
}

// here is this machine's platform.
func here() string { return runtime.GOOS + "/" + runtime.GOARCH }
