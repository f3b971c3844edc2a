// The exercises begin with this program: it connects to its cluster, and does nothing there.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/tools/clientcmd"

	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

func main() {
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	c, err := NewController(versioned.NewForConfigOrDie(cfg))
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.Run(ctx)
}

// Controller reads MyWebs. It needs an informer.
type Controller struct {
	web versioned.Interface
}

// NewController returns a controller that is not started yet.
func NewController(web versioned.Interface) (*Controller, error) {
	return &Controller{web: web}, nil
}

// Run works until ctx ends. The informer and its handlers are yours to write.
func (c *Controller) Run(context.Context) {
	log.Fatal("there is no informer yet")
}
