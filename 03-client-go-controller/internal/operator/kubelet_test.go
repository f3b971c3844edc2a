package operator

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/03-client-go-controller/test/programtest"
)

func TestMetricsAndProbes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, crd)
	p := started(t, f.operator())
	f.create(ns, "measured", nil)
	f.reported(ns, "measured")
	f.Expect(p.probe("/healthz")).To(gomega.Equal(http.StatusOK))
	f.Expect(p.probe("/readyz")).To(gomega.Equal(http.StatusOK))
	_, metrics := programtest.Get(p.metrics, "")
	for _, name := range []string{
		`workqueue_depth{name="myweb"}`, `workqueue_adds_total{name="myweb"}`, `workqueue_retries_total{name="myweb"}`,
		`workqueue_queue_duration_seconds_count{name="myweb"}`, `workqueue_work_duration_seconds_count{name="myweb"}`,
		`rest_client_requests_total{code="201",host="`, `rest_client_request_duration_seconds_count{host="`,
		`process_cpu_seconds_total`, `go_goroutines`,
	} {
		if !strings.Contains(metrics, "\n"+name) {
			t.Errorf("there is no metric %s", name)
		}
	}
	p.Stop()
}

// A hangingServer passes requests on to an API server until it hangs. Then it answers no request.
type hangingServer struct {
	httputil.ReverseProxy
	hangs atomic.Bool
}

func (h *hangingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.hangs.Load() {
		_, _ = io.Copy(io.Discard, r.Body) // the context of a request ends with the connection only after its body
		<-r.Context().Done()
		return
	}
	h.ReverseProxy.ServeHTTP(w, r)
}

// newHangingServer returns a server that passes requests on as the user of a configuration, and its own configuration.
func newHangingServer(t *testing.T, cfg *rest.Config) (*hangingServer, *rest.Config) {
	t.Helper()
	target, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &hangingServer{ReverseProxy: httputil.ReverseProxy{Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, &rest.Config{Host: server.URL}
}

// A process that is asked to stop ends within 10 s, whether the API server answers or not: while the process starts,
// while it waits for the lease, and in the middle of its work.
func TestItStopsWhileTheAPIServerHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, crd)
	server, cfg := newHangingServer(t, f.operator())
	flags := []string{"--leader-elect", "--leader-election-namespace=default"}
	working := started(t, cfg, flags...)
	waiting := launch(t, cfg, flags...)
	f.Eventually(func() int { return waiting.probe("/readyz") }).Should(gomega.Equal(http.StatusOK))
	for i := range 20 {
		f.create(ns, fmt.Sprint("hanging-", i), nil)
	}
	f.Eventually(func() error {
		_, err := f.kube.CoreV1().ConfigMaps(ns).Get(t.Context(), "hanging-0", metav1.GetOptions{})
		return err
	}, "10s", "1ms").Should(gomega.Succeed())
	server.hangs.Store(true)
	starting := launch(t, cfg)
	f.Eventually(func() error { // it listens before it asks
		c, err := net.Dial("tcp", strings.TrimPrefix(starting.probes, "http://"))
		if err == nil {
			_ = c.Close()
		}
		return err
	}).Should(gomega.Succeed())

	var all sync.WaitGroup
	for name, p := range map[string]*process{"starting": starting, "waiting": waiting, "working": working} {
		all.Go(func() {
			took := p.Terminate()
			t.Logf("while the API server hangs, the process that is %s ends %.1f s after SIGTERM", name, took.Seconds())
			if p != working && took > 6*time.Second { // a process with a sync in flight waits for it, for 8 s
				t.Errorf("the process that is %s had nothing to bring to an end", name)
			}
		})
	}
	all.Wait()
}
