package proxy_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
)

// w is the fixture of all tests of this package: a real API server, and an administrator.
var w *fixture.Fixture

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if w, err = fixture.Start(ctx, fixture.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := w.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// A lab is one test's proxy, user and namespace.
type lab struct {
	t         *testing.T
	proxy     *proxy.Proxy
	ledger    *ledger.Ledger
	user      string
	namespace string
	// direct reaches the API server directly, proxied through the proxy; both as the same user.
	direct, proxied *rest.Config
	// kube is a typed client behind the proxy that uses protobuf.
	kube *kubernetes.Clientset
	// admin is the administrator's client.
	admin kubernetes.Interface
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, ledger: ledger.New(nil), admin: w.Kube}
	var err error
	l.proxy, err = proxy.Start(l.ledger, t.TempDir())
	l.must(err)
	t.Cleanup(func() { l.must(l.proxy.Close()) })
	space, err := l.admin.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "lab-"}}, metav1.CreateOptions{})
	l.must(err)
	l.namespace, l.user = space.Name, space.Name
	user, err := w.AddUser(t.Context(), l.user)
	l.must(err)
	l.must(w.GrantAdmin(t.Context(), l.user))
	l.direct = user.Config
	l.proxied = l.config()
	l.kube = l.clientset(l.proxied, protobufType)
	return l
}

// config returns a configuration for a client of the test's own proxy.
func (l *lab) config() *rest.Config {
	l.t.Helper()
	path, err := l.proxy.AddClient(l.user, l.direct)
	l.must(err)
	cfg, err := clientcmd.BuildConfigFromFlags("", path)
	l.must(err)
	cfg.QPS = -1
	return cfg
}

const (
	protobufType = "application/vnd.kubernetes.protobuf"
	jsonType     = "application/json"
)

func (l *lab) clientset(cfg *rest.Config, contentType string) *kubernetes.Clientset {
	l.t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.ContentType, cfg.AcceptContentTypes = contentType, contentType+",application/json"
	c, err := kubernetes.NewForConfig(cfg)
	l.must(err)
	return c
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// configMap creates a ConfigMap as the administrator.
func (l *lab) configMap(name string) *corev1.ConfigMap {
	l.t.Helper()
	c, err := l.admin.CoreV1().ConfigMaps(l.namespace).Create(l.t.Context(), l.newConfigMap(name), metav1.CreateOptions{})
	l.must(err)
	return c
}

func (l *lab) newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
}

// create creates a ConfigMap through the proxy.
func (l *lab) create(name string) error {
	_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Create(l.t.Context(), l.newConfigMap(name), metav1.CreateOptions{})
	return err
}

// get reads a ConfigMap through the proxy.
func (l *lab) get(name string) error {
	_, err := l.kube.CoreV1().ConfigMaps(l.namespace).Get(l.t.Context(), name, metav1.GetOptions{})
	return err
}

// exists reports whether a ConfigMap exists, past the proxy.
func (l *lab) exists(name string) bool {
	l.t.Helper()
	list, err := l.admin.CoreV1().ConfigMaps(l.namespace).
		List(l.t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	l.must(err)
	return len(list.Items) == 1
}

// audited counts the answers of a kind in the audit log: verb, object, code.
func (l *lab) audited(want string) (n int) {
	l.t.Helper()
	events, _, err := w.Audit(0)
	l.must(err)
	for _, e := range events {
		r := e.Request()
		if e.Stage == "ResponseComplete" && e.User.Username == l.user && r.Resource != "" &&
			fmt.Sprint(r.Verb, " ", r.FullResource(), " ", r.Name, " ", e.ResponseStatus.Code) == want {
			n++
		}
	}
	return n
}

// last is the newest entry.
func (l *lab) last() ledger.Entry { return l.ledger.Entry(l.ledger.Mark()) }

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}
