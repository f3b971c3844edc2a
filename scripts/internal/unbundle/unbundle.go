// Package unbundle checks and unpacks a bundle of `make bundle`. It imports the standard library alone: on a machine
// without a network, all other modules come from the bundle.
package unbundle

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"go/version"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const (
	// Top is the folder with all files of a bundle: a checkout. No clone has this name, so no clone is overwritten.
	Top = "operator-workshop-offline"
	// Dir is the part of a bundle, relative to Top, that is not the checkout itself.
	Dir = ".workshop/bundle"
	// AboutFile is the first file of a bundle, relative to Dir.
	AboutFile = "about.json"
	// SumsFile is the file beside the bundles that lists their checksums, in the format of sha256sum.
	SumsFile = "SHA256SUMS"
	// Name begins the file name of every bundle.
	Name = "operator-workshop-"
)

// About describes a bundle.
type About struct {
	// Platform is the platform of its programs, such as linux/amd64.
	Platform string `json:"platform"`
	// Go is the oldest Go version that its modules accept, such as 1.26.3.
	Go string `json:"go"`
	// Commit is the commit of the checkout from which it was made.
	Commit string `json:"commit"`
	// NodeImage is the image of kind's node; empty in a bundle without images.
	NodeImage string `json:"nodeImage,omitempty"`
}

// File returns the name of the bundle for a platform.
func File(platform string) string { return Name + strings.ReplaceAll(platform, "/", "-") + ".tar.gz" }

// Open makes the content of a bundle available in root's Dir, which is replaced in one step, and returns that folder.
// An empty file stands for the bundle that was unpacked there by hand, or for the bundle that was made here. The code
// is that of the person who made the bundle, or NoCode; only the bundle that was made here needs no code.
func Open(ctx context.Context, root, file, code string) (string, error) {
	dir := filepath.Join(root, filepath.FromSlash(Dir))
	if file == "" {
		if about, err := Read(dir); err == nil {
			if code != "" && code != NoCode {
				return "", errUnpacked
			}
			return dir, fits(about)
		}
		file = filepath.Join(root, "out", "bundle", File(runtime.GOOS+"/"+runtime.GOARCH))
		if _, err := os.Stat(file); err != nil {
			return "", errors.New("no bundle is unpacked or was made here: say which to take, with make from-bundle FILE=…")
		}
		code = cmp.Or(code, NoCode)
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a folder: name the file in it, with FILE=%s", file,
			filepath.Join(file, File(runtime.GOOS+"/"+runtime.GOARCH)))
	}
	if err := verify(ctx, file, code); err != nil {
		return "", err
	}
	fresh := dir + ".new"
	err := errors.Join(os.RemoveAll(fresh), os.MkdirAll(fresh, 0o700))
	if err == nil {
		err = unpack(ctx, file, fresh)
	}
	if err == nil {
		err = errors.Join(os.RemoveAll(dir), os.Rename(fresh, dir))
	}
	if err != nil {
		return "", errors.Join(explain(file, err), os.RemoveAll(fresh))
	}
	return dir, nil
}

// Read returns the description of a bundle that is unpacked in dir.
func Read(dir string) (about About, err error) {
	data, err := os.ReadFile(filepath.Join(dir, AboutFile))
	if err != nil {
		return about, err
	}
	return about, json.Unmarshal(data, &about)
}

// fits returns an error when this machine cannot use a bundle.
func fits(about About) error {
	if here := runtime.GOOS + "/" + runtime.GOARCH; about.Platform != here {
		return fmt.Errorf("the bundle is for %s, and this machine is %s: take the one for %s", about.Platform, here, here)
	}
	if have := runtime.Version(); version.IsValid(have) && version.Compare(have, "go"+about.Go) < 0 {
		return fmt.Errorf("this Go is %s, and the bundle needs Go %s or newer: install it from https://go.dev/dl/",
			have, about.Go)
	}
	return nil
}

// verify compares a bundle with its checksum in the list beside it, and the list with the code.
func verify(ctx context.Context, file, code string) error {
	bundle, err := os.Open(file)
	if err != nil {
		return err
	}
	defer bundle.Close()
	name := filepath.Base(file)
	sums, err := os.ReadFile(filepath.Join(filepath.Dir(file), SumsFile))
	if err != nil {
		return fmt.Errorf("%s, which has the checksum of %s, is not beside it: copy it, too", SumsFile, name)
	}
	if err := vouched(code, sums); err != nil {
		return err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, stoppable{ctx, bundle}); err != nil {
		return err
	}
	for line := range strings.Lines(string(sums)) {
		if words := strings.Fields(line); len(words) == 2 && words[1] == name {
			if words[0] != fmt.Sprintf("%x", hash.Sum(nil)) {
				return fmt.Errorf("%s differs from its checksum in %s: it is cut off or damaged, copy it again", name, SumsFile)
			}
			return nil
		}
	}
	return fmt.Errorf("%s has no checksum of %s: copy both from the same place", SumsFile, name)
}

// stoppable is a reader that ends with its context.
type stoppable struct {
	ctx context.Context
	io.Reader
}

func (s stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(p)
}

// unpack writes the files that a bundle has in Dir to a folder, and writes nothing outside of it. It skips the checkout
// in the bundle, because its caller has a checkout.
func unpack(ctx context.Context, file, to string) error {
	bundle, err := os.Open(file)
	if err != nil {
		return err
	}
	defer bundle.Close()
	unzipped, err := gzip.NewReader(stoppable{ctx, bundle})
	if err != nil {
		return err
	}
	dir, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dir.Close()
	known := false
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			_, err = io.Copy(io.Discard, unzipped) // the checksum of gzip comes last
			return err
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeXGlobalHeader { // git writes its commit there
			continue
		}
		if err := allowed(header); err != nil {
			return err
		}
		name, ours := strings.CutPrefix(path.Clean(header.Name), Top+"/"+Dir+"/")
		if name == AboutFile && ours && !known {
			known = true
			err = check(dir, files)
		} else if !known {
			return errNoBundle
		} else if ours && header.Typeflag == tar.TypeReg {
			err = write(dir, name, files, header.FileInfo().Mode())
		}
		if err != nil {
			return err
		}
	}
}

var errNoBundle = errors.New("it is not a bundle of make bundle")

// allowed refuses entries that could be written outside of the folder of the bundle.
func allowed(header *tar.Header) error {
	if !strings.HasPrefix(path.Clean(header.Name)+"/", Top+"/") {
		return fmt.Errorf("its file %q leads out of the folder that it is unpacked to", header.Name)
	}
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return fmt.Errorf("its %q is neither a file nor a folder", header.Name)
	}
	return nil
}

// check reads the description of a bundle, and keeps it when this machine can use the bundle.
func check(dir *os.Root, file io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(file, 1<<16))
	if err != nil {
		return err
	}
	var about About
	if json.Unmarshal(data, &about) != nil {
		return errNoBundle
	}
	if err := fits(about); err != nil {
		return err
	}
	return write(dir, AboutFile, bytes.NewReader(data), 0o644)
}

func write(dir *os.Root, name string, from io.Reader, mode fs.FileMode) error {
	if err := dir.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode.Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	return errors.Join(err, file.Close())
}

// explain adds to an error the bundle that it is about, and what to do.
func explain(file string, err error) error {
	name := filepath.Base(file)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fmt.Errorf("%s is cut off: copy it again", name)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("the disk is too full to unpack %s; nothing was changed: free some space and try again", name)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.Is(err, tar.ErrHeader):
		return fmt.Errorf("%s is not a bundle of make bundle, or is damaged: copy it again (%w)", name, err)
	}
	return fmt.Errorf("%s was not unpacked: %w", name, err)
}
