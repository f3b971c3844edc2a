package process

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// AtPort returns the process of this user that has a connection from one port of this machine to another. Only Linux
// reports it. The error is os.ErrProcessDone when no process that can be seen has the connection.
func AtPort(from, to int) (Identity, error) {
	socket := socketOf(from, to)
	if socket == "" {
		return Identity{}, os.ErrProcessDone
	}
	// A program that has just connected has often just started, and has a high number.
	for _, pid := range slices.Backward(slices.Sorted(slices.Values(Numbers()))) {
		files := fmt.Sprintf("/proc/%d/fd", pid)
		entries, err := os.ReadDir(files) // fails for processes of other users
		if err != nil {
			continue
		}
		for _, entry := range entries {
			if link, err := os.Readlink(filepath.Join(files, entry.Name())); err == nil && link == socket {
				return Of(pid)
			}
		}
	}
	return Identity{}, os.ErrProcessDone
}

// socketOf returns the name in /proc of the socket at the near end of a connection, or "".
func socketOf(from, to int) string {
	// An address is in hexadecimal digits; an IPv4 address may also be the end of an IPv6 address.
	const address, local, remote, inode = "0100007F:%04X", 1, 2, 9
	near, far := fmt.Sprintf(address, from), fmt.Sprintf(address, to)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) > inode && strings.HasSuffix(fields[local], near) && strings.HasSuffix(fields[remote], far) {
				return "socket:[" + fields[inode] + "]"
			}
		}
	}
	return ""
}
