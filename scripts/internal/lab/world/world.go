// Package world is what the lab's experiments happen in: a local cluster of their own, and the operators
// that run against it as processes of their own, behind a proxy.
package world

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/cluster"
	"example.com/operator-workshop/scripts/internal/lab/ledger"
	"example.com/operator-workshop/scripts/internal/lab/proxy"
)

// MyWebs is the resource that every implementation handles.
var MyWebs = schema.GroupVersionResource{Group: "operator.k8s-summit.org", Version: "v1", Resource: "mywebs"}

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Components of the control plane that Signal reaches.
const (
	APIServer         = "kube-apiserver"
	Etcd              = "etcd"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubelets          = "kwok"
)

// Options say what a world is made of.
type Options struct {
	// Root is the checkout, whose bin/ holds the programs; empty means the one around the working folder.
	Root string
	// CRDs are files that are installed before the controllers start.
	CRDs []string
	// Report is told what the cluster does; nil is silent.
	Report func(format string, args ...any)
}

// A World is a local cluster with a proxy in front of it, and an administrator who goes past the proxy.
type World struct {
	// Root is the checkout; Dir a folder for whatever an experiment writes. It goes with the cluster.
	Root, Dir string
	// Config, Kube and Dynamic are the administrator's. Nothing limits how much they ask.
	Config  *rest.Config
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Proxy is what operators talk to, Ledger what it writes.
	Proxy  *proxy.Proxy
	Ledger *ledger.Ledger
	// AuditLog is the API server's.
	AuditLog string

	state   string
	cluster *cluster.Cluster
	holder  *exec.Cmd
	hold    io.Closer

	mu        sync.Mutex
	processes []*Process
}

// Root returns the checkout around a folder.
func Root(dir string) (string, error) {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "tools", "go.mod")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the lab runs inside a checkout of the workshop")
}

// Start makes a world; ctx is for the start alone. Stop ends the world; when this process dies before, however that comes, the cluster ends
// by itself, and on Linux the operators do too.
func Start(ctx context.Context, o Options) (w *World, err error) {
	w = &World{Root: o.Root}
	if w.Root == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		if w.Root, err = Root(dir); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err, w = fmt.Errorf("start the lab: %w", errors.Join(err, w.Stop())), nil
		}
	}()
	if err := w.startCluster(ctx, o); err != nil {
		return w, err
	}
	w.Dir = filepath.Join(w.state, "lab")
	if err := os.Mkdir(w.Dir, 0o700); err != nil {
		return w, err
	}
	w.Ledger = ledger.New(nil)
	w.Proxy, err = proxy.Start(w.Ledger, w.Dir)
	return w, err
}

// startCluster runs `workshop hold`: it keeps a cluster as long as this process keeps its stdin open.
func (w *World) startCluster(ctx context.Context, o Options) (err error) {
	args := []string{"hold"}
	for _, crd := range o.CRDs {
		path, err := filepath.Abs(crd)
		if err != nil {
			return err
		}
		args = append(args, "--crd", path)
	}
	w.holder = exec.Command(filepath.Join(w.Root, "scripts", "workshop"), args...)
	// Ctrl-C is for this process, whose end is that of the holder.
	w.holder.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	words := &output{}
	w.holder.Stderr = words
	if w.hold, err = w.holder.StdinPipe(); err != nil {
		return err
	}
	stdout, err := w.holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := w.holder.Start(); err != nil {
		w.holder = nil
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = w.hold.Close() })()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("start a local cluster: %w\n%s", err, words)
	}
	report := o.Report
	if report == nil {
		report = func(string, ...any) {}
	}
	w.state = strings.TrimSpace(line)
	w.cluster = cluster.New(filepath.Join(w.Root, "bin"), w.state, report)
	w.AuditLog = w.cluster.AuditLog()
	return w.makeClients()
}

func (w *World) makeClients() (err error) {
	if w.Config, err = clientcmd.BuildConfigFromFlags("", w.cluster.Kubeconfig()); err != nil {
		return err
	}
	w.Config.QPS = -1
	if w.Kube, err = kubernetes.NewForConfig(w.Config); err != nil {
		return err
	}
	w.Dynamic, err = dynamic.NewForConfig(w.Config)
	return err
}

// Stop kills the processes, closes the proxy, ends the cluster and removes all files.
func (w *World) Stop() error {
	var err error
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	for _, p := range processes {
		p.Kill()
	}
	if w.Proxy != nil {
		err = errors.Join(err, w.Proxy.Close())
	}
	if w.holder != nil {
		_ = w.hold.Close() // closed already when the start was given up
		err = errors.Join(err, w.holder.Wait())
	}
	return err
}

// A User is known to the API server by its name, and has two ways to it.
type User struct {
	Name string
	// Config goes straight to the API server, and so does Direct, a kubeconfig.
	Config *rest.Config
	Direct string
	// Kubeconfig goes through the proxy, Proxied is the same for a client in this process.
	Kubeconfig string
	Proxied    *rest.Config
}

// AddUser makes a user of the given groups, who may do nothing until a role is bound to the name or to a
// group. The ledger and the audit log call it by the same name.
func (w *World) AddUser(ctx context.Context, name string, groups ...string) (*User, error) {
	direct, err := w.cluster.AddUser(ctx, name, groups...)
	if err != nil {
		return nil, err
	}
	u := &User{Name: name, Direct: direct}
	if u.Config, err = clientcmd.BuildConfigFromFlags("", direct); err != nil {
		return nil, err
	}
	if u.Kubeconfig, err = w.Proxy.AddClient(name, u.Config); err != nil {
		return nil, err
	}
	if u.Proxied, err = clientcmd.BuildConfigFromFlags("", u.Kubeconfig); err != nil {
		return nil, err
	}
	u.Config.QPS, u.Proxied.QPS = -1, -1
	return u, nil
}

// Signal sends a signal to a component of the control plane. SIGKILL is a crash; SIGSTOP makes it hang
// until SIGCONT. A component that is gone comes back with Repair.
func (w *World) Signal(component string, s syscall.Signal) error {
	pid, err := w.PID(component)
	if err != nil {
		return fmt.Errorf("signal %s: %w", component, err)
	}
	return syscall.Kill(pid, s)
}

// PID is the process number of a component of the control plane: the last one, when it is gone.
func (w *World) PID(component string) (pid int, err error) {
	file := filepath.Join(w.state, "cluster", component+".pid")
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscan(string(data), &pid); err != nil {
		return 0, fmt.Errorf("%s holds no process number: %w", file, err)
	}
	return pid, nil
}

// Repair starts the components that do not run, and returns when all are healthy.
func (w *World) Repair(ctx context.Context) error { return w.cluster.Up(ctx) }

// ReplaceCRD makes an installed CRD what a file says, and returns when the API server acts by it.
func (w *World) ReplaceCRD(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, crd); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	path := "/openapi/v3/apis/" + group + "/v1"
	published := func() (string, error) {
		data, err := w.Kube.Discovery().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return string(data), err
	}
	before, err := published()
	if err != nil {
		return err
	}
	crds := w.Dynamic.Resource(crds)
	was, err := crds.Get(ctx, crd.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	crd.SetResourceVersion(was.GetResourceVersion())
	now, err := crds.Update(ctx, crd, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("install %s: %w", file, err)
	}
	for was.GetGeneration() != now.GetGeneration() {
		if after, err := published(); err != nil || after != before {
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return fmt.Errorf("wait until the API server acts by %s: %w", file, err)
		}
	}
	return nil
}
