package pgbackup

import "syscall"

// ownGroup starts a tool in a process group of its own, so that what it starts is stopped with it. It dies
// with this program even when that is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// keepMemoryPrivate keeps other processes of the same user from reading the environment and the memory of this one,
// where the password is: what runs in the scratch server, out of a dump, is such a process.
func keepMemoryPrivate() {
	const setDumpable = 4 // PR_SET_DUMPABLE; it does not fail
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setDumpable, 0, 0)
}
