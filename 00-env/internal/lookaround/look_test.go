package lookaround

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answer makes a TLS server that gives every request the same answer, except that it returns its version
// when the answer is about something else.
func answer(t *testing.T, code int, body string) *rest.Config {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if code == http.StatusForbidden && r.URL.Path == "/version" {
			_, _ = w.Write([]byte(`{"gitVersion":"v1.37.1"}`))
			return
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the test expects a refused handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// refusal is an answer of an API server.
func refusal(code int, reason metav1.StatusReason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":%q,"code":%d}`,
		reason, message, code)
}

// The unavailable server takes connections and never answers them.
func unavailable(t *testing.T) *rest.Config {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &rest.Config{Host: "https://" + l.Addr().String(), Timeout: 200 * time.Millisecond}
}

func TestAFailedLookNamesServerReasonAndFix(t *testing.T) {
	stranger := answer(t, http.StatusOK, "{}")
	stranger.Insecure = false
	closed := unavailable(t)
	closed.Host = "https://127.0.0.1:1" // tcpmux: nothing serves it
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		cfg  *rest.Config
		want []string
	}{
		"nothing listens": {cfg: closed, want: []string{
			"read the version of https://127.0.0.1:1: nothing listens there; fix: start the cluster"}},
		"no answer": {cfg: unavailable(t), want: []string{
			": no answer within 200ms; fix: check that the cluster runs"}},
		"another certificate": {cfg: stranger, want: []string{
			": its certificate is not the one", "; fix: the kubeconfig belongs"}},
		"unknown credentials": {cfg: answer(t, 401, refusal(401, metav1.StatusReasonUnauthorized, "")), want: []string{
			": the server does not know this user", "; fix: get a fresh kubeconfig"}},
		"no permission": {
			cfg: answer(t, 403, refusal(403, metav1.StatusReasonForbidden, "User \"x\" cannot\nlist \"nodes\"")), want: []string{
				"list the nodes of https://", `: User "x" cannot list "nodes"; fix: have a role`}},
		"a host without an address": {
			cfg: &rest.Config{Host: "https://cluster.invalid", Timeout: 5 * time.Second}, want: []string{
				"read the version of https://cluster.invalid: "}},
		"another kind of server": {cfg: answer(t, 200, "<html>\nHello\n</html>"), want: []string{
			"read the version of https://127.0.0.1:"}},
		"interrupted": {ctx: interrupted, cfg: unavailable(t), want: []string{": interrupted"}},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			_, err := Look(ctx, test.cfg)
			if err == nil {
				t.Fatal("succeeded")
			}
			for _, want := range append(test.want, " of "+test.cfg.Host+": ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is missing in: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			if took := time.Since(began); took > Timeout {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestConfigNeverWaitsLongerThanTheTimeout(t *testing.T) {
	t.Setenv("KUBECONFIG", "testdata/kubeconfig")
	cfg, err := Config("")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Host != "https://127.0.0.1:6443" || cfg.Timeout != Timeout {
		t.Errorf("got server %s, timeout %s", cfg.Host, cfg.Timeout)
	}
}
