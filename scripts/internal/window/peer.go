package window

import (
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// isOfAnotherUser reports whether another user of this machine opened a connection, as far as the system tells. Root is
// not another user: root can do what it wants, and the relay from Windows into WSL2 runs as root.
func isOfAnotherUser(c net.Conn) bool {
	peer, peerOK := c.RemoteAddr().(*net.TCPAddr)
	own, ownOK := c.LocalAddr().(*net.TCPAddr)
	if !peerOK || !ownOK {
		return false
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue // not Linux, or no IPv6
		}
		if user, ok := userOf(string(table), peer, own); ok {
			return user != os.Getuid() && user != 0
		}
	}
	return false
}

// hasClosed is the user of a connection that its program has closed already: the system does not tell the real one.
const hasClosed = -1

// userOf finds the user of the socket with two addresses in a table of the kernel, whose columns are: number, local
// address, remote address, state, queues, timer, retransmits, user.
func userOf(table string, local, remote *net.TCPAddr) (user int, ok bool) {
	const established = "01"
	for line := range strings.Lines(table) {
		columns := strings.Fields(line)
		if len(columns) < 8 || !isAddress(columns[1], local) || !isAddress(columns[2], remote) {
			continue
		}
		user, err := strconv.Atoi(columns[7])
		if err != nil || columns[3] != established {
			return hasClosed, true
		}
		return user, true
	}
	return 0, false
}

// isAddress compares an address in a table of the kernel: words of 32 bits in the order of this machine, and the port.
func isAddress(text string, address *net.TCPAddr) bool {
	word := func(bytes []byte) string { return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(bytes)) }
	port := fmt.Sprintf(":%04X", address.Port)
	if ip := address.IP.To4(); ip != nil && text == word(ip)+port {
		return true
	}
	ip, long := address.IP.To16(), ""
	for at := 0; at+4 <= len(ip); at += 4 {
		long += word(ip[at : at+4])
	}
	return text == long+port
}
