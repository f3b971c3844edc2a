// Stage 8, lease and shutdown: of several replicas one works, and it finishes its work before the next one begins.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

func main() {
	leaderElect := flag.Bool("leader-elect", false, "work only while holding a lease")
	flag.Parse()
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	kube := kubernetes.NewForConfigOrDie(cfg)
	c, err := NewController(kube, versioned.NewForConfigOrDie(cfg))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *leaderElect {
		runWithLease(ctx, kube, func(ctx context.Context) { c.Run(ctx, 2) })
		return
	}
	c.Run(ctx, 2)
}

// runWithLease works while it holds the lease, until ctx ends. First the work ends, then the lease is released: the
// next leader neither waits nor works at the same time.
func runWithLease(ctx context.Context, kube kubernetes.Interface, work func(context.Context)) {
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	defer release()
	started, ended := make(chan context.Context, 1), make(chan struct{})
	go func() {
		defer close(ended)
		leaderelection.RunOrDie(electing, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "myweb-operator"},
				Client:     kube.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: string(uuid.NewUUID())},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: time.Second,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { started <- ctx },
				OnStoppedLeading: func() {},
			},
		})
	}()
	select {
	case leading := <-started: // it ends when the lease could not be renewed
		working, stop := context.WithCancel(ctx)
		defer stop()
		context.AfterFunc(leading, stop)
		work(working)
	case <-ctx.Done():
	}
	release()
	<-ended
}
