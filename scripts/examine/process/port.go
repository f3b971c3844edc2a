package process

import (
	"os"

	"github.com/shirou/gopsutil/v4/net"
)

// AtPort returns the process of this user that has a connection from one port of this machine to another. Only Linux
// reports it. The error is os.ErrProcessDone when no process that can be seen has the connection.
func AtPort(from, to int) (Identity, error) {
	if !hasProc() {
		return Identity{}, os.ErrProcessDone
	}
	connections, err := net.ConnectionsWithoutUids("tcp") // an IPv4 address may also be the end of an IPv6 socket
	if err != nil {
		return Identity{}, err
	}
	near, far := net.Addr{IP: "127.0.0.1", Port: uint32(from)}, net.Addr{IP: "127.0.0.1", Port: uint32(to)}
	for _, c := range connections {
		if c.Laddr == near && c.Raddr == far && c.Pid != 0 {
			return Of(int(c.Pid))
		}
	}
	return Identity{}, os.ErrProcessDone
}
