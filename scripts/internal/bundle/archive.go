package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"example.com/operator-workshop/scripts/internal/unbundle"
)

// An archive is one bundle. Its description comes first, then the checkout, then the files for which a room has no
// network.
type archive struct {
	Packer
	dir   string
	about unbundle.About
	files *tar.Writer
}

// write makes the bundle, and returns its checksum.
func (a archive) write(ctx context.Context) (string, error) {
	b := a.Builder
	if a.about.Platform != here() {
		b.Platform = a.about.Platform
		b.Report.Line("the programs for %s: the first time they are compiled, which takes as long as the first make up",
			b.Platform)
	}
	if err := b.Ensure(ctx, b.Names()...); err != nil {
		return "", err
	}
	folders := map[string]string{"modules": filepath.Join(a.dir, "modules")}
	if a.about.NodeImage != "" {
		folders[imagesFile] = filepath.Join(a.dir, imagesFile)
	}
	for _, name := range b.Names() {
		folders["bin/"+name] = filepath.Join(b.Bin(), name)
	}
	b.Report.Line("packing for %s", a.about.Platform)
	file, err := os.Create(filepath.Join(a.dir, unbundle.File(a.about.Platform)))
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(file, hash), gzip.BestSpeed) // modules are compressed already
	if err != nil {
		return "", err
	}
	a.files = tar.NewWriter(zipped)
	if err := errors.Join(a.fill(ctx, folders), a.files.Close(), zipped.Close(), file.Close()); err != nil {
		return "", err
	}
	info, err := os.Stat(file.Name())
	if err != nil {
		return "", err
	}
	b.Report.Line("packed %s: %d MB", filepath.Base(file.Name()), info.Size()>>20)
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

func (a archive) fill(ctx context.Context, folders map[string]string) error {
	about, err := json.MarshalIndent(a.about, "", "  ")
	if err != nil {
		return err
	}
	if err := a.add(unbundle.AboutFile, append(about, '\n')); err != nil {
		return err
	}
	if err := a.checkout(ctx); err != nil {
		return err
	}
	for _, to := range slices.Sorted(maps.Keys(folders)) {
		if err := a.tree(ctx, folders[to], to); err != nil {
			return err
		}
	}
	return nil
}

// checkout copies the committed files.
func (a archive) checkout(ctx context.Context) error {
	committed, err := a.git(ctx, "archive", "--format=tar", "--prefix="+unbundle.Top+"/", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("git archive: %w", err)
	}
	for files := tar.NewReader(bytes.NewReader(committed)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && header.Typeflag != tar.TypeXGlobalHeader {
			if err = a.files.WriteHeader(header); err == nil {
				_, err = io.Copy(a.files, files)
			}
		}
		if err != nil {
			return err
		}
	}
}

// add writes a small file.
func (a archive) add(name string, data []byte) error {
	err := a.files.WriteHeader(&tar.Header{Name: path.Join(unbundle.Top, unbundle.Dir, name), Typeflag: tar.TypeReg,
		Mode: 0o644, Size: int64(len(data))})
	if err == nil {
		_, err = a.files.Write(data)
	}
	return err
}

// tree writes a file, or all files in a folder, without their owner and time.
func (a archive) tree(ctx context.Context, from, to string) error {
	return filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		source, err := os.Open(file)
		if err != nil {
			return err
		}
		defer source.Close()
		err = a.files.WriteHeader(&tar.Header{Name: path.Join(unbundle.Top, unbundle.Dir, to, filepath.ToSlash(name)),
			Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size()})
		if err == nil {
			_, err = io.Copy(a.files, source)
		}
		return err
	})
}
