package tools

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A stamp is a file about a program in bin/. Its first line has the name of the program, its sources, and its SHA-256.
// Its second line is the identity of the file that was hashed.
//
// A stamp shows that a file is not the program that was built: a part of it after a power cut, or another program in
// its place. Hashing all of bin/ takes 1.6 s of a core, too long for each target, so a program is hashed again only
// when its identity has changed: each write and each rename change the identity, and no program can set the time of the
// change. A stamp does not protect against a user who may write to bin/, because that user may write stamps, too.
// Programs of a bundle are always hashed, and the code of the bundle guarantees their stamps.

func (b Builder) stampPath(name string) string { return filepath.Join(b.Bin(), ".stamps", name) }

// withSum is the first line of a stamp.
func withSum(stamp, sum string) string { return fmt.Sprintf("%s sha256:%s\n", stamp, sum) }

// isBuilt reports whether bin/ has the complete program that one of the stamps describes.
func (b Builder) isBuilt(name string, stamps ...string) bool {
	have, err := os.ReadFile(b.stampPath(name))
	if err != nil {
		return false
	}
	path := filepath.Join(b.Bin(), name)
	program, err := os.Lstat(path)
	if err != nil || !program.Mode().IsRegular() || program.Mode()&0o111 == 0 {
		return false
	}
	is, err := identity(path)
	if err != nil {
		return false
	}
	what, seen, _ := strings.Cut(string(have), "\n")
	stamp, recorded, _ := strings.Cut(what, " sha256:")
	if !slices.Contains(stamps, stamp) {
		return false
	}
	if seen == is {
		return true
	}
	now, err := sum(path)
	if err != nil || now != recorded {
		return false
	}
	_ = b.writeStamp(name, withSum(stamp, now)+is) // when bin/ cannot be written, the program is hashed each time
	return true
}

// identity changes when a file is replaced, written or renamed.
func identity(path string) (string, error) {
	var s unix.Stat_t
	err := unix.Lstat(path, &s)
	return fmt.Sprintf("%d bytes, inode %d, changed %d.%09d\n", s.Size, s.Ino, s.Ctim.Sec, s.Ctim.Nsec), err
}

// writeStamp writes the stamp of a program. The file is complete or does not exist.
func (b Builder) writeStamp(name, stamp string) error {
	file, err := os.CreateTemp(filepath.Dir(b.stampPath(name)), ".new-")
	if err != nil {
		return err
	}
	_, err = file.WriteString(stamp)
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), b.stampPath(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// sum returns the SHA-256 of a file.
func sum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, file)
	return fmt.Sprintf("%x", hash.Sum(nil)), err
}
