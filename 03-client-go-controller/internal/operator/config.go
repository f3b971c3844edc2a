package operator

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
	"example.com/operator-workshop/03-client-go-controller/pkg/generated/clientset/versioned"
)

// userAgent names the program in the API server's logs.
const userAgent = "myweb-controller"

// Config returns the client configuration for the API server that the flags or the environment name.
func Config(o Options) (*rest.Config, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil || o.Kubeconfig != "" || os.Getenv("KUBECONFIG") != "" {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		rules.ExplicitPath = o.Kubeconfig
		cfg, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w: set KUBECONFIG or --kubeconfig", err)
	}
	cfg.UserAgent = userAgent
	// client-go's default, 5 requests a second for each API group, is invisible and rarely intended. The API server
	// has priority and fairness.
	cfg.QPS = -1
	return cfg, nil
}

// CRDInstalled returns an error, with a fix, when the API server cannot be reached or does not serve MyWebs.
func CRDInstalled(ctx context.Context, web versioned.Interface, host string) error {
	_, err := web.Discovery().ServerResourcesForGroupVersionWithContext(ctx, webv1.SchemeGroupVersion.String())
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster at %s does not serve MyWebs: install the CRD first (kubectl apply -f config/crd)", host)
	}
	if err != nil {
		return fmt.Errorf("ask the API server %s for MyWebs: %w", host, err)
	}
	return nil
}
