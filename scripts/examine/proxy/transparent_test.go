package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

func TestTransparent(t *testing.T) {
	l := newLab(t)
	for _, name := range []string{"a", "b", "c"} {
		l.configMap(name)
	}
	t.Run("answers are the same, byte for byte", func(t *testing.T) { sameAnswers(t, l) })
	t.Run("watches are the same", func(t *testing.T) { sameWatches(t, l) })
	t.Run("large objects", func(t *testing.T) { largeObjects(t, l) })
	t.Run("server-side apply", func(t *testing.T) { serverSideApply(t, l) })
	t.Run("an informer streams its list", func(t *testing.T) { informerStreams(t, l) })
	t.Run("a refusal of the API server", func(t *testing.T) { refusalPasses(t, l) })
	t.Run("strangers stay outside", func(t *testing.T) { strangers(t, l) })
}

// raw asks with a plain HTTP client.
func raw(t *testing.T, cfg *rest.Config, method, path, accept, body string) (*http.Response, []byte) {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, cfg.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", jsonType)
	request.Header.Set("Accept-Encoding", "gzip") // as it comes
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, data
}

func sameAnswers(t *testing.T, l *lab) {
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	objects := "/api/v1/namespaces/" + l.namespace + "/configmaps"
	for name, ask := range map[string]struct{ method, path, accept string }{
		"list as JSON":         {"GET", objects, jsonType},
		"list as protobuf":     {"GET", objects, protobufType},
		"list as table":        {"GET", objects, table},
		"packed list":          {"GET", "/openapi/v2", jsonType},
		"one":                  {"GET", objects + "/a", jsonType},
		"head":                 {"HEAD", objects + "/a", jsonType},
		"none":                 {"GET", objects + "/nothing", jsonType},
		"discovery":            {"GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"},
		"discovery of a group": {"GET", "/apis/apps/v1", jsonType},
		"OpenAPI":              {"GET", "/openapi/v3/api/v1", jsonType},
		"health":               {"GET", "/readyz", "*/*"},
		"odd parameters":       {"GET", objects + "?labelSelector=a%20in%20(b)&fieldSelector=metadata.name%3Da", jsonType},
	} {
		direct, want := raw(t, l.direct, ask.method, ask.path, ask.accept, "")
		proxied, got := raw(t, l.proxied, ask.method, ask.path, ask.accept, "")
		for range 10 { // a list has the newest resourceVersion of the cluster, which other tests change
			if bytes.Equal(want, got) {
				break
			}
			direct, want = raw(t, l.direct, ask.method, ask.path, ask.accept, "")
			proxied, got = raw(t, l.proxied, ask.method, ask.path, ask.accept, "")
		}
		for _, once := range []string{"Date", "Audit-Id"} {
			direct.Header.Del(once)
			proxied.Header.Del(once)
		}
		if !bytes.Equal(want, got) || direct.StatusCode != proxied.StatusCode || proxied.ProtoMajor != 2 {
			t.Errorf("%s: %s (%s) with %d bytes instead of %s with %d", name, proxied.Status, proxied.Proto, len(got),
				direct.Status, len(want))
		}
		if diff := cmp.Diff(direct.Header, proxied.Header); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if e := l.last(); e.Code != direct.StatusCode || !e.Accepted() && e.Code == 200 {
			t.Errorf("%s: the ledger says %+v", name, e)
		}
	}
	if packed, body := raw(t, l.proxied, "GET", "/openapi/v2", jsonType,
		""); packed.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("%d bytes were not packed: this test shows nothing of packed answers", len(body))
	}
}

// sameWatches follows the same objects in four ways.
func sameWatches(t *testing.T, l *lab) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	seen := map[string][]string{}
	var ways []string
	streams := map[string]<-chan string{}
	for way, cfg := range map[string]*rest.Config{"direct": l.direct, "proxied": l.proxied} {
		for _, contentType := range []string{jsonType, protobufType} {
			watch, err := l.clientset(cfg, contentType).CoreV1().ConfigMaps(l.namespace).
				Watch(ctx, metav1.ListOptions{AllowWatchBookmarks: true})
			l.must(err)
			defer watch.Stop()
			lines := make(chan string, 100)
			go func() {
				for e := range watch.ResultChan() {
					// A bookmark has the newest resourceVersion of the cluster, which any other write moves.
					if e.Type != "BOOKMARK" {
						data, _ := json.Marshal(e)
						lines <- string(data)
					}
				}
			}()
			ways = append(ways, way+" "+contentType)
			streams[way+" "+contentType] = lines
		}
	}
	l.configMap("watched")
	l.must(l.admin.CoreV1().ConfigMaps(l.namespace).Delete(ctx, "watched", metav1.DeleteOptions{}))
	for _, way := range ways {
		for len(seen[way]) == 0 || !strings.Contains(seen[way][len(seen[way])-1], "DELETED") {
			select {
			case line := <-streams[way]:
				seen[way] = append(seen[way], line)
			case <-ctx.Done():
				t.Fatalf("%s: no more after %q", way, seen[way])
			}
		}
		if diff := cmp.Diff(seen[ways[0]], seen[way]); diff != "" {
			t.Errorf("%s instead of %s: %s", way, ways[0], diff)
		}
	}
}

func largeObjects(t *testing.T, l *lab) {
	large := l.newConfigMap("large")
	large.Data = map[string]string{"text": strings.Repeat("Grüße, {{ }} \"\n", 60_000)} // nearly 1 MiB
	_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Create(t.Context(), large, metav1.CreateOptions{})
	l.must(err)
	got, err := l.kube.CoreV1().ConfigMaps(l.namespace).Get(t.Context(), "large", metav1.GetOptions{})
	l.must(err)
	if got.Data["text"] != large.Data["text"] {
		t.Error("the object is another one")
	}
	large.Data["text"] = strings.Repeat("x", 4<<20)
	_, err = l.kube.CoreV1().ConfigMaps(l.namespace).Update(t.Context(), large, metav1.UpdateOptions{})
	if err == nil || l.last().Code == 200 {
		t.Errorf("an object that is too large: %v, %v", err, l.last())
	}
	l.must(l.admin.CoreV1().ConfigMaps(l.namespace).Delete(t.Context(), "large", metav1.DeleteOptions{}))
}

func serverSideApply(t *testing.T, l *lab) {
	for i, want := range []string{"201 moved", "200 same", "200 moved"} {
		object := corev1ac.ConfigMap("applied", l.namespace).WithData(map[string]string{"k": fmt.Sprint(i / 2)})
		_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Apply(t.Context(), object, metav1.ApplyOptions{FieldManager: "lab"})
		l.must(err)
		e := l.last()
		if got := fmt.Sprintf("%d %s", e.Code, e.Effect); got != want || e.Verb != wire.Apply || e.Name != "applied" {
			t.Errorf("apply number %d: %v, want %s", i+1, e, want)
		}
	}
}

// informerStreams shows that the list comes as a stream that ends with a bookmark, and that the informer keeps
// following it.
func informerStreams(t *testing.T, l *lab) {
	mark := l.ledger.Mark()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	factory := informers.NewSharedInformerFactoryWithOptions(l.kube, 0, informers.WithNamespace(l.namespace))
	informer := factory.Core().V1().ConfigMaps()
	informer.Informer()
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		t.Fatal("the informer does not fill")
	}
	l.configMap("late")
	eventually(t, "the informer follows", func() bool {
		_, err := informer.Lister().ConfigMaps(l.namespace).Get("late")
		return err == nil
	})
	asked := l.ledger.Entries(ledger.Match{After: mark})
	if len(asked) != 1 || asked[0].Verb != wire.Watch || asked[0].FullResource() != "configmaps" {
		t.Errorf("the informer sent more than a watch: %v", asked)
	}
}

// refusalPasses makes the API server answer 429 to an eviction that a disruption budget forbids.
func refusalPasses(t *testing.T, l *lab) {
	labels := map[string]string{"app": "x"}
	_, err := l.admin.PolicyV1().PodDisruptionBudgets(l.namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels}}}, metav1.CreateOptions{})
	l.must(err)
	_, err = l.admin.CoreV1().Pods(l.namespace).
		Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "x", Labels: labels},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "x", Image: "x"}}}}, metav1.CreateOptions{})
	l.must(err)
	eventually(t, "the pod runs", func() bool {
		pod, err := l.admin.CoreV1().Pods(l.namespace).Get(t.Context(), "x", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	eviction := `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"x"}}`
	response, body := raw(t, l.proxied, "POST", "/api/v1/namespaces/"+l.namespace+"/pods/x/eviction", jsonType, eviction)
	var status metav1.Status
	if err := json.Unmarshal(body, &status); err != nil || response.StatusCode != 429 ||
		status.Reason != metav1.StatusReasonTooManyRequests {
		t.Errorf("%s %s", response.Status, body)
	}
	if e := l.last(); e.Code != 429 || e.Effect != ledger.None || e.FullResource() != "pods/eviction" || len(e.Faults) > 0 {
		t.Errorf("the ledger says %+v", e)
	}
}

// strangers have no certificate of the proxy: they get no answer.
func strangers(t *testing.T, l *lab) {
	kubeconfig, err := l.proxy.AddClient("other", l.direct)
	l.must(err)
	for _, path := range []string{kubeconfig, filepath.Dir(kubeconfig)} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", path, info.Mode(), err)
		}
	}
	if !strings.HasPrefix(l.proxy.URL(), "https://127.0.0.1:") {
		t.Errorf("the proxy listens on %s", l.proxy.URL())
	}
	known, err := tls.X509KeyPair(l.direct.CertData, l.direct.KeyData) // the same name, another authority
	l.must(err)
	for name, certificate := range map[string]*tls.Certificate{"nothing": {}, "a certificate of the cluster": &known} {
		// for any requested certificate
		show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
		client := &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: show}}}
		response, err := client.Get(l.proxy.URL() + "/version")
		if err == nil {
			t.Errorf("with %s: %s", name, response.Status)
		}
	}
	plain := rest.CopyConfig(l.proxied)
	plain.CAData = nil
	if client, err := rest.HTTPClientFor(plain); err != nil {
		t.Error(err)
	} else if _, err := client.Get(l.proxy.URL()); !errors.As(err, new(*tls.CertificateVerificationError)) {
		t.Errorf("a client that does not know the proxy's authority: %v", err)
	}
	if _, err := l.proxy.AddClient("a/b", l.direct); err == nil {
		t.Error("a name that is no file name was taken")
	}
}
