package tools

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity changes when a file is replaced, written or renamed.
func identity(file fs.FileInfo) string {
	s := file.Sys().(*syscall.Stat_t) // Unix systems return this type for each file
	return fmt.Sprintf("%d bytes, inode %d, changed %d.%09d\n", s.Size, s.Ino, s.Ctimespec.Sec, s.Ctimespec.Nsec)
}
