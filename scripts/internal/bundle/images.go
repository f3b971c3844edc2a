package bundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/internal/tools"
)

// imagesFile is the file that `docker save` wrote.
const imagesFile = "images.tar"

// NodeFile is the file in the workshop's state folder with the name of the node image that a bundle brought: kind would
// look for its default image by a digest, which images lose when they are saved.
const NodeFile = "kind-node-image"

// DefaultNode is the node image that the pinned kind uses.
func DefaultNode(ctx context.Context, b tools.Builder) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kind")
	cmd.Dir, cmd.Env = filepath.Join(b.Root, "scripts", "tools"), tools.Env()
	dir, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("find the sources of kind: %w", err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg/apis/config/defaults/image.go"))
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`"(kindest/node:[^"]+)"`).FindSubmatch(source)
	if found == nil {
		return "", errors.New("the sources of kind name no node image: say which, with KIND_NODE_IMAGE=…")
	}
	return string(found[1]), nil
}

// tagged is an image's name without its digest.
func tagged(image string) string {
	name, _, _ := strings.Cut(image, "@")
	return name
}

// saveImages writes the images to a file in dir, and returns their architecture; empty without images.
func (p Packer) saveImages(ctx context.Context, dir string) (string, error) {
	if len(p.Images) == 0 {
		return "", nil
	}
	arch, err := docker(ctx, 15*time.Second, "version", "--format", "{{.Server.Arch}}")
	if err != nil {
		return "", fmt.Errorf("KIND=1 packs images, and Docker does not answer (%w): start it, or leave KIND=1 out", err)
	}
	fits := func(name string) bool { return path.Base(name) == arch }
	if !slices.ContainsFunc(p.Platforms, fits) {
		return "", fmt.Errorf("KIND=1: the images of this Docker are for %s, and none of PLATFORMS=%s is: add "+
			"linux/%[1]s, or leave KIND=1 out", arch, strings.Join(p.Platforms, ","))
	}
	save := []string{"save", "-o", filepath.Join(dir, imagesFile)}
	for _, image := range append([]string{p.NodeImage}, p.Images...) {
		if _, err := docker(ctx, time.Minute, "image", "inspect", image); err != nil {
			p.Builder.Report.Line("pulling %s", image)
			if _, err := docker(ctx, time.Hour, "pull", "-q", image); err != nil {
				return "", fmt.Errorf("the image %s is not here and cannot be pulled: %w", image, err)
			}
		}
		if name := tagged(image); name != image {
			if _, err := docker(ctx, time.Minute, "tag", image, name); err != nil {
				return "", err
			}
		}
		save = append(save, tagged(image))
	}
	p.Builder.Report.Line("saving %d images for %s", len(save)-3, arch)
	_, err = docker(ctx, time.Hour, save...)
	return arch, err
}

func docker(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) && len(failed.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}
