// Stage 7, conflicts: a sync never changes an object that the MyWeb does not own, and reports it by status and events.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := NewController(kubernetes.NewForConfigOrDie(cfg), versioned.NewForConfigOrDie(cfg))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Run(ctx, 2)
}
