package world

import "syscall"

// dieWithParent lets the kernel kill the process when this one is gone.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
