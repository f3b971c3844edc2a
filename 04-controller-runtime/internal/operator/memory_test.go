package operator

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// The cache keeps at most 12 KiB for a MyWeb that is served, with its three children.
func TestAMyWebInTheCache(t *testing.T) {
	const few, many = 100, 500
	w := gomega.NewWithT(t)
	env, err := testenv.NewEnvironment(filepath.Join(chapter, "config", "crd"))
	w.Expect(err).NotTo(gomega.HaveOccurred())
	env.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16") // 254 addresses by default
	cfg, err := env.Start()
	w.Expect(err).NotTo(gomega.HaveOccurred())
	defer func() { w.Expect(env.Stop()).To(gomega.Succeed()) }()
	cfg.QPS = -1
	user, err := client.New(cfg, client.Options{})
	w.Expect(err).NotTo(gomega.HaveOccurred())
	options := CacheOptions(nil)
	options.Scheme = scheme.Scheme
	c, err := cache.New(cfg, options)
	w.Expect(err).NotTo(gomega.HaveOccurred())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	w.Expect(startInformers(ctx, c)).To(gomega.Succeed())
	go func() { ended <- c.Start(ctx) }()
	defer func() { stop(); w.Expect(<-ended).To(gomega.Succeed()) }()

	grow := func(from, to int) (heap uint64) {
		var all errgroup.Group
		all.SetLimit(8)
		for i := from; i < to; i++ {
			all.Go(func() error { return serve(ctx, user, metav1.NamespaceDefault, fmt.Sprintf("web-%d", i)) })
		}
		w.Expect(all.Wait()).To(gomega.Succeed())
		w.Eventually(func() (ready int) {
			var deployments appsv1.DeploymentList
			w.Expect(c.List(ctx, &deployments, client.UnsafeDisableDeepCopy)).To(gomega.Succeed())
			for _, d := range deployments.Items {
				ready += int(d.Status.ReadyReplicas)
			}
			return ready
		}).WithTimeout(time.Minute).Should(gomega.Equal(to))
		runtime.GC()
		runtime.GC() // frees what the first collection finalized
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := grow(0, few)
	each := float64(grow(few, many)-before) / (many - few) / 1024
	t.Logf("%.1f KiB for each MyWeb", each)
	if each > 12 {
		t.Errorf("the cache needs %.1f KiB for each MyWeb", each)
	}
}

// serve makes a MyWeb, its children, and the status that it and its Deployment have in the end.
func serve(ctx context.Context, c client.Client, namespace, name string) error {
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx", PageContentHTML: new("hello")}}
	if err := c.Create(ctx, web); err != nil {
		return err
	}
	children := myweb.DesiredChildren(web)
	if err := myweb.Kind.Apply(ctx, owned.ServerSideApply{Client: c, FieldOwner: myweb.FieldOwner}, children...); err != nil {
		return err
	}
	deployment, service := myweb.LiveOf(children)
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1,
		AvailableReplicas: 1, Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable",
				Message: "Deployment has minimum availability."},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable",
				Message: `ReplicaSet "` + name + `-7fc6966c8c" has successfully progressed.`},
		}}
	if err := c.Status().Update(ctx, deployment); err != nil {
		return err
	}
	web.Status = myweb.StatusFor(web, deployment, service, nil, time.Now())
	return c.Status().Update(ctx, web)
}
