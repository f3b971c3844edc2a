package window

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Metrics has sums over the work queues of a program. controller-runtime and client-go report these metrics under the
// same names.
type Metrics struct {
	// Depth is how many keys wait now. The other fields are totals since the program started.
	Depth      float64 `json:"depth"`
	Reconciles float64 `json:"reconciles"`
	Retries    float64 `json:"retries"`
	Seconds    float64 `json:"seconds"`
}

// metricsFlag matches the flag of a program that serves metrics on this machine alone. Programs that serve metrics on
// all addresses require a token.
var metricsFlag = regexp.MustCompile(`--?metrics-bind-address[= ](127\.0\.0\.1:[0-9]+)(?: |$)`)

// scrape reads the metrics of a program, at the address in its command line. It returns nil when the program offers
// none.
func scrape(command string) *Metrics {
	flag := metricsFlag.FindStringSubmatch(command)
	if flag == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+flag[1]+"/metrics", nil)
	if err != nil {
		return nil
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer response.Body.Close()
	const enough = 4 << 20
	body, err := io.ReadAll(io.LimitReader(response.Body, enough))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil
	}
	return sum(string(body))
}

// sum reads the text format of Prometheus: name{labels} value.
func sum(text string) *Metrics {
	m := &Metrics{}
	of := map[string]*float64{"workqueue_depth": &m.Depth, "workqueue_work_duration_seconds_count": &m.Reconciles,
		"workqueue_retries_total": &m.Retries, "workqueue_work_duration_seconds_sum": &m.Seconds}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "{")
		if total, ok := of[name]; ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, "}")+1:]), 64)
			if err == nil {
				*total += value
			}
		}
	}
	return m
}
