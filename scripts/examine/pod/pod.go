// Package pod runs a program as a pod does, without a container. The program is in user, mount, network, PID, UTS and
// IPC namespaces: it sees its files, its mounts, its processes and a network with two addresses, its loopback and that
// of the API server. Only Linux has namespaces, and some systems forbid them to users: see Check.
//
// The first process of the pod is a second process of this executable file. It makes the root file system, starts the
// program without capabilities, and reaps orphans. The kernel ends all processes of the pod when the first one ends.
//
// No packet leaves the pod. The first process listens at the address of the API server inside, and hands the listener
// to the process that has started the pod; the other way round it hands over connections to ports of the program.
package pod

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Pod describes what a program finds around it.
type Pod struct {
	// Name is the host name.
	Name string `json:"name"`
	// Address is the IP address of the pod.
	Address netip.Addr `json:"address"`
	// Server is where the program finds the API server, a Service. Only this process answers there.
	Server netip.AddrPort `json:"server"`
	// Services are names of Services that lead to the pod itself.
	Services []string `json:"services,omitempty"`
	// User is the ID of the user and the group.
	User int `json:"user"`
	// ReadOnly makes the root file system read-only, including /tmp. Writable mounts stay writable.
	ReadOnly bool    `json:"readOnly,omitempty"`
	Mounts   []Mount `json:"mounts,omitempty"`
}

// A Mount is a file or a folder of the pod.
type Mount struct {
	// Source is the file or the folder of this machine; empty means an empty folder.
	Source string `json:"source,omitempty"`
	// Target is the path in the pod.
	Target string `json:"target"`
	// Writable allows the program to change it.
	Writable bool `json:"writable,omitempty"`
}

// A Container is what runs in a pod. It sees its executable file at the path that the file has outside.
type Container struct {
	Path string `json:"path"`
	// Args begins with the name of the program.
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
}

// An End describes the end of a program.
type End struct {
	// Code is the exit code, -1 when a signal ended it.
	Code   int            `json:"code"`
	Signal syscall.Signal `json:"signal,omitempty"`
}

// ErrNone is the error of a system without namespaces.
var ErrNone = errors.New("this system has no namespaces")

// Check returns an error when this system does not allow pods. It starts one.
var Check = sync.OnceValue(check)

// A Network is the way into a pod, for the process that has started it.
type Network struct {
	mu   sync.Mutex
	conn *net.UnixConn
}

// NewNetwork returns a network, and the file that the first process of the pod inherits.
func NewNetwork() (n *Network, inner *os.File, err error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, fd := range pair {
		syscall.CloseOnExec(fd)
	}
	outer, inner := os.NewFile(uintptr(pair[0]), "network"), os.NewFile(uintptr(pair[1]), "network")
	defer outer.Close() // FileConn copies the descriptor
	conn, err := net.FileConn(outer)
	if err != nil {
		return nil, nil, errors.Join(err, inner.Close())
	}
	return &Network{conn: conn.(*net.UnixConn)}, inner, nil
}

// Listener returns the listener at the address of the API server. It comes first, and once.
func (n *Network) Listener() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	file, err := receive(n.conn)
	if err != nil {
		return nil, fmt.Errorf("get the pod's listener: %w", err)
	}
	defer file.Close()
	return net.FileListener(file)
}

// A request asks for a connection to a port, or to the output of a command.
type request struct {
	Port    int      `json:"port,omitempty"`
	Command []string `json:"command,omitempty"`
}

// Dial connects to a port of the program, on the loopback of the pod.
func (n *Network) Dial(port int) (net.Conn, error) {
	c, err := n.ask(request{Port: port})
	if err != nil {
		return nil, fmt.Errorf("dial %s in the pod: %w", loopback(port), err)
	}
	return c, nil
}

// Exec runs a command in the pod, beside the program and with its environment. It returns an error with the output when
// the exit code is not 0, or when the command takes longer than 5 s.
func (n *Network) Exec(command []string) error {
	c, err := n.ask(request{Command: command})
	if err != nil {
		return fmt.Errorf("run %s in the pod: %w", command[0], err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(2 * commandTime))
	all, err := io.ReadAll(io.LimitReader(c, 1<<16))
	output, code := strings.TrimSpace(string(all)), ""
	if at := strings.LastIndex("\n"+output, "\n"); at >= 0 {
		output, code = strings.TrimSpace(output[:max(at-1, 0)]), output[at:]
	}
	if err == nil && code == "0" {
		return nil
	}
	return fmt.Errorf("%s ended with code %s: %s", command[0], code, output)
}

// ask sends a request, and returns the connection for it.
func (n *Network) ask(r request) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.conn.SetDeadline(time.Now().Add(10 * dialing))
	if err := json.NewEncoder(n.conn).Encode(r); err != nil {
		return nil, err
	}
	file, err := receive(n.conn)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return net.FileConn(file)
}

// Close ends the network. The pod goes on.
func (n *Network) Close() error { return n.conn.Close() }

const (
	// dialing is how long a connection in the pod may take.
	dialing = time.Second
	// commandTime is how long a command in the pod may take.
	commandTime = 5 * time.Second
)

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// receive gets a descriptor, or the error in place of it: a message has the number of an error, 0 for none.
func receive(conn *net.UnixConn) (*os.File, error) {
	message, control := make([]byte, 4), make([]byte, syscall.CmsgSpace(4))
	n, size, _, _, err := conn.ReadMsgUnix(message, control)
	switch number := syscall.Errno(binary.BigEndian.Uint32(message)); {
	case err != nil:
		return nil, err
	case n < len(message):
		return nil, fmt.Errorf("%d bytes of a message: %w", n, os.ErrProcessDone)
	case number != 0:
		return nil, number
	}
	messages, err := syscall.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("a message without a descriptor"), err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("a message without a descriptor"), err)
	}
	syscall.CloseOnExec(fds[0])
	return os.NewFile(uintptr(fds[0]), "descriptor"), nil
}

// send sends a descriptor, or an error in place of it.
func send(conn *net.UnixConn, file *os.File, failed error) error {
	if failed != nil {
		number := syscall.EIO
		errors.As(failed, &number)
		_, err := conn.Write(binary.BigEndian.AppendUint32(nil, uint32(number)))
		return err
	}
	_, _, err := conn.WriteMsgUnix(make([]byte, 4), syscall.UnixRights(int(file.Fd())), nil)
	return err
}
