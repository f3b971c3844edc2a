// Package webhook gives the webhooks of internal/webhook/v1 a server, and the server a certificate.
package webhook

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/example/databasebackup-operator/internal/program"
)

// Options say where webhooks are served, and with which certificate.
type Options struct {
	// Port is the port to listen on.
	Port int
	// CertPath, CertName and CertKey are the folder and the files of a certificate that somebody else keeps
	// fresh, such as cert-manager; who does that also writes the caBundle of the webhook configurations. An
	// empty path means that the operator sees to both.
	CertPath, CertName, CertKey string
}

// Bind adds the flags, by the names that the scaffold gives them.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.IntVar(&o.Port, "webhook-port", webhook.DefaultPort, "port to serve webhooks on")
	flags.StringVar(&o.CertPath, "webhook-cert-path", "", "folder with a certificate for webhooks (default: made, installed and rotated by the operator, in a cluster)")
	flags.StringVar(&o.CertName, "webhook-cert-name", "tls.crt", "file of the certificate in --webhook-cert-path")
	flags.StringVar(&o.CertKey, "webhook-cert-key", "tls.key", "file of the key in --webhook-cert-path")
}

// Webhooks serve the webhooks of one operator process.
type Webhooks struct {
	options     Options
	server      webhook.Server // nil when webhooks are off
	certificate certificate
}

// New returns the webhooks. ENABLE_WEBHOOKS is whether they are served; when it is not set they are in a
// cluster, and wherever a certificate is given.
func New(o Options) (*Webhooks, error) {
	cluster, w := inCluster(), &Webhooks{options: o}
	enabled, err := program.EnvBool("ENABLE_WEBHOOKS", cluster || o.CertPath != "")
	if err != nil || !enabled {
		return w, err
	}
	if o.CertPath == "" && !cluster {
		return nil, errors.New("ENABLE_WEBHOOKS is true: outside a cluster webhooks need --webhook-cert-path, " +
			"and webhook configurations that send requests here")
	}
	host := ""
	if !cluster {
		host = "127.0.0.1"
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(o.Port))) // else the manager tells late
	if err != nil {
		return nil, fmt.Errorf("--webhook-port: %w: choose another one", err)
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	serve := webhook.Options{Host: host, Port: o.Port, CertDir: o.CertPath, CertName: o.CertName, KeyName: o.CertKey,
		TLSOpts: []func(*tls.Config){program.WithoutHTTP2}}
	if o.CertPath == "" {
		serve.TLSOpts = append(serve.TLSOpts, func(c *tls.Config) { c.GetCertificate = w.certificate.get })
	}
	w.server = webhook.NewServer(serve)
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

// Server is what the manager shall serve, nil when webhooks are off.
func (w *Webhooks) Server() webhook.Server { return w.server }

// SetupWithManager adds to a manager that was made with Server what keeps the certificate valid. Which
// webhooks the server has is not said here.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	if !w.Enabled() {
		return nil
	}
	if err := mgr.AddReadyzCheck("webhooks", w.ready); err != nil {
		return err
	}
	if w.options.CertPath != "" {
		return nil
	}
	return w.rotateInCluster(mgr)
}

// ready is a healthz.Checker: a connection can be made, so a Service may send requests here.
func (w *Webhooks) ready(r *http.Request) error {
	if w.options.CertPath == "" && w.certificate.current.Load() == nil {
		return errNoCertificate // the server would say so too, and log each question
	}
	return w.server.StartedChecker()(r)
}
