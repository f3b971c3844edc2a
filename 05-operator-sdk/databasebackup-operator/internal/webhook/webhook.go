// Package webhook serves the operator's webhooks, with a certificate.
package webhook

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/databasebackup-operator/internal/program"
	"github.com/example/databasebackup-operator/internal/webhookserver"
)

// Options are the port and the certificate of the webhooks.
type Options struct {
	// Port is the port to listen on.
	Port int
	// CertPath is the folder of a certificate that another program renews, such as cert-manager. That program also
	// writes the caBundle of the webhook configurations. Without a path the operator does both.
	CertPath string
}

// Bind adds the flags, by the names that the scaffold gives them.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.IntVar(&o.Port, "webhook-port", webhook.DefaultPort, "port to serve webhooks on")
	flags.StringVar(&o.CertPath, "webhook-cert-path", "",
		"folder with tls.crt and tls.key for webhooks (default: made, installed and rotated by the operator, in a cluster)")
}

// Webhooks serve the webhooks of one operator process.
type Webhooks struct {
	options Options
	server  *webhookserver.Server // nil when webhooks are off
}

// New returns the webhooks. ENABLE_WEBHOOKS enables or disables them. When it is not set, they are enabled in a
// cluster, and when a certificate is given.
func New(o Options) (*Webhooks, error) {
	cluster, w := inCluster(), &Webhooks{options: o}
	enabled, err := cluster || o.CertPath != "", error(nil)
	if text := os.Getenv("ENABLE_WEBHOOKS"); text != "" {
		if enabled, err = strconv.ParseBool(text); err != nil {
			return nil, fmt.Errorf("ENABLE_WEBHOOKS is %q: it must be true or false", text)
		}
	}
	if !enabled {
		return w, nil
	}
	if o.CertPath == "" && !cluster {
		return nil, errors.New("ENABLE_WEBHOOKS is true: outside a cluster webhooks need --webhook-cert-path, " +
			"and webhook configurations that send requests here")
	}
	host := ""
	if !cluster {
		host = "127.0.0.1"
	}
	w.server, err = webhookserver.New(webhook.Options{Host: host, Port: o.Port, CertDir: o.CertPath,
		TLSOpts: []func(*tls.Config){program.WithoutHTTP2}})
	if err != nil {
		return nil, fmt.Errorf("--webhook-port: %w: choose another one", err)
	}
	return w, nil
}

// inCluster reports whether the operator runs in the cluster that it works on.
func inCluster() bool {
	inside, err := rest.InClusterConfig()
	if err != nil {
		return false
	}
	cfg, err := config.GetConfig()
	return err == nil && cfg.Host == inside.Host
}

// Enabled reports whether webhooks are served.
func (w *Webhooks) Enabled() bool { return w.server != nil }

// Server returns the server that the manager must run, nil when webhooks are off.
func (w *Webhooks) Server() webhook.Server {
	if w.server == nil {
		return nil
	}
	return w.server
}

// SetupWithManager adds the certificate rotator to a manager that was created with Server. The webhooks' own package
// adds the webhooks.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	if w.server == nil {
		return nil
	}
	if err := mgr.AddReadyzCheck("webhooks", w.server.Ready); err != nil || w.options.CertPath != "" {
		return err
	}
	namespace, err := webhookserver.Namespace()
	if err != nil {
		return fmt.Errorf("find the operator's namespace: %w", err)
	}
	return w.rotate(mgr, namespace)
}

// rotate keeps a certificate for the Service of the webhooks, in the namespace of the operator.
func (w *Webhooks) rotate(mgr ctrl.Manager, namespace string) error {
	if err := w.server.Rotate(mgr, clusterRotator(namespace)); err != nil {
		return fmt.Errorf("%w: install all of config (make deploy), or set ENABLE_WEBHOOKS to false", err)
	}
	return nil
}
