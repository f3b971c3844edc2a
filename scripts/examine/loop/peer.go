package loop

import (
	"path/filepath"
	"strconv"
	"strings"

	"example.com/operator-workshop/scripts/examine/process"
)

// A Connection is the connection of a program to the proxy. The search for its process starts as soon as the connection
// exists, and runs in parallel with the requests, which do not wait for it.
type Connection struct {
	port  int
	known chan struct{}
	found process.Identity
}

// Connect returns the connection of a client at a port of this machine to a server at another port.
func Connect(client, server int) *Connection {
	c := &Connection{port: client, known: make(chan struct{})}
	go func() {
		defer close(c.known)
		c.found, _ = process.AtPort(client, server) // when it is not found, the user agent and the port stand for it
	}()
	return c
}

// A Peer is the sender of requests.
type Peer struct {
	Connection *Connection // nil when no caller needs it
	Agent      string
	User       string
}

// client waits until the search for the process at the other end of the connection has ended.
func (p *Peer) client() Client {
	by := Client{User: Cut(p.User)}
	by.Name, _, _ = strings.Cut(Cut(p.Agent), "/")
	if c := p.Connection; c != nil {
		<-c.known
		by.Port, by.PID, by.Executable = c.port, c.found.PID, c.found.Executable
	}
	if by.Name == "" && by.Executable != "" {
		by.Name = filepath.Base(by.Executable)
	}
	return by
}

// is reports whether a name denotes this client.
func (c Client) is(name string) bool {
	return name == c.Name || name == c.User || c.PID != 0 && name == strconv.Itoa(c.PID) ||
		c.Executable != "" && name == filepath.Base(c.Executable)
}
