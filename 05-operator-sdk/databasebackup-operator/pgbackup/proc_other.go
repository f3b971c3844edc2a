//go:build unix && !linux

package main

import "syscall"

// ownGroup starts a tool in a process group of its own, so that what it starts is stopped with it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
