package operator

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// These tests run the program itself against a local cluster of their own, as a user that has exactly
// the permissions of config/rbac/role.yaml. What it sent is counted in the API server's audit log.

const user = "myweb-operator"

var (
	local      *testenv.Local
	program    string
	folder     string // of the program
	kubeconfig string
	admin      client.Client
	scheme     = runtime.NewScheme()
	chapter    = filepath.Join("..", "..")
)

func TestMain(m *testing.M) {
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(webv1.AddToScheme(scheme))
	code := m.Run()
	if local != nil {
		if err := local.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.RemoveAll(folder)
	os.Exit(code)
}

// needLocal starts the local cluster, once, and gives the operator's user the shipped permissions. In a
// copy of this folder that no workshop surrounds, the test is skipped.
func needLocal(t *testing.T) {
	t.Helper()
	if local != nil {
		return
	}
	cluster, err := testenv.StartLocal(filepath.Join(chapter, "config", "crd", "operator.k8s-summit.org_mywebs.yaml"))
	if errors.Is(err, testenv.ErrNoRepository) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	local = cluster
	if admin, err = client.New(local.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if kubeconfig, err = local.User(user); err != nil {
		t.Fatal(err)
	}
	grant(t)
}

// build compiles the program, once.
func build(t *testing.T) {
	t.Helper()
	if program != "" {
		return
	}
	var err error
	if folder, err = os.MkdirTemp("", "myweb-operator-"); err != nil {
		t.Fatal(err)
	}
	testenv.OnInterrupt(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "myweb-operator")
	if out, err := exec.Command("go", "build", "-o", path, chapter+"/cmd/myweb-operator").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	program = path
}

// apply creates the objects of a manifest.
func apply(t *testing.T, obj client.Object, path string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(chapter, path))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, obj); err != nil {
		t.Fatal(err)
	}
	if err := admin.Create(t.Context(), obj); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
}

// grant gives the operator's user the generated role, and the one for leader election in "default".
func grant(t *testing.T) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}
	role, lease := &rbacv1.ClusterRole{}, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}}
	apply(t, role, "config/rbac/role.yaml")
	apply(t, lease, "config/rbac/leader_election_role.yaml")
	for _, binding := range []client.Object{
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: lease.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: lease.Name}},
	} {
		if err := admin.Create(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	}
}

// log collects what the operator prints; it is read meanwhile.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs the operator, waits until it works, and returns how to stop it: as SIGTERM does, within
// 10 s, with code 0. Its log may hold no error, but for a conflict, which is a reason to try again.
func start(t *testing.T, flags ...string) (stop func()) {
	t.Helper()
	build(t)
	said := &log{}
	cmd := exec.Command(program, append([]string{"--kubeconfig", kubeconfig, "--health-probe-bind-address=0"}, flags...)...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("the operator ended with %v:\n%s", err, said)
			}
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
			t.Error("the operator was not gone 10 s after SIGTERM")
		}
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, "panic") ||
				strings.Contains(line, `"level":"error"`) && !strings.Contains(line, "the object has been modified") {
				t.Errorf("the operator logged: %s", line)
			}
		}
	})
	t.Cleanup(stop)
	gomega.NewWithT(t).Eventually(said.String, "60s").Should(gomega.ContainSubstring("Starting workers"))
	return stop
}

// A request is one line of the audit log.
type request struct {
	Stage, Verb, RequestURI string
	User                    struct{ Username string }
	ObjectRef               struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus          struct{ Code int }
}

// requests returns what the operator asked of the API server and was answered.
func requests(t *testing.T) (found []request) {
	t.Helper()
	f, err := os.Open(local.AuditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			continue // a line that is being written
		}
		if r.User.Username == user && r.Stage == "ResponseComplete" {
			found = append(found, r)
		}
	}
	return found
}

// writes counts the requests that change something.
func writes(all []request) (n int) {
	for _, r := range all {
		switch r.Verb {
		case "create", "update", "patch", "delete", "deletecollection":
			n++
		}
	}
	return n
}

// A story is what happens to one MyWeb while the operator runs.
type story struct {
	*gomega.WithT
	t   *testing.T
	web *webv1.MyWeb
	key client.ObjectKey
}

func TestTheStoryOfAMyWeb(t *testing.T) {
	needLocal(t)
	stop := start(t)
	s := story{WithT: gomega.NewWithT(t), t: t, web: &webv1.MyWeb{}}
	s.SetDefaultEventuallyTimeout(60 * time.Second)
	apply(t, s.web, "config/samples/myweb.yaml")
	s.key = client.ObjectKeyFromObject(s.web)

	s.Eventually(s.completed).Should(gomega.Succeed())
	s.Expect(s.web.Status.NodePort).To(gomega.Equal(int32(30100)))
	s.keepsToTheBudget()
	s.rollsThePodsForAChangedPage()
	s.bringsADeletedChildBack()

	quiet := 0
	s.Eventually(func() bool { // the last lines of the audit log are written
		before := quiet
		quiet = writes(requests(t))
		return before == quiet
	}, "20s", "1s").Should(gomega.BeTrue())
	stop()
	start(t)
	s.Consistently(func() int { return writes(requests(t)) }, "3s").Should(gomega.Equal(quiet), "writes at rest and after a restart")

	s.leavesNothingBehind()
	for _, r := range requests(t) {
		if r.ResponseStatus.Code == http.StatusForbidden {
			t.Errorf("the role lacks a permission: %s %s", r.Verb, r.RequestURI)
		}
	}
}

func (s story) completed(g gomega.Gomega) {
	g.Expect(admin.Get(s.t.Context(), s.key, s.web)).To(gomega.Succeed())
	g.Expect(s.web.Status.ObservedGeneration).To(gomega.Equal(s.web.Generation))
	g.Expect(s.web.Status.Completed).To(gomega.BeTrue())
}

// keepsToTheBudget: 3 children and at most 2 status writes; after the caches synced nothing is read.
func (s story) keepsToTheBudget() {
	children, status := 0, 0
	for _, r := range requests(s.t) {
		switch {
		case r.ObjectRef.Subresource == "status":
			status++
		case r.Verb == "patch":
			children++
		case r.ObjectRef.Resource != "" && (r.Verb == "get" || r.Verb == "list"):
			s.t.Errorf("%s %s was sent: reads come from the cache", r.Verb, r.RequestURI)
		}
	}
	s.t.Logf("from creation to completed: %d child writes, %d status writes, no GET, no LIST", children, status)
	if children != 3 || status > 2 {
		s.t.Errorf("from creation to completed: %d child writes, %d status writes; the budget is 3 and 2", children, status)
	}
}

func (s story) rollsThePodsForAChangedPage() {
	before := s.pods()
	s.web.Spec.PageContentHTML = new("<p>changed</p>")
	s.Expect(admin.Update(s.t.Context(), s.web)).To(gomega.Succeed())
	s.Eventually(s.completed).Should(gomega.Succeed())
	s.Eventually(func(g gomega.Gomega) {
		for name := range s.pods() {
			g.Expect(before).NotTo(gomega.HaveKey(name), "a pod with the old page")
		}
	}).Should(gomega.Succeed())
}

// pods are those of the MyWeb, by name.
func (s story) pods() map[string]bool {
	list := &corev1.PodList{}
	s.Expect(admin.List(s.t.Context(), list, client.InNamespace(s.key.Namespace),
		client.MatchingLabels{"app.kubernetes.io/instance": s.key.Name})).To(gomega.Succeed())
	names := map[string]bool{}
	for _, p := range list.Items {
		names[p.Name] = true
	}
	return names
}

func (s story) bringsADeletedChildBack() {
	old := &appsv1.Deployment{}
	s.Expect(admin.Get(s.t.Context(), s.key, old)).To(gomega.Succeed())
	s.Expect(admin.Delete(s.t.Context(), old)).To(gomega.Succeed())
	s.Eventually(func(g gomega.Gomega) {
		again := &appsv1.Deployment{}
		g.Expect(admin.Get(s.t.Context(), s.key, again)).To(gomega.Succeed())
		g.Expect(again.UID).NotTo(gomega.Equal(old.UID))
		g.Expect(again.Status.AvailableReplicas).To(gomega.Equal(int32(1)))
	}).Should(gomega.Succeed())
	s.Eventually(s.completed).Should(gomega.Succeed())
}

func (s story) leavesNothingBehind() {
	s.Expect(admin.Delete(s.t.Context(), s.web)).To(gomega.Succeed())
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}} {
		s.Eventually(func() bool { return apierrors.IsNotFound(admin.Get(s.t.Context(), s.key, obj)) }).Should(gomega.BeTrue())
	}
	s.Eventually(s.pods).Should(gomega.BeEmpty())
}

func TestTheLeaderReleasesItsLease(t *testing.T) {
	needLocal(t)
	g := gomega.NewWithT(t)
	holder := func() string {
		lease := &coordinationv1.Lease{}
		err := admin.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "myweb-operator"}, lease)
		if apierrors.IsNotFound(err) {
			return ""
		}
		g.Expect(err).NotTo(gomega.HaveOccurred())
		return *lease.Spec.HolderIdentity
	}
	stop := start(t, "--leader-elect", "--leader-election-namespace=default")
	g.Expect(holder()).NotTo(gomega.BeEmpty())
	stop()
	g.Expect(holder()).To(gomega.BeEmpty(), "who comes next should not have to wait")

	used := map[string]bool{}
	for _, r := range requests(t) {
		if r.ObjectRef.Resource == "leases" || r.ObjectRef.Resource == "events" {
			used[r.Verb+" "+r.ObjectRef.Resource] = true
			if r.ResponseStatus.Code == http.StatusForbidden {
				t.Errorf("the role lacks a permission: %s %s", r.Verb, r.RequestURI)
			}
		}
	}
	want := map[string]bool{"get leases": true, "create leases": true, "update leases": true, "create events": true}
	if diff := cmp.Diff(want, used); diff != "" {
		t.Errorf("config/rbac/leader_election_role.yaml grants what is used, and this is used:\n%s", diff)
	}
}

func TestItSaysInOneLineWhyItCannotStart(t *testing.T) {
	needLocal(t)
	build(t)
	unreachable := filepath.Join(t.TempDir(), "kubeconfig")
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(data), "server: https://", "server: https://127.0.0.1:1/not-", 1)
	if err := os.WriteFile(unreachable, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"no API server":      {[]string{"--kubeconfig", unreachable}, "connection refused"},
		"no such kubeconfig": {[]string{"--kubeconfig", unreachable + "-none"}, "set KUBECONFIG or --kubeconfig"},
		"an unknown flag":    {[]string{"--colour"}, "flag provided but not defined: -colour"},
		"no worker":          {[]string{"--kubeconfig", kubeconfig, "--max-concurrent-reconciles=0"}, "must be at least 1"},
		"an address that is none": {[]string{"--kubeconfig", kubeconfig, "--health-probe-bind-address=nowhere"},
			"--health-probe-bind-address"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"--health-probe-bind-address=0"}, test.args...)
			out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("%v, printed:\n%s\nwant %q", err, out, test.want)
			}
			if n := strings.Count(string(out), "\n"); n != 1 && name != "an unknown flag" { // which shows all flags
				t.Errorf("printed %d lines:\n%s", n, out)
			}
		})
	}
}

func TestItSaysThatTheCRDIsMissing(t *testing.T) {
	cfg, stop, err := testenv.StartAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	_, err = NewManager(cfg, Options{Metrics: "0", Probes: "0", Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "does not know MyWebs: install the CRD first (kubectl apply -f config/crd)") {
		t.Errorf("got %v", err)
	}
}
