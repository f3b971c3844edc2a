package world

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"example.com/operator-workshop/scripts/internal/lab/ledger"
	"example.com/operator-workshop/scripts/internal/lab/wire"
)

// A Total is what apiserver_request_total tells apart. It knows no users.
type Total struct {
	// Verb as the metric has it: GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION.
	Verb, Group, Version, Resource, Subresource string
	Code                                        int
}

func (t Total) String() string {
	r := wire.Request{Group: t.Group, Resource: t.Resource, Subresource: t.Subresource}
	return fmt.Sprintf("%s %s %d", t.Verb, r.What(), t.Code)
}

// metricVerbs are what the metric calls the verbs of the API.
var metricVerbs = map[string]string{wire.Get: "GET", wire.List: "LIST", wire.Watch: "WATCH", wire.Create: "POST",
	wire.Update: "PUT", wire.Patch: "PATCH", wire.Apply: "APPLY", wire.Delete: "DELETE", wire.DeleteCollection: "DELETECOLLECTION"}

// totalOf is where the metric counts a request.
func totalOf(r wire.Request, code int) Total {
	verb := metricVerbs[r.Verb]
	switch r.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		verb = "CONNECT"
	}
	return Total{verb, r.Group, r.Version, r.Resource, r.Subresource, code}
}

// patched is the total with APPLY counted as PATCH, which is all that the audit log tells.
func (t Total) patched() Total {
	if t.Verb == "APPLY" {
		t.Verb = "PATCH"
	}
	return t
}

// LedgerTotals counts what reached the API server as apiserver_request_total does: by all that it tells
// apart, and when it is done with, so that a watch counts when it ends.
func LedgerTotals(entries []ledger.Entry) map[Total]int {
	totals := map[Total]int{}
	for _, e := range entries {
		if e.Resource == "" || e.Open && e.Verb == wire.Watch {
			continue
		}
		for _, code := range e.Served {
			totals[totalOf(e.Request, code)]++
		}
	}
	return totals
}

// Totals asks the API server for apiserver_request_total, requests for no resource left out: discovery
// of custom resources and refused requests are not in it at all.
func (w *World) Totals(ctx context.Context) (map[Total]int, error) {
	body, err := w.Kube.CoreV1().RESTClient().Get().AbsPath("/metrics").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("ask for the API server's metrics: %w", err)
	}
	return parseTotals(body)
}

func parseTotals(body []byte) (map[Total]int, error) {
	totals := map[Total]int{}
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), "apiserver_request_total{")
		if !ok {
			continue
		}
		labels, value, ok := strings.Cut(rest, "} ")
		count, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("a line of the API server's metrics: %q", lines.Text())
		}
		l := map[string]string{} // no value of these labels holds a comma or a quote
		for pair := range strings.SplitSeq(labels, ",") {
			name, quoted, _ := strings.Cut(pair, "=")
			l[name] = strings.Trim(quoted, `"`)
		}
		if l["resource"] == "" {
			continue
		}
		code, err := strconv.Atoi(l["code"])
		if err != nil {
			return nil, fmt.Errorf("a line of the API server's metrics: %q", lines.Text())
		}
		totals[Total{l["verb"], l["group"], l["version"], l["resource"], l["subresource"], code}] += int(count)
	}
	return totals, lines.Err()
}
