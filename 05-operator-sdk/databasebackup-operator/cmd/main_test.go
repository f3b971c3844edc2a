package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

// These tests run the program itself, as a process of its own, on a real API server. It is told by a
// kubeconfig whose user has no more than the roles in config/rbac.

var (
	config  *rest.Config
	folder  string // of the program and the kubeconfigs
	binary  string
	crds    = filepath.Join("..", "config", "crd", "bases")
	install sync.Once // the CRD, after the test that runs without it
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	if folder, err = os.MkdirTemp("", "databasebackup-operator-"); err != nil {
		return 1, err
	}
	testenv.OnInterrupt(func() { os.RemoveAll(folder) })
	defer os.RemoveAll(folder)
	binary = filepath.Join(folder, "databasebackup-operator")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build: %w\n%s", err, out)
	}
	var stop func() error
	if config, stop, err = testenv.StartAPIServer(); err != nil {
		return 1, err
	}
	code = m.Run()
	return code, stop()
}

// kubeconfig writes one for a user, the administrator when that is empty, and returns its path.
func kubeconfig(t *testing.T, user string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
			Impersonate: user}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A world is the administrator's view, with a namespace of the test's own.
type world struct {
	*gomega.WithT
	client.Client
	t         *testing.T
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	install.Do(func() {
		if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{crds}}); err != nil {
			t.Fatal(err)
		}
	})
	w := &world{WithT: gomega.NewWithT(t), t: t}
	w.SetDefaultEventuallyTimeout(30 * time.Second)
	w.SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	var err error
	w.Client, err = client.New(config, client.Options{Scheme: scheme})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "program-"}}
	w.create(namespace)
	w.namespace = namespace.Name
	return w
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	w.Expect(w.Create(w.t.Context(), obj)).To(gomega.Succeed())
}

// allow gives a user the rules of a role in config/rbac, in the test's namespace or everywhere.
func (w *world) allow(subject rbacv1.Subject, file string, everywhere bool) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "config", "rbac", file))
	w.Expect(err).NotTo(gomega.HaveOccurred())
	first, _, _ := strings.Cut(strings.TrimPrefix(string(data), "---\n"), "\n---\n")
	role := &rbacv1.ClusterRole{}
	w.Expect(yaml.Unmarshal([]byte(first), role)).To(gomega.Succeed())
	role.ObjectMeta = metav1.ObjectMeta{GenerateName: "program-"}
	role.Kind = "" // one file holds a Role
	w.create(role)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	if everywhere {
		w.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref})
	} else {
		w.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: w.namespace}, Subjects: []rbacv1.Subject{subject}, RoleRef: ref})
	}
}

// operator returns the kubeconfig of a user who may do what the operator may do in the test's namespace.
func (w *world) operator() string {
	w.t.Helper()
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: "operator-of-" + w.namespace}
	w.allow(user, "role.yaml", false)
	w.allow(user, "leader_election_role.yaml", false)
	w.allow(user, "metrics_auth_role.yaml", true)
	return kubeconfig(w.t, user.Name)
}

// served waits until the named DatabaseBackup has its Job, and returns that.
func (w *world) served(name string) *batchv1.Job {
	w.t.Helper()
	jobs := &batchv1.JobList{}
	w.Eventually(func() ([]batchv1.Job, error) {
		err := w.List(w.t.Context(), jobs, client.InNamespace(w.namespace), client.MatchingLabels{"app.kubernetes.io/instance": name})
		return jobs.Items, err
	}).Should(gomega.HaveLen(1))
	return &jobs.Items[0]
}

// target makes a server that is ready.
func (w *world) target() {
	w.t.Helper()
	meta, l := metav1.ObjectMeta{Namespace: w.namespace, Name: "db"}, map[string]string{"app": "db"}
	set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: l},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "postgres:17"}}}}}}
	w.create(set)
	set.Status.Replicas, set.Status.ReadyReplicas = 1, 1
	w.Expect(w.Status().Update(w.t.Context(), set)).To(gomega.Succeed())
	w.create(&corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Selector: l, Ports: []corev1.ServicePort{{Port: 5432}}}})
}

// ask asks for a backup at once.
func (w *world) ask(name string) {
	w.t.Helper()
	key := &databasesv1.SecretKeyReference{Name: "credentials", Key: "k"}
	w.create(&databasesv1.DatabaseBackup{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: databasesv1.DatabaseBackupSpec{DatabaseName: name, Schedule: "@yearly", BackupPath: "/backups", Immediate: true,
			TargetRef:   &databasesv1.TargetReference{Name: "db"},
			Auth:        &databasesv1.Auth{UsernameSecretRef: key, PasswordSecretRef: key},
			Destination: &databasesv1.Destination{PersistentVolumeClaim: &databasesv1.ClaimReference{ClaimName: "backups"}}}})
}

// A process is the program while it runs.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	said  saying
	ended chan struct{}
}

// saying collects what a program prints; it is read meanwhile.
type saying struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *saying) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// launch starts the program. Arguments of the form NAME=value are environment variables. It is killed when
// the test ends.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary, "--health-probe-bind-address=0"), ended: make(chan struct{})}
	p.cmd.Env = os.Environ()
	for _, arg := range args {
		if strings.HasPrefix(arg, "--") {
			p.cmd.Args = append(p.cmd.Args, arg)
		} else {
			p.cmd.Env = append(p.cmd.Env, arg)
		}
	}
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("it said:\n%s", p.said.String())
		}
	})
	return p
}

func (p *process) says(text string) {
	p.t.Helper()
	gomega.NewWithT(p.t).Eventually(p.said.String, "30s", "10ms").Should(gomega.ContainSubstring(text))
}

// kill ends the process as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// terminate ends the process as Kubernetes does. It has to be gone after 10 s, with code 0.
func (p *process) terminate() (took time.Duration) {
	p.t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	gomega.NewWithT(p.t).Eventually(p.ended, "10s", "10ms").Should(gomega.BeClosed(), "it has not ended:\n%s", &p.said)
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("it ended with code %d:\n%s", code, &p.said)
	}
	return time.Since(began)
}

func TestItSaysInOneLineWhyItCannotStart(t *testing.T) { // the first of all: the CRD is not installed yet
	admin := "--kubeconfig=" + kubeconfig(t, "")
	unreachable := filepath.Join(t.TempDir(), "kubeconfig")
	data, err := os.ReadFile(strings.TrimPrefix(admin, "--kubeconfig="))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unreachable, []byte(strings.Replace(string(data), config.Host, "https://127.0.0.1:1", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no CRD":                       {[]string{admin}, "does not know the kind DatabaseBackup: install the CRD first (make install)"},
		"no API server":                {[]string{"--kubeconfig=" + unreachable}, "connection refused"},
		"no such kubeconfig":           {[]string{"--kubeconfig=" + unreachable + "-none"}, "set KUBECONFIG or --kubeconfig"},
		"an unknown flag":              {[]string{"--colour"}, "flag provided but not defined: -colour"},
		"no worker":                    {[]string{admin, "--max-concurrent-reconciles=0"}, "must be at least 1"},
		"a namespace that cannot be":   {[]string{admin, "WATCH_NAMESPACE=a,B"}, `WATCH_NAMESPACE names "B"`},
		"a port in use":                {[]string{admin, "--metrics-bind-address=127.0.0.1:" + port}, "--metrics-bind-address: listen tcp"},
		"a lease nowhere":              {[]string{admin, "--leader-elect"}, "--leader-elect needs --leader-election-namespace"},
		"an image that cannot be":      {[]string{admin, "PGBACKUP_IMAGE=Pgbackup::"}, `PGBACKUP_IMAGE is "Pgbackup::": invalid reference format`},
		"a choice that is none":        {[]string{admin, "ENABLE_WEBHOOKS=perhaps"}, `ENABLE_WEBHOOKS is "perhaps": it must be true or false`},
		"webhooks without certificate": {[]string{admin, "ENABLE_WEBHOOKS=true"}, "outside a cluster webhooks need --webhook-cert-path"},
		"webhooks on a port in use":    {[]string{admin, "--webhook-cert-path=" + t.TempDir(), "--webhook-port=" + port}, "--webhook-port: listen tcp"},
	} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, test.args...)
			gomega.NewWithT(t).Eventually(p.ended, "20s", "10ms").Should(gomega.BeClosed())
			text := p.said.String()
			if code := p.cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(text, test.want) {
				t.Errorf("it ended with code %d and said:\n%s\nwant %q", code, text, test.want)
			}
			if name == "an unknown flag" { // which shows all flags
				return
			}
			if !strings.HasPrefix(text, "databasebackup-operator: ") || strings.Count(text, "\n") != 1 {
				t.Errorf("it said more than one line, or not by its name:\n%s", text)
			}
		})
	}
}

func TestItSaysWhichKindIsMissing(t *testing.T) { // the second: one CRD of two is installed
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(crds, "databases.test.io_databasebackups.yaml")}}); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--kubeconfig="+kubeconfig(t, ""))
	gomega.NewWithT(t).Eventually(p.ended, "20s", "10ms").Should(gomega.BeClosed())
	if text := p.said.String(); !strings.Contains(text, "does not know the kind DatabaseRestore: install the CRDs first (make install)") || strings.Count(text, "\n") != 1 {
		t.Errorf("it said:\n%s", text)
	}
}

func TestItServesAndEndsInTime(t *testing.T) {
	w := newWorld(t)
	p := launch(t, "--kubeconfig="+w.operator(), "WATCH_NAMESPACE="+w.namespace, "PGBACKUP_IMAGE=registry:5000/pgbackup:17")
	w.target()
	w.ask("site")
	if image := w.served("site").Spec.Template.Spec.Containers[0].Image; image != "registry:5000/pgbackup:17" {
		t.Errorf("the image is %s", image)
	}
	backup := &databasesv1.DatabaseBackup{}
	w.Eventually(func() (bool, error) { // the last write for now: one that is cut off would be logged as an error
		err := w.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "site"}, backup)
		return backup.Status.InProgress, err
	}).Should(gomega.BeTrue())
	t.Logf("gone %s after SIGTERM", p.terminate().Round(time.Millisecond))
	if strings.Contains(p.said.String(), `"level":"error"`) {
		t.Errorf("it logged an error:\n%s", p.said.String())
	}
}

func TestWithoutItsPermissionsItSaysWhyAndEndsInTime(t *testing.T) {
	w := newWorld(t)
	p := launch(t, "--kubeconfig="+kubeconfig(t, "powerless"), "WATCH_NAMESPACE="+w.namespace)
	p.says("is forbidden")
	if took := p.terminate(); took > 3*time.Second {
		t.Errorf("it did nothing yet, and ended after %s", took)
	}
}

func TestTwoReplicasHandOver(t *testing.T) {
	w := newWorld(t)
	args := []string{"--kubeconfig=" + w.operator(), "WATCH_NAMESPACE=" + w.namespace, "PGBACKUP_IMAGE=pgbackup:17", "--leader-elect", "--leader-election-namespace=" + w.namespace}
	first := launch(t, args...)
	first.says("Successfully acquired lease")
	second := launch(t, args...)
	second.says("Attempting to acquire leader lease")
	w.target()
	w.ask("one")
	w.served("one")
	if strings.Contains(second.said.String(), "Starting workers") {
		t.Error("two work at once")
	}
	first.terminate()
	began := time.Now()
	w.ask("two")
	w.served("two")
	t.Logf("the second replica took over, and had served the next DatabaseBackup after %s", time.Since(began).Round(time.Millisecond))
	if !strings.Contains(second.said.String(), "Starting workers") {
		t.Error("who served it?")
	}
	second.terminate()
}

// address is one on loopback where nobody listens.
func (w *world) address() string {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.Expect(err).NotTo(gomega.HaveOccurred())
	w.Expect(l.Close()).To(gomega.Succeed())
	return l.Addr().String()
}

// get asks an address for a page, and returns the status code, 0 when nobody answers.
func get(url string) int {
	answer, err := http.Get(url)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

// A replica that waits for the lease is ready too: it serves webhooks, and a rollout must not wait for its turn.
func TestProbesAnswerInEveryReplica(t *testing.T) {
	w := newWorld(t)
	operator := w.operator()
	for _, turn := range []string{"Successfully acquired lease", "Attempting to acquire leader lease"} {
		address := w.address()
		p := launch(t, "--kubeconfig="+operator, "WATCH_NAMESPACE="+w.namespace, "--health-probe-bind-address="+address,
			"--leader-elect", "--leader-election-namespace="+w.namespace)
		p.says(turn)
		for _, page := range []string{"/healthz", "/readyz"} {
			w.Eventually(func() int { return get("http://" + address + page) }).Should(gomega.Equal(200), page)
		}
	}
	address := w.address()
	powerless := launch(t, "--kubeconfig="+kubeconfig(t, "powerless"), "WATCH_NAMESPACE="+w.namespace, "--health-probe-bind-address="+address)
	powerless.says("is forbidden")
	w.Expect(get("http://" + address + "/healthz")).To(gomega.Equal(200))
	w.Expect(get("http://"+address+"/readyz")).To(gomega.Equal(500), "it sees nothing")
}

// token makes a ServiceAccount that may read metrics, or not, and returns a token of it.
func (w *world) token(name string, reads bool) string {
	w.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	w.create(account)
	if reads {
		w.allow(rbacv1.Subject{Kind: "ServiceAccount", Namespace: w.namespace, Name: name}, "metrics_reader_role.yaml", true)
	}
	asked := &authenticationv1.TokenRequest{}
	w.Expect(w.SubResource("token").Create(w.t.Context(), account, asked)).To(gomega.Succeed())
	return asked.Status.Token
}

// scrape asks for metrics, and returns the status code, 0 when nobody answers.
func scrape(address, token string) int {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+address+"/metrics", nil)
	if err != nil {
		return 0
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	answer, err := c.Do(r)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	w := newWorld(t)
	address := w.address()
	launch(t, "--kubeconfig="+w.operator(), "WATCH_NAMESPACE="+w.namespace, "--metrics-bind-address="+address)
	w.Eventually(func() int { return scrape(address, "") }).Should(gomega.Equal(401), "no token")
	w.Expect(scrape(address, w.token("stranger", false))).To(gomega.Equal(403))
	w.Expect(scrape(address, w.token("reader", true))).To(gomega.Equal(200))
}
