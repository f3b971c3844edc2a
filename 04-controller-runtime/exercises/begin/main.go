// Where the exercises begin: a program that finds its cluster, and does nothing there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func main() {
	flag.Parse() // --kubeconfig is controller-runtime's own
	ctrl.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "myweb-operator:", err)
		os.Exit(1)
	}
}

// run finds the cluster. The manager, the controller and its Reconcile are yours to write.
func run(context.Context) error {
	_, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	return errors.New("there is no manager yet")
}
