package examine

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metrics is the part of an operator's metrics that the lab reads. controller-runtime and client-go's work queue serve
// it.
type metrics struct {
	errors int // reconciles that ended in an error
	// timed means that the metrics report how long reconciles take. active is the number of reconciles that are under
	// way, longest is how long each queue's oldest reconcile has been under way.
	timed   bool
	active  int
	longest []time.Duration
}

// metrics reads the operator's metrics. They are empty when the lab cannot read them.
func (o *operator) metrics(ctx context.Context) metrics {
	if o.metricsPort == 0 || !o.Running() {
		return metrics{}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	url := "http://" + localAddress(o.metricsPort) + "/metrics"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return metrics{}
	}
	response, err := o.client(o.metricsPort).Do(request)
	if err != nil {
		return metrics{}
	}
	defer response.Body.Close()
	return readMetrics(response.Body)
}

func readMetrics(from io.Reader) (m metrics) {
	for lines := bufio.NewScanner(from); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), "{")
		_, text, _ := strings.Cut(rest, "} ")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			continue
		}
		switch name {
		case "controller_runtime_reconcile_errors_total":
			m.errors += int(value)
		case "controller_runtime_active_workers":
			m.active += int(value)
		case "workqueue_longest_running_processor_seconds":
			m.timed = true
			m.longest = append(m.longest, time.Duration(value*float64(time.Second)))
		}
	}
	return m
}

// metrics reads the operator's metrics while they can only be about this trial's sample: they do not name samples.
func (t *trial) metrics() metrics {
	if t.live.Load() > 1 {
		return metrics{}
	}
	return t.operator.metrics(t.Ctx)
}

// An underWayError says that a reconcile does not end.
type underWayError struct {
	since time.Duration
	to    string // the address of a pod or a Service to which the operator has a connection
}

func (e underWayError) Error() string {
	text := "a reconcile does not end"
	if e.to != "" {
		text = "the operator waits for an answer of " + e.to
	}
	return fmt.Sprintf("%s: it has been under way for %v", text, e.since.Round(time.Second))
}

// A reconciling watches whether reconciles end. An operator that waits for an answer writes nothing, as an operator
// whose work is over.
type reconciling struct {
	began time.Time // of the trial
	since time.Time // of the first look in a row at which a reconcile was under way
}

// look returns an error while a reconcile is under way. An operator that is always busy with short reconciles, and a
// reconcile that began before the trial, are not errors. Without metrics, a connection to a pod stands for a reconcile.
func (r *reconciling) look(now time.Time, m metrics, connected string) error {
	var longest time.Duration
	for _, d := range m.longest {
		if d < now.Sub(r.began) {
			longest = max(longest, d)
		}
	}
	if m.timed && m.active == 0 && longest == 0 || !m.timed && connected == "" {
		r.since = time.Time{}
		return nil
	}
	if r.since.IsZero() {
		r.since = now
	}
	if m.timed && now.Sub(r.since) > 2*time.Second && longest < time.Second {
		return nil
	}
	return underWayError{max(longest, now.Sub(r.since)), connected}
}

// underWay returns an error while a reconcile is under way.
func (t *trial) underWay(r *reconciling, m metrics) error {
	connected, err := t.connected()
	if err != nil {
		return err
	}
	if !m.timed && t.target.Ready != "" {
		connected = "" // READY= may name a state in which the operator asks its pods
	}
	return r.look(time.Now(), m, connected)
}

// addresses are the names of the pods and the Services in the trial's namespace, by IP.
func (t *trial) addresses() (map[string]string, error) {
	names := map[string]string{}
	pods, err := t.fixture.Kube.CoreV1().Pods(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, p := range pods.Items {
		names[p.Status.PodIP] = "the pod " + p.Name
	}
	services, err := t.fixture.Kube.CoreV1().Services(t.Namespace).List(t.Ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, s := range services.Items {
		names[s.Spec.ClusterIP] = "the Service " + s.Name
	}
	delete(names, "")
	delete(names, "127.0.0.1") // of pods in the network of their node
	return names, nil
}

// connected is the pod or the Service to which the operator has a connection, or asks for one: no container answers it.
func (t *trial) connected() (string, error) {
	names, err := t.addresses()
	if err != nil {
		return "", err
	}
	for _, to := range t.operator.Process().Connections() {
		if name, ok := names[to.Addr().String()]; ok {
			return fmt.Sprintf("%s (%s)", name, to), nil
		}
	}
	return "", nil
}

// A podError says that the operator asks a pod over the network.
type podError struct{ name, line string }

func (e podError) Error() string { return "it asks " + e.name + " over the network: " + e.line }

// orAsksPods adds to an error that the operator's output has the address of a pod, or looks up a name of a Service.
func (t *trial) orAsksPods(err error) error {
	names, listErr := t.addresses()
	if err == nil || listErr != nil {
		return err
	}
	for ip, name := range names {
		found := t.operator.Process().LastLines(1, ip)
		if len(found) > 0 && strings.HasPrefix(name, "the pod ") {
			return fmt.Errorf("%w; %w", err, podError{name, found[0]})
		}
	}
	lookUp := regexp.MustCompile(`\blookup ([a-z0-9.-]+\.` + regexp.QuoteMeta(t.Namespace) + `)\b`)
	if m := lookUp.FindStringSubmatch(t.operator.Process().Output()); m != nil {
		return fmt.Errorf("%w; %w", err, podError{"the Service " + m[1], m[0]})
	}
	return err
}
