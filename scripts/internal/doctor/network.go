package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// checkLoopback connects to 127.0.0.1: a port can be opened there also while the interface is down.
func checkLoopback(_ context.Context, m Machine) Finding {
	down := Finding{Status: Failure,
		Why: "The API server, its clients and every operator reach each other on 127.0.0.1.",
		Fix: "Bring up the loopback interface, or leave the sandbox that forbids it:\nsudo ip link set lo up"}
	listener, err := m.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		down.What = fmt.Sprintf("No port of 127.0.0.1 can be opened: %s.", oneLine(err.Error()))
		return down
	}
	defer listener.Close()
	connection, err := m.Dial("tcp", listener.Addr().String(), 2*time.Second)
	if err != nil {
		down.What = fmt.Sprintf("127.0.0.1 cannot be reached: %s.", oneLine(err.Error()))
		return down
	}
	connection.Close()
	// An address for documentation: connecting a UDP socket sends nothing, it only looks for a route.
	connection, err = m.Dial("udp", "192.0.2.1:9", 2*time.Second)
	if err != nil {
		return okay("127.0.0.1 works; this machine is offline: what is built already works")
	}
	connection.Close()
	return okay("127.0.0.1 works")
}

// checkPorts opens at least as many listeners at once as a local cluster does, and the one port that
// has a fixed default.
func checkPorts(_ context.Context, m Machine) Finding {
	const atOnce = 8
	for range atOnce {
		listener, err := m.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return Finding{Status: Failure,
				What: fmt.Sprintf("%d ports of 127.0.0.1 cannot be opened at once: %s.", atOnce, oneLine(err.Error())),
				Why:  "etcd, kube-apiserver and every operator listen on 127.0.0.1.",
				Fix:  "Leave the sandbox that forbids it, or raise the limit of open files:\nulimit -n 1024"}
		}
		defer listener.Close()
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(m.HealthPort))
	listener, err := m.Listen("tcp", address)
	if err == nil {
		listener.Close()
		return okay("127.0.0.1 has free ports, %d among them", m.HealthPort)
	}
	what := fmt.Sprintf("%s cannot be opened: %s.", address, oneLine(err.Error()))
	if errors.Is(err, syscall.EADDRINUSE) {
		what = fmt.Sprintf("%s is taken%s.", address, m.holder(m.HealthPort))
	}
	return Finding{Status: Warning, What: what,
		Why: "An operator answers health probes there by default, and ends when it cannot. A cluster picks " +
			"free ports and is not affected.",
		Fix: "Stop that program, or start the operator with another port (0 picks a free one):\n" +
			"--health-probe-bind-address=127.0.0.1:0"}
}

// holder is " by name (process 42)" for the process that listens on a port, where /proc tells; of
// another user's processes it does not.
func (m Machine) holder(port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"proc/net/tcp", "proc/net/tcp6"} {
		content, err := os.ReadFile(m.file(table))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			// sl local_address rem_address st … inode is the tenth; 0A is TCP_LISTEN.
			fields := strings.Fields(line)
			if len(fields) > 9 && fields[3] == "0A" && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", port)) {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return ""
	}
	links, _ := filepath.Glob(m.file("proc/[0-9]*/fd/*"))
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && sockets[target] {
			process := filepath.Dir(filepath.Dir(link))
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			return fmt.Sprintf(" by %s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
		}
	}
	return ""
}

// labelValue is what Kubernetes accepts as the value of a label, besides "" and up to 63 bytes.
var labelValue = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// checkHostname reports what a long name breaks, and what not: leader election and kwok's node leases
// use it too, as a holderIdentity, whose length is not limited.
func checkHostname(_ context.Context, m Machine) Finding {
	const fix = "Give the machine a shorter name of letters, digits, dots and dashes:\n" +
		"sudo hostnamectl hostname workshop\nor, in a container:\ndocker run --hostname workshop …"
	name, err := m.Hostname()
	if err != nil {
		return Finding{Status: Failure, Fix: fix,
			What: fmt.Sprintf("The host name is unknown: %s.", oneLine(err.Error())),
			Why: "kube-controller-manager, kube-scheduler and kwok take their identity from it and end " +
				"without it."}
	}
	fault := ""
	switch {
	case len(name) > 63:
		fault = fmt.Sprintf("has %d bytes, more than 63", len(name))
	case !labelValue.MatchString(name):
		fault = "is not a valid label value"
	default:
		return okay("%s", name)
	}
	return Finding{Status: Warning, Fix: fix,
		What: fmt.Sprintf("The host name %q %s.", name, fault),
		Why: "kube-apiserver labels its identity Lease in kube-system with it (kubernetes.io/hostname). The " +
			"Lease is refused and tried again forever: the cluster works, its log fills with errors. Events " +
			"are refused when the name of a controller, a dash and the host name exceed 128 characters."}
}

// Only variables that a client may use for a plain or an encrypted connection to 127.0.0.1.
var proxyVariables = []string{
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
}

func checkProxies(_ context.Context, m Machine) Finding {
	var set []string
	for _, name := range proxyVariables {
		if m.Getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return okay("none set")
	}
	exceptions := m.Getenv("no_proxy")
	if exceptions == "" {
		exceptions = m.Getenv("NO_PROXY")
	}
	if exceptsLoopback(exceptions) {
		return okay("%s, not for 127.0.0.1", strings.Join(set, ", "))
	}
	return Finding{Status: Warning,
		What: fmt.Sprintf("%s set, and NO_PROXY does not contain 127.0.0.1.", strings.Join(set, ", ")),
		Why: "Programs written in Go, kubectl and the operators among them, never ask a proxy for 127.0.0.1. " +
			"curl and other clients do: what a page fetches from 127.0.0.1 with curl goes to the proxy and " +
			"fails. kind hands these variables to its nodes and adds the cluster's own networks itself.",
		Fix: "export no_proxy=\"127.0.0.1,localhost,::1,${no_proxy:-$NO_PROXY}\"\nexport NO_PROXY=\"$no_proxy\""}
}

// exceptsLoopback tells whether a NO_PROXY list excepts 127.0.0.1. The name localhost alone does not:
// curl compares what the URL says.
func exceptsLoopback(list string) bool {
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for entry := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if entry == "*" || entry == loopback.String() {
			return true
		}
		if prefix, err := netip.ParsePrefix(entry); err == nil && prefix.Contains(loopback) {
			return true
		}
	}
	return false
}
