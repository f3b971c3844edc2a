package world

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"example.com/operator-workshop/scripts/internal/lab/ledger"
	"example.com/operator-workshop/scripts/internal/lab/proxy"
)

// These tests run a real operator, that of chapter 03, behind the proxy.
var (
	w       *World
	program string
	chapter string
)

func TestMain(m *testing.M) {
	if os.Getenv("LAB_TEST_CHILD") != "" {
		child()
	}
	if os.Getenv("LAB_TEST_WORLD") != "" {
		dieInAWorld()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	code, err := testAll(ctx, m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func testAll(ctx context.Context, m *testing.M) (code int, err error) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		return 1, err
	}
	chapter = filepath.Join(root, "03-client-go-controller")
	crd := filepath.Join(chapter, "config", "crd", "operator.k8s-summit.org_mywebs.yaml")
	if w, err = Start(ctx, Options{CRDs: []string{crd}}); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	program = filepath.Join(w.Dir, "myweb-controller")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/myweb-controller")
	build.Dir = chapter
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	return m.Run(), nil
}

// operator makes a user with the permissions that the chapter ships.
func operator(t *testing.T, name string) *User {
	t.Helper()
	u, err := w.AddUser(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Grant(t.Context(), name, "", filepath.Join(chapter, "config", "rbac", "role.yaml")); err != nil {
		t.Fatal(err)
	}
	return u
}

// run starts the operator as a user.
func run(t *testing.T, u *User) *Process {
	t.Helper()
	p, err := w.Run(Program{Name: u.Name, Path: program, Args: []string{"--health-probe-bind-address=0"}, Kubeconfig: u.Kubeconfig})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

func create(t *testing.T, namespace, name string) {
	t.Helper()
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": MyWebs.GroupVersion().String(), "kind": "MyWeb",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"image": "nginx", "pageContentHtml": "<h1>" + name + "</h1>"}}}
	if _, err := w.Dynamic.Resource(MyWebs).Namespace(namespace).Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, namespace, name string) {
	t.Helper()
	if err := w.Dynamic.Resource(MyWebs).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the children of "+name+" are gone", func() bool {
		_, err := w.Kube.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func completed(t *testing.T, namespace, name string) func() bool {
	return func() bool {
		web, err := w.Dynamic.Resource(MyWebs).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		done, _, _ := unstructured.NestedBool(web.Object, "status", "completed")
		return done
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestCrashAfterAWrite kills the operator when its second committed write is done, before it hears of it,
// and starts it again.
func TestCrashAfterAWrite(t *testing.T) {
	u := operator(t, "crashed")
	var p *Process
	var at []string
	crash := w.Proxy.Add(proxy.Rule{Name: "crash", Match: ledger.Match{Users: []string{u.Name}, Where: ledger.Changes.Matches},
		Moment: proxy.After, Skip: 1, Times: 1, Do: proxy.Call(func(x *proxy.Exchange) proxy.Action {
			if exit := p.Kill(); exit.Signal != syscall.SIGKILL || exit.CPU <= 0 {
				t.Errorf("killed, it %v after %v of CPU time", exit, exit.CPU)
			}
			at = append(at, x.Entry().What())
			return proxy.Drop()
		})})
	defer crash.Release()
	p = run(t, u)
	create(t, "default", "crash")
	defer remove(t, "default", "crash")
	if err := crash.Await(within(t, 30*time.Second), 1); err != nil {
		t.Fatalf("%v\n%s", err, p.Output())
	}
	<-p.Ended()
	mark := w.Ledger.Mark()
	if completed(t, "default", "crash")() {
		t.Error("completed without its operator")
	}
	again, err := p.Restart()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Kill()
	eventually(t, "the new process finishes", completed(t, "default", "crash"))
	writes := ledger.Match{Users: []string{u.Name}, After: mark, Where: ledger.Changes.Matches}
	if err := w.Ledger.AwaitQuiet(within(t, 30*time.Second), time.Second, writes); err != nil {
		t.Error(err)
	}
	if n := w.Ledger.Count(writes); n == 0 || n > 4 || len(at) != 1 {
		t.Errorf("after the crash at %q %d writes:\n%v", at, n, w.Ledger.Entries(writes))
	}
}

func TestGrantAndRevoke(t *testing.T) {
	u := operator(t, "granted")
	kube, err := kubernetes.NewForConfig(u.Proxied)
	if err != nil {
		t.Fatal(err)
	}
	can := func() bool {
		_, err := kube.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	if !can() {
		t.Error("the API server does not know the role yet")
	}
	if _, err := kube.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("more than the role allows: %v", err)
	}
	if err := w.Revoke(t.Context(), u.Name, "", filepath.Join(chapter, "config", "rbac", "role.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the role is taken back", func() bool { return !can() })
	lease := filepath.Join(chapter, "config", "rbac", "leader_election_role.yaml")
	if err := w.Grant(t.Context(), u.Name, "kube-public", lease); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoordinationV1().Leases("kube-public").Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Role in its namespace: %v", err)
	}
	if _, err := kube.CoordinationV1().Leases("default").Get(t.Context(), "none", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a Role in another namespace: %v", err)
	}
	if err := w.Grant(t.Context(), u.Name, "", filepath.Join(chapter, "go.mod")); err == nil {
		t.Error("a file without roles was taken")
	}
}

// TestAPIServerGoes kills the API server under a client that watches through the proxy.
func TestAPIServerGoes(t *testing.T) {
	u := operator(t, "patient")
	kube, err := kubernetes.NewForConfig(u.Proxied)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := kube.CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Signal(APIServer, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range watch.ResultChan() { // ends
	}
	if _, err := kube.CoreV1().ConfigMaps("default").Create(t.Context(), nil, metav1.CreateOptions{}); err == nil {
		t.Error("written without an API server")
	}
	if err := w.Repair(within(t, 60*time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("after the repair: %v", err)
	}
}

// dieInAWorld makes a world with an operator in it, and ends without any farewell.
func dieInAWorld() {
	w, err := Start(context.Background(), Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	p, err := w.Run(Program{Name: "left alone", Path: os.Args[0], Env: []string{"LAB_TEST_CHILD=silent"}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(p.PID(), w.state)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

// TestNothingOutlivesTheLab kills a lab: cluster, operators and files have to go with it.
func TestNothingOutlivesTheLab(t *testing.T) {
	lab := exec.Command(os.Args[0])
	lab.Env = append(os.Environ(), "LAB_TEST_WORLD=yes")
	lab.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	words := &output{}
	lab.Stdout = words
	lab.WaitDelay = time.Second
	_ = lab.Run() // killed
	var pid int
	var state string
	if _, err := fmt.Sscan(words.String(), &pid, &state); err != nil {
		t.Fatalf("%v: %s", err, words)
	}
	eventually(t, "the files are gone", func() bool { _, err := os.Stat(state); return os.IsNotExist(err) })
	if _, err := os.Stat("/proc/self"); err != nil {
		return // elsewhere nothing ends an operator whose lab was killed
	}
	eventually(t, "the operator is gone", func() bool {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // one that is dead may wait for init to reap it
		return err != nil || strings.Contains(string(data), ") Z ")
	})
}
