package testenv

import (
	"fmt"
	"net"
	"testing"
)

// FreeAddress returns a loopback address that nothing listens on.
func FreeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprint("127.0.0.1:", FreePort(t))
}

// FreePort returns a port on loopback that nothing listens on.
func FreePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
