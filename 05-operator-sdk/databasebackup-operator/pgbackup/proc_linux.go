package main

import "syscall"

// ownGroup starts a tool in a process group of its own, so that what it starts is stopped with it. It dies
// with this program even when that is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
