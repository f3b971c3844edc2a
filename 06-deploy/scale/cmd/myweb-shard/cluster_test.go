package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/testenv"
	"example.com/operator-workshop/06-deploy/scale/test/programtest"
)

// These tests run replicas of the operator as processes, each with its own user and the permissions of config/rbac, on a
// real API server. Its audit log has each write of each replica.

const gate = "ShardedListAndWatch=true"

var (
	program string
	crds    = filepath.Join("..", "..", "config", "crd")
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(webv1.AddToScheme(scheme.Scheme))
	testenv.OnInterrupt(gexec.CleanupBuildArtifacts)
	var err error
	if program, err = gexec.Build("example.com/operator-workshop/06-deploy/scale/cmd/myweb-shard"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	gexec.CleanupBuildArtifacts()
	os.Exit(code)
}

// A cluster is the administrator's client of an API server.
type cluster struct {
	*gomega.WithT
	client.Client
	t     *testing.T
	cfg   *rest.Config
	audit string
	webs  []types.NamespacedName

	processes map[string]*programtest.Process // by user
}

func newCluster(t *testing.T, gates string, more ...string) *cluster {
	t.Helper()
	env, err := testenv.NewEnvironment(append(more, crds)...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &cluster{t: t, WithT: gomega.NewWithT(t), audit: filepath.Join(dir, "audit.log"),
		processes: map[string]*programtest.Process{}}
	c.SetDefaultEventuallyTimeout(3 * time.Minute)
	c.SetDefaultEventuallyPollingInterval(100 * time.Millisecond)
	policy := filepath.Join(dir, "policy.yaml")
	c.Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(gomega.Succeed())
	args := env.ControlPlane.GetAPIServer().Configure()
	args.Set("audit-log-path", c.audit).Set("audit-policy-file", policy)
	if gates != "" {
		args.Set("feature-gates", gates)
	}
	t.Cleanup(func() { _ = env.Stop() })
	c.cfg, err = env.Start()
	c.Expect(err).NotTo(gomega.HaveOccurred())
	c.cfg.QPS = -1
	c.Client, err = client.New(c.cfg, client.Options{})
	c.Expect(err).NotTo(gomega.HaveOccurred())
	var subjects []rbacv1.Subject
	for n := range 10 {
		subjects = append(subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: fmt.Sprintf("replica-%d", n)})
	}
	for _, path := range []string{"config/rbac/role.yaml", "config/rbac/drain_role.yaml"} {
		role := manifest[rbacv1.ClusterRole](t, path)
		c.create(role)
		c.create(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}})
	}
	role := manifest[rbacv1.Role](t, "config/rbac/lease_role.yaml")
	role.Namespace = "default"
	c.create(role)
	c.create(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: role.Name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}})
	return c
}

// start starts a replica as one of the users replica-0 to replica-9.
func (c *cluster) start(user string, flags ...string) {
	c.t.Helper()
	cfg := rest.CopyConfig(c.cfg)
	cfg.Impersonate.UserName = user
	flags = append([]string{"--kubeconfig=" + testenv.WriteKubeconfig(c.t, cfg, ""), "--health-probe-bind-address=0",
		"--leader-elect", "--leader-election-namespace=default", "--replica=" + user}, flags...)
	c.processes[user] = programtest.Start(c.t, program, flags...)
}

func (c *cluster) create(obj client.Object) {
	c.t.Helper()
	c.Expect(client.IgnoreAlreadyExists(c.Create(c.t.Context(), obj))).To(gomega.Succeed())
}

// fill makes namespaces with MyWebs.
func (c *cluster) fill(prefix string, namespaces, each int) {
	c.t.Helper()
	for n := range namespaces {
		namespace := fmt.Sprintf("%s%d", prefix, n+1)
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		for w := range each {
			web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("web-%d", w)},
				Spec: webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("first")}}
			c.create(web)
			c.webs = append(c.webs, client.ObjectKeyFromObject(web))
		}
	}
}

// load edits one MyWeb after another until the returned function is called, which returns the number of edits.
func (c *cluster) load() (stop func() int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	edits := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			c.edit(c.webs[rand.IntN(len(c.webs))], fmt.Sprintf("edit %d", n))
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond): // the rate of the load
			}
		}
		edits <- n
	}()
	return func() int { cancel(); return <-edits }
}

func (c *cluster) edit(web types.NamespacedName, page string) {
	patch := fmt.Sprintf(`{"spec":{"pageContentHtml":%q}}`, page)
	o := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name}}
	if err := c.Patch(c.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		c.t.Error(err)
	}
}

// eventuallyServed waits until each MyWeb has its children, with its page: no shard forgot it.
func (c *cluster) eventuallyServed() {
	c.t.Helper()
	c.Eventually(c.unserved).Should(gomega.BeEmpty(), "MyWebs without their children")
}

func (c *cluster) unserved() (missing []string) {
	var webs webv1.MyWebList
	var pages corev1.ConfigMapList
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	for _, list := range []client.ObjectList{&webs, &pages, &deployments, &services} {
		if err := c.List(c.t.Context(), list); err != nil {
			return []string{err.Error()}
		}
	}
	has := map[string]bool{}
	for _, o := range pages.Items {
		for _, page := range o.Data {
			has["page "+o.Namespace+"/"+o.Name+page] = true
		}
	}
	for _, o := range deployments.Items {
		has["deployment "+o.Namespace+"/"+o.Name] = true
	}
	for _, o := range services.Items {
		has["service "+o.Namespace+"/"+o.Name] = true
	}
	for _, web := range webs.Items {
		name := web.Namespace + "/" + web.Name
		if !has["page "+name+*web.Spec.PageContentHTML] || !has["deployment "+name] || !has["service "+name] {
			missing = append(missing, name)
		}
	}
	return missing
}

func manifest[T any](t *testing.T, path string) *T {
	t.Helper()
	return testenv.ReadManifest[T](t, "..", "..", path)
}
