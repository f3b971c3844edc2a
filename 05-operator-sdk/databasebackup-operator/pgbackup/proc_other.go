//go:build unix && !linux

package main

import "syscall"

// ownGroup starts a tool in a separate process group, so that the processes that it starts are stopped with it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
