package bundle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/operator-workshop/scripts/internal/tools"
	"example.com/operator-workshop/scripts/internal/unbundle"
)

// Install puts the programs of the bundle that is unpacked in the checkout into bin/, its modules into the module
// cache, and its images into Docker. GOPROXY names the bundle's modules: scripts/workshop has set it. After that, the
// workshop needs no setting, and the unpacked bundle is deleted. When its images could not be loaded, the unpacked
// bundle stays for another try.
func Install(ctx context.Context, b tools.Builder, state string) error {
	dir := filepath.Join(b.Root, filepath.FromSlash(unbundle.Dir))
	about, err := unbundle.Read(dir)
	if err != nil {
		return err
	}
	b.Report.Line("installing the bundle of commit %s for %s", about.Commit, about.Platform)
	modules, err := Modules(b.Root)
	if err != nil {
		return err
	}
	for _, module := range modules {
		if err := b.Resolve(ctx, module); err != nil {
			return fmt.Errorf("the bundle, made from commit %s, lacks what this checkout asks for (unpack all of it with tar "+
				"-xzf, it has a checkout): %w", about.Commit, err)
		}
	}
	if err := b.Adopt(filepath.Join(dir, "bin")); err != nil {
		return err
	}
	if err := b.Ensure(ctx, b.Names()...); err != nil {
		return err
	}
	if about.NodeImage != "" {
		if err := loadImages(ctx, b, dir, state, about.NodeImage); err != nil {
			b.Report.Line("note: everything is installed but the images for kind: %v", err)
			b.Report.Line("If you do not want them, remove the folder %s.", unbundle.Dir)
			return nil
		}
	}
	return os.RemoveAll(dir)
}

// loadImages loads the images into Docker, and records which of them is kind's node image.
func loadImages(ctx context.Context, b tools.Builder, dir, state, node string) error {
	if _, err := docker(ctx, 15*time.Second, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("there is no answer from Docker (%w): start it and run make from-bundle again, without FILE", err)
	}
	b.Report.Line("loading the images for kind into Docker")
	if _, err := docker(ctx, time.Hour, "load", "-i", filepath.Join(dir, imagesFile)); err != nil {
		return err
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(state, NodeFile), []byte(node+"\n"), 0o644)
}
