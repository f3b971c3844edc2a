package main

import (
	"io"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// A wire forwards the connections of one replica to the API server, and counts the bytes that come back, as they are on
// the network: encrypted, and compressed where the API server compresses.
type wire struct {
	net.Listener
	received atomic.Int64
}

func newWire(to string) (*wire, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w := &wire{Listener: l}
	go func() {
		for err == nil {
			var client, server net.Conn
			if client, err = l.Accept(); err != nil {
				return
			}
			if server, err = net.Dial("tcp", to); err != nil {
				return
			}
			go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
			go func() { _, _ = io.Copy(io.MultiWriter(client, w), server); _ = client.Close() }()
		}
	}()
	return w, err
}

// Write counts.
func (w *wire) Write(data []byte) (int, error) {
	w.received.Add(int64(len(data)))
	return len(data), nil
}

// memory returns the resident set of a process, in bytes, as ps reports it.
func memory(pid int) int64 {
	out, _ := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(pid)).Output()
	kib, _ := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return kib * 1024
}

// child returns the process with a name that this process started.
func child(name string, parent int) (found int) {
	out, _ := exec.Command("ps", "-axo", "pid=,ppid=,comm=").Output()
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) >= 3 && fields[1] == strconv.Itoa(parent) && strings.HasSuffix(fields[2], name) {
			found, _ = strconv.Atoi(fields[0])
		}
	}
	return found
}

var series = regexp.MustCompile(`(?m)^(\w+)(?:\{(.*)\})? (\S+)$`)

// These metrics of the API server count requests that were answered, and watches that are open.
const (
	answered = "apiserver_request_total"
	open     = "apiserver_longrunning_requests"
)

// metrics returns the metrics of the API server: for each a name, its labels, and a value.
func (m *measurement) metrics() (all [][]string, err error) {
	c, err := rest.UnversionedRESTClientFor(m.raw)
	if err != nil {
		return nil, err
	}
	text, err := c.Get().AbsPath("/metrics").DoRaw(m.ctx)
	return series.FindAllStringSubmatch(string(text), -1), err
}

// value returns a metric of the API server that has one value.
func (m *measurement) value(name string) (value float64, err error) {
	all, err := m.metrics()
	for _, one := range all {
		if one[1] == name {
			value, _ = strconv.ParseFloat(one[3], 64)
		}
	}
	return value, err
}

// counted returns the number of requests of some verbs about MyWebs and their children.
func (m *measurement) counted(metric string, verbs ...string) (n float64, err error) {
	all, err := m.metrics()
	for _, one := range all {
		if one[1] != metric {
			continue
		}
		for _, verb := range verbs {
			for _, resource := range []string{"configmaps", "deployments", "services", "mywebs"} {
				if strings.Contains(one[2], `verb="`+verb+`"`) && strings.Contains(one[2], `resource="`+resource+`"`) {
					value, _ := strconv.ParseFloat(one[3], 64)
					n += value
				}
			}
		}
	}
	return n, err
}
