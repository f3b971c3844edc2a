//go:build !linux

package world

import "syscall"

// dieWithParent does nothing: this system has no such wish.
func dieWithParent(*syscall.SysProcAttr) {}
