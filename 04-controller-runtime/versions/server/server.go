// Package server answers the API server when it must convert MyWebs. It has no controller: operators that know one
// version only run beside it, unchanged.
package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook/keep"
	"example.com/operator-workshop/04-controller-runtime/internal/webhookserver"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
	"example.com/operator-workshop/04-controller-runtime/versions/convert"
)

// CRD is the name of the CRD.
const CRD = "mywebs.operator.k8s-summit.org"

var logger = ctrl.Log.WithName("conversion")

// AddToScheme makes a scheme know both versions.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(webv1.AddToScheme(scheme), webv2.AddToScheme(scheme))
}

// Register makes a manager convert. A manager with controllers may do so, too.
func Register(mgr ctrl.Manager) error {
	v1 := conversion.NewSpokeConverter(&webv1.MyWeb{}, convert.FromV2, convert.ToV2)
	return ctrl.NewWebhookManagedBy(mgr, &webv2.MyWeb{}).
		WithConverter(conversion.NewHubSpokeConverter(&webv2.MyWeb{}, v1)).
		Complete()
}

// Options say where the server listens, and where the API server calls it.
type Options struct {
	Host string
	Port int
}

// Bind adds the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.StringVar(&o.Host, "webhook-host", "127.0.0.1", "address to serve on, and the one that the API server calls")
	flags.IntVar(&o.Port, "webhook-port", webhook.DefaultPort, "port to serve on")
}

// Run serves until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	server, err := webhookserver.New(webhook.Options{Host: o.Host, Port: o.Port})
	if err != nil {
		return fmt.Errorf("--webhook-port: %w: choose another one", err)
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Scheme: scheme, WebhookServer: server,
		Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return fmt.Errorf("make a manager for the API server %s: %w", cfg.Host, err)
	}
	if err := errors.Join(Register(mgr), callByURL(mgr, server, o)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// callByURL makes a certificate, and lets the CRD name this process and the certificate once it serves. The CRD keeps
// both when the process ends: the API server has to convert stored objects to the other version, and without a webhook
// in the CRD it would lose fields instead of failing.
func callByURL(mgr ctrl.Manager, server *webhookserver.Server, o Options) error {
	cert, key, err := certutil.GenerateSelfSignedCertKey(o.Host, nil, nil)
	if err != nil {
		return fmt.Errorf("make a certificate for %s: %w", o.Host, err)
	}
	if err := server.SetCertificate(cert, key); err != nil {
		return err
	}
	url := "https://" + net.JoinHostPort(o.Host, strconv.Itoa(o.Port)) + "/convert"
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: CRD}}
	err = keep.Object(mgr, crd, func(ctx context.Context, live client.Object) error {
		return repair(ctx, mgr.GetClient(), live.(*apiextensionsv1.CustomResourceDefinition), url, cert)
	})
	if err != nil {
		return err
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		serves := func(context.Context) (bool, error) { return server.Ready(request) == nil, nil }
		err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 10*time.Second, true, serves)
		if err != nil {
			return fmt.Errorf("wait for the webhook server: %w", err)
		}
		if err := setClientConfig(ctx, mgr.GetClient(), url, cert); err != nil {
			return err
		}
		logger.Info("Converting MyWebs", "url", url)
		<-ctx.Done()
		return nil
	}))
}

// repair writes the URL and the authority into the CRD again, unless it names both of another process. A client may
// have replaced the CRD by one without authority, or without a webhook.
func repair(ctx context.Context, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, url string, ca []byte,
) error {
	now := apiextensionsv1.WebhookClientConfig{}
	if hook := crd.Spec.Conversion.Webhook; hook != nil && hook.ClientConfig != nil {
		now = *hook.ClientConfig
	}
	isURL, isAuthority := ptr.Deref(now.URL, "") == url, bytes.Equal(now.CABundle, ca)
	if isURL && isAuthority || !isURL && !isAuthority && len(now.CABundle) > 0 {
		return nil
	}
	logger.Info("Another client changed the conversion in the CRD, writing it again")
	return setClientConfig(ctx, c, url, ca)
}

// setClientConfig writes the URL that the API server calls, and the authority that it trusts, into the CRD.
func setClientConfig(ctx context.Context, c client.Client, url string, ca []byte) error {
	clientConfig := apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": map[string]any{
		"strategy": apiextensionsv1.WebhookConverter,
		"webhook":  map[string]any{"clientConfig": clientConfig, "conversionReviewVersions": []string{"v1"}},
	}}})
	if err != nil {
		return err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = CRD
	if err := c.Patch(ctx, crd, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("install the conversion webhook in the CRD: %w", err)
	}
	return nil
}
