package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// checkPorts opens the only port that has a fixed default.
func checkPorts(_ context.Context, m Machine) Diagnosis {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(m.HealthPort)))
	if err == nil {
		listener.Close()
		return report(OK, "port %d of 127.0.0.1 is free", m.HealthPort)
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return report(Failure, "No program may listen: %s.", oneLine(err.Error()))
	}
	return Diagnosis{Status: Warning, What: fmt.Sprintf("Port %d of 127.0.0.1 is in use.", m.HealthPort),
		Why: "An operator answers health probes there by default, and ends when it cannot. A cluster picks " +
			"free ports and is not affected.",
		Fix: fmt.Sprintf("Find the program, and stop it:\nlsof -nP -iTCP:%d -sTCP:LISTEN\n"+
			"or start the operator with another port (0 picks a free one):\n"+
			"--health-probe-bind-address=127.0.0.1:0", m.HealthPort)}
}

// The list has only variables that a client may use for a plain or an encrypted connection to 127.0.0.1.
var proxyVariables = []string{
	"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
}

func checkProxies(context.Context, Machine) Diagnosis {
	var set []string
	for _, name := range proxyVariables {
		if os.Getenv(name) != "" {
			set = append(set, name)
		}
	}
	if len(set) == 0 {
		return report(OK, "none set")
	}
	exceptions := cmp.Or(os.Getenv("no_proxy"), os.Getenv("NO_PROXY"))
	if exceptsLoopback(exceptions) {
		return report(OK, "%s, not for 127.0.0.1", strings.Join(set, ", "))
	}
	return report(Warning, "%s set, and NO_PROXY does not contain 127.0.0.1.", strings.Join(set, ", "))
}

// exceptsLoopback reports whether a NO_PROXY list excepts 127.0.0.1. The name localhost alone does not, because curl
// compares the host in the URL.
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
