package tools

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A stamp is a file about a program in bin/. Its first line says what was built, from what, with the SHA-256 of the
// program. Its second line is the identity of the file that was hashed.
//
// It shows that a program is not the one that was built: half of it after a power cut, or another one in its place. To
// hash all of bin/ takes 1.6 s of a core, too long for each target, so a program is hashed again only when its identity
// changed: each write and each rename change it, and no program can set the time of the change. A stamp is no defence
// against a user who may write to bin/, who may write stamps too. Programs of a bundle are always hashed, and the code
// of the bundle vouches for their stamps.

func (b Builder) stampPath(name string) string { return filepath.Join(b.Bin(), ".stamps", name) }

// withSum is the first line of a stamp.
func withSum(stamp, sum string) string { return fmt.Sprintf("%s sha256:%s\n", stamp, sum) }

// isBuilt reports whether bin/ has the program that one of the stamps describes, and all of it.
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
	what, seen, _ := strings.Cut(string(have), "\n")
	stamp, recorded, _ := strings.Cut(what, " sha256:")
	if !slices.Contains(stamps, stamp) {
		return false
	}
	if seen == identity(program) {
		return true
	}
	now, err := sum(path)
	if err != nil || now != recorded {
		return false
	}
	_ = b.writeStamp(name, withSum(stamp, now), program) // in a bin/ that cannot be written, it is hashed each time
	return true
}

// writeStamp adds the identity of the program to the first line of its stamp. The file is whole or not there.
func (b Builder) writeStamp(name, what string, program fs.FileInfo) error {
	file, err := os.CreateTemp(filepath.Dir(b.stampPath(name)), ".new-")
	if err != nil {
		return err
	}
	_, err = file.WriteString(what + identity(program))
	if err = errors.Join(err, file.Chmod(0o644), file.Close()); err == nil {
		err = os.Rename(file.Name(), b.stampPath(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// sum is the SHA-256 of a file.
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
