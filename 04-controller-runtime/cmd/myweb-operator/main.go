// Command myweb-operator turns MyWebs into running websites.
package main

import (
	"flag"
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/operator-workshop/04-controller-runtime/internal/operator"
)

func main() {
	var o operator.Options
	o.Bind(flag.CommandLine)
	flag.Parse()
	if err := operator.Run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "myweb-operator:", err)
		os.Exit(1)
	}
}
