package process

import (
	"net"
	"os"
	"testing"
)

func TestTheProcessAtAPort(t *testing.T) {
	if !hasProc() {
		t.Skip("this system does not report whose a connection is")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	from, to := c.LocalAddr().(*net.TCPAddr).Port, l.Addr().(*net.TCPAddr).Port
	if id, err := AtPort(from, to); err != nil || id.PID != os.Getpid() {
		t.Errorf("process %d, %v, want %d", id.PID, err, os.Getpid())
	}
	if id, err := AtPort(to, to); err == nil {
		t.Errorf("process %d has a connection that does not exist", id.PID)
	}
}
