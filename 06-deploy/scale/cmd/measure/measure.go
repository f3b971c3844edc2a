package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shardingv1alpha1 "github.com/timebertt/kubernetes-controller-sharding/pkg/apis/sharding/v1alpha1"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/ring"
	"example.com/operator-workshop/06-deploy/scale/internal/testenv"
)

const namespaces = 1000

// A result is what one way needs for a number of MyWebs.
type result struct {
	Way      string    `json:"way"`
	MyWebs   int       `json:"mywebs"`
	Replicas []replica `json:"replicas"`
	// Writes is the number of writes for the children and the status of a MyWeb, when it was created.
	Writes float64 `json:"writesPerMyWeb"`
	// Created is the processor time of the API server for one more MyWeb and its children.
	Created time.Duration `json:"created"`
	// Lists were answered until all caches had synced, and Watches were open then: for three replicas and four kinds.
	Lists   float64 `json:"lists"`
	Watches float64 `json:"watches"`
	// Edit is the median of the times until an edited page is in its ConfigMap.
	Edit time.Duration `json:"edit"`
	// Stored is the size of etcd's database, and the others are resident sets, in bytes.
	Stored    float64 `json:"stored"`
	APIServer int64   `json:"apiserver"`
	Etcd      int64   `json:"etcd"`
	Sharder   int64   `json:"sharder,omitempty"`
}

// A replica is what one of the replicas needed until its cache had synced.
type replica struct {
	Received int64         `json:"received"`
	Objects  int           `json:"objects"`
	Memory   int64         `json:"memory"`
	CPU      time.Duration `json:"cpu"`
	Sync     float64       `json:"syncSeconds"`
}

type measurement struct {
	ctx              context.Context
	env              *testenv.Environment
	cfg, raw         *rest.Config
	kube             client.WithWatch
	dir              string
	program, sharder string
	have             int
	perMyWeb         float64
	created          time.Duration
	apiserver, etcd  int
}

func start(ctx context.Context) (m *measurement, err error) {
	m = &measurement{ctx: ctx}
	if m.dir, err = os.MkdirTemp("", "measure-"); err != nil {
		return nil, err
	}
	m.program = filepath.Join(m.dir, "myweb-shard")
	if out, err := exec.Command("go", "build", "-o", m.program, "./cmd/myweb-shard").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the operator: %w\n%s", err, out)
	}
	if m.sharder, err = ring.Build(ctx, m.dir); err != nil {
		return nil, err
	}
	if m.env, err = testenv.NewEnvironment("config/crd", ring.CRD); err != nil {
		return nil, err
	}
	// A NodePort Service needs a port and an address: the default ranges end at 2768, and at 254 in envtest.
	m.env.ControlPlane.GetAPIServer().Configure().Set("feature-gates", "ShardedListAndWatch=true").
		Set("service-node-port-range", "1024-65535").Set("service-cluster-ip-range", "10.0.0.0/12")
	m.env.ControlPlane.Etcd.Configure().Set("quota-backend-bytes", "8589934592").Set("unsafe-no-fsync", "true")
	if m.cfg, err = m.env.Start(); err != nil {
		return nil, err
	}
	m.cfg.QPS = -1
	m.raw = rest.CopyConfig(m.cfg)
	m.raw.GroupVersion, m.raw.NegotiatedSerializer = &corev1.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	m.apiserver, m.etcd = child("kube-apiserver", os.Getpid()), child("etcd", os.Getpid())
	s := scheme.Scheme
	if err := webv1.AddToScheme(s); err != nil {
		return nil, err
	}
	m.kube, err = client.NewWithWatch(m.cfg, client.Options{Scheme: s})
	for n := 0; err == nil && n < namespaces; n++ {
		err = m.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace(n)}})
	}
	return m, err
}

func (m *measurement) stop() {
	_ = m.env.Stop()
	_ = os.RemoveAll(m.dir)
}

func namespace(n int) string { return fmt.Sprintf("team-%d", n%namespaces) }

func key(n int) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace(n), Name: fmt.Sprintf("web-%d", n)}
}

// measure grows to n MyWebs, and runs each way over them.
func (m *measurement) measure(n int, ways []way) (all []result, err error) {
	if err := m.grow(n); err != nil {
		return nil, err
	}
	for _, way := range ways {
		fmt.Fprintf(os.Stderr, "%s %d MyWebs are there; next: %s\n", time.Now().Format(time.TimeOnly), n, way.name)
		r, err := m.over(way.name, way.flags)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// grow lets shards make the children of more MyWebs, and marks the Deployments as ready, as kubelets would.
func (m *measurement) grow(n int) error {
	running, err := m.startReplicas(ways[1].flags)
	if err != nil {
		return err
	}
	defer stopAll(running)
	before, err := m.counted(answered, "POST", "PUT", "PATCH", "APPLY")
	used, failed := m.value("process_cpu_seconds_total")
	if err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	began := m.have
	if err := m.each(began, n, func(i int) error {
		k := key(i)
		return m.kube.Create(m.ctx, &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
			Spec: webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("hello")}})
	}); err != nil {
		return err
	}
	if err := m.each(began, n, m.becomesReady); err != nil {
		return err
	}
	if err := m.each(began, n, m.isComplete); err != nil {
		return err
	}
	after, err := m.counted(answered, "POST", "PUT", "PATCH", "APPLY")
	m.perMyWeb = (after-before)/float64(n-began) - 2 // the two are this program's own
	cpu, failed := m.value("process_cpu_seconds_total")
	m.created = time.Duration((cpu - used) / float64(n-began) * float64(time.Second))
	m.have = n
	return errors.Join(err, failed)
}

// each calls a function for many MyWebs, a few at once.
func (m *measurement) each(from, to int, do func(i int) error) error {
	var g errgroup.Group
	g.SetLimit(8)
	for i := from; i < to; i++ {
		g.Go(func() error { return do(i) })
	}
	return g.Wait()
}

func (m *measurement) becomesReady(i int) error {
	d := &appsv1.Deployment{}
	if err := m.eventually(func() error { return m.kube.Get(m.ctx, key(i), d) }); err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"status":{"observedGeneration":%d,"replicas":1,"updatedReplicas":1,"readyReplicas":1,`+
		`"availableReplicas":1}}`, d.Generation)
	return m.kube.Status().Patch(m.ctx, d, client.RawPatch(types.MergePatchType, []byte(patch)))
}

func (m *measurement) isComplete(i int) error {
	return m.eventually(func() error {
		web := &webv1.MyWeb{}
		if err := m.kube.Get(m.ctx, key(i), web); err != nil {
			return err
		}
		if !web.Status.Completed {
			return fmt.Errorf("MyWeb %v is not completed", key(i))
		}
		return nil
	})
}

// eventually calls a function until it succeeds, at most for half an hour.
func (m *measurement) eventually(do func() error) (err error) {
	for end := time.Now().Add(30 * time.Minute); time.Now().Before(end) && m.ctx.Err() == nil; {
		if err = do(); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// A process is a running replica.
type process struct {
	*exec.Cmd
	wire   *wire
	synced replica
	err    error
	done   chan struct{} // closed when its cache has synced, or when it has ended
}

// startReplicas starts three replicas, and returns when their caches have synced.
func (m *measurement) startReplicas(flags func(i int) []string) (all []*process, err error) {
	for i := range replicas {
		p, err := m.startReplica(fmt.Sprintf("replica-%d", i), flags(i))
		if err != nil {
			stopAll(all)
			return nil, err
		}
		all = append(all, p)
	}
	for _, p := range all {
		if <-p.done; p.err != nil {
			stopAll(all)
			return nil, p.err
		}
	}
	return all, nil
}

func (m *measurement) startReplica(name string, flags []string) (*process, error) {
	p := &process{done: make(chan struct{})}
	var err error
	if p.wire, err = newWire(m.env.ControlPlane.GetAPIServer().SecureServing.ListenAddr.HostPort()); err != nil {
		return nil, err
	}
	kubeconfig, err := m.kubeconfig(name, "https://"+p.wire.Addr().String())
	if err != nil {
		return nil, err
	}
	p.Cmd = exec.Command(m.program, append([]string{"--kubeconfig=" + kubeconfig, "--health-probe-bind-address=0",
		"--leader-elect", "--leader-election-namespace=default", "--replica=" + name}, flags...)...)
	output, err := p.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	go p.read(output)
	return p, nil
}

// read waits for the line about the cache.
func (p *process) read(output io.Reader) {
	found := false
	last := ""
	for lines := bufio.NewScanner(output); lines.Scan(); last = lines.Text() {
		var line struct {
			Msg     string
			Objects int
			Seconds float64
		}
		if !found && json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "The cache has synced" {
			p.synced = replica{Received: p.wire.received.Load(), Objects: line.Objects, Sync: line.Seconds}
			found = true
			close(p.done)
		}
	}
	if !found {
		p.err = fmt.Errorf("a replica ended: %s", last)
		close(p.done)
	}
}

func (m *measurement) kubeconfig(name, server string) (string, error) {
	path := filepath.Join(m.dir, name+".kubeconfig")
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: server, CertificateAuthorityData: m.cfg.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"u": {ClientCertificateData: m.cfg.CertData,
			ClientKeyData: m.cfg.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u", Namespace: "default"}},
		CurrentContext: "x"}, path)
}

// over runs a way over the MyWebs that are there.
func (m *measurement) over(name string, flags func(i int) []string) (r result, err error) {
	r = result{Way: name, MyWebs: m.have, Writes: m.perMyWeb, Created: m.created}
	if name == "ring" {
		end, err := m.assign(&r, flags)
		if err != nil {
			return r, err
		}
		defer end()
	}
	lists, err := m.counted(answered, "LIST")
	watches, failed := m.counted(open, "WATCH")
	if err != nil || failed != nil {
		return r, errors.Join(err, failed)
	}
	running, err := m.startReplicas(flags)
	if err != nil {
		return r, err
	}
	defer func() { stopAll(running) }()
	if r.Lists, err = m.counted(answered, "LIST"); err != nil {
		return r, err
	}
	if r.Watches, err = m.counted(open, "WATCH"); err != nil {
		return r, err
	}
	r.Lists, r.Watches = r.Lists-lists, r.Watches-watches
	for _, p := range running {
		p.synced.Memory = memory(p.Process.Pid)
	}
	if r.Edit, err = m.edits(20); err != nil {
		return r, err
	}
	if r.Stored, err = m.value("apiserver_storage_size_bytes"); err != nil {
		return r, err
	}
	r.APIServer, r.Etcd = memory(m.apiserver), memory(m.etcd)
	stopAll(running)
	for _, p := range running {
		p.synced.CPU = p.ProcessState.UserTime() + p.ProcessState.SystemTime()
		r.Replicas = append(r.Replicas, p.synced)
	}
	running = nil
	return r, nil
}

// assign starts the sharder, and lets it label all objects, while the replicas run. They are started again afterwards.
func (m *measurement) assign(r *result, flags func(i int) []string) (end func(), err error) {
	w, err := newWire(m.env.ControlPlane.GetAPIServer().SecureServing.ListenAddr.HostPort())
	if err != nil {
		return nil, err
	}
	kubeconfig, err := m.kubeconfig("sharder", "https://"+w.Addr().String())
	if err != nil {
		return nil, err
	}
	sharder, err := ring.Start(m.ctx, m.kube, m.sharder, kubeconfig, m.dir)
	if err != nil {
		return nil, err
	}
	end = func() { _ = sharder.Process.Kill(); _ = sharder.Wait() }
	running, err := m.startReplicas(flags)
	if err != nil {
		end()
		return nil, err
	}
	if err = m.labelled(); err == nil {
		_, err = m.edits(1)
	}
	stopAll(running)
	r.Sharder = memory(sharder.Process.Pid)
	if err != nil {
		end()
	}
	return end, err
}

// labelled waits until the sharder has labelled all MyWebs and their children, which it does one after the other, and prints
// its progress.
func (m *measurement) labelled() error {
	for _, kind := range []schema.GroupVersionKind{webv1.SchemeGroupVersion.WithKind("MyWebList"),
		corev1.SchemeGroupVersion.WithKind("ConfigMapList"), appsv1.SchemeGroupVersion.WithKind("DeploymentList"),
		corev1.SchemeGroupVersion.WithKind("ServiceList")} {
		last := 0
		if err := wait.PollUntilContextCancel(m.ctx, 5*time.Second, true, func(ctx context.Context) (bool, error) {
			have := &metav1.PartialObjectMetadataList{}
			have.SetGroupVersionKind(kind)
			if err := m.kube.List(ctx, have, client.HasLabels{shardingv1alpha1.LabelShard(ring.Name)}); err != nil {
				return false, err
			}
			if n := len(have.Items); n > last {
				last = n
				fmt.Fprintf(os.Stderr, "%s the sharder has labelled %d of %d: %s\n", time.Now().Format(time.TimeOnly),
					n, m.have, kind.Kind)
			}
			return last == m.have, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// edits changes the pages of some MyWebs, and returns the median of the times until they are served.
func (m *measurement) edits(n int) (time.Duration, error) {
	var took []time.Duration
	for e := range n {
		k := key(e * (m.have / n))
		page := fmt.Sprintf("page %d", time.Now().UnixNano())
		web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}}
		began := time.Now()
		patch := fmt.Sprintf(`{"spec":{"pageContentHtml":%q}}`, page)
		if err := m.kube.Patch(m.ctx, web, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return 0, err
		}
		for end := began.Add(2 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
			served := &corev1.ConfigMap{}
			if err := m.kube.Get(m.ctx, k, served); err != nil {
				return 0, err
			}
			if slices.Contains([]string{served.Data["index.html"], served.Data["pageContentHtml"]}, page) {
				break
			}
			if time.Now().After(end) {
				return 0, fmt.Errorf("the edit of MyWeb %v is not served: %v", k, served.Data)
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func stopAll(all []*process) {
	for _, p := range all {
		_ = p.Process.Signal(syscall.SIGTERM)
	}
	for _, p := range all {
		_ = p.Wait()
		_ = p.wire.Close()
	}
}
