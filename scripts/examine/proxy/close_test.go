package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
)

// TestCloseLeavesNothing closes a proxy with requests in progress: held requests, open and frozen watches.
func TestCloseLeavesNothing(t *testing.T) {
	l := newLab(t)
	before := proxyGoroutines()
	p, err := proxy.Start(ledger.New(nil), t.TempDir())
	l.must(err)
	path, err := p.AddClient(l.user, l.direct)
	l.must(err)
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	l.must(err)
	kube, err := kubernetes.NewForConfig(cfg)
	l.must(err)
	p.Add(proxy.Rule{Match: ledger.Match{Resources: []string{"secrets"}}, Do: proxy.Freeze()})
	hold := p.Add(proxy.Rule{Match: creates, Do: proxy.Hold()})
	frozen, err := kube.CoreV1().Secrets(l.namespace).Watch(t.Context(), metav1.ListOptions{})
	l.must(err)
	open, err := kube.CoreV1().ConfigMaps(l.namespace).Watch(t.Context(), metav1.ListOptions{})
	l.must(err)
	held := make(chan error, 1)
	go func() {
		_, err := kube.CoreV1().ConfigMaps(l.namespace).Create(t.Context(), l.newConfigMap("a"), metav1.CreateOptions{})
		held <- err
	}()
	l.must(hold.Await(t.Context(), 1))
	l.must(p.Close())
	if err := <-held; err == nil {
		t.Error("a request succeeded that the closed proxy held")
	}
	for range frozen.ResultChan() {
	}
	for range open.ResultChan() {
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig is still there: %v", err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL(), "https://")); err == nil {
		conn.Close()
		t.Error("the port is still open")
	}
	eventually(t, "the proxy's goroutines end", func() bool { return proxyGoroutines() <= before })
}

// proxyGoroutines counts the goroutines of a proxy: its own code, and the connections that it serves.
func proxyGoroutines() (n int) {
	buffer := make([]byte, 1<<22)
	stacks := string(buffer[:runtime.Stack(buffer, true)])
	for stack := range strings.SplitSeq(stacks, "\n\n") {
		if strings.Contains(stack, "scripts/examine/proxy.(*") || strings.Contains(stack, "net/http.(*conn).serve") ||
			strings.Contains(stack, "ReverseProxy") {
			n++
		}
	}
	return n
}

// TestUpgrade switches a connection to another protocol, as exec and port-forward do.
func TestUpgrade(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "echo" {
			http.Error(w, "no upgrade", http.StatusBadRequest)
			return
		}
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(both, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		if err := both.Flush(); err != nil {
			return
		}
		_, _ = io.Copy(conn, both)
	}))
	defer server.Close()
	p, err := proxy.Start(ledger.New(nil), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	path, err := p.AddClient("op", &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	cfg.NextProtos = []string{"http/1.1"}
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	request, _ := http.NewRequest(http.MethodPost, p.URL()+"/api/v1/namespaces/a/pods/b/exec", nil)
	request.Header.Set("Connection", "Upgrade")
	request.Header.Set("Upgrade", "echo")
	response, err := client.Do(request)
	if err != nil || response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v, %v", response, err)
	}
	stream := response.Body.(io.ReadWriteCloser)
	defer stream.Close()
	fmt.Fprintln(stream, "hello")
	if line, err := bufio.NewReader(stream).ReadString('\n'); line != "hello\n" {
		t.Errorf("%q, %v", line, err)
	}
}
