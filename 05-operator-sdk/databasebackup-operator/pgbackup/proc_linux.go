package main

import "syscall"

// ownGroup starts a tool in a separate process group, so that the processes that it starts are stopped with it. The
// tool ends with this program, even if this program is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
