// Package webhook answers the API server while a MyWeb is being written: it fills in a page where there
// is none, refuses a node port that another MyWeb has, and warns of images that may change. All of that
// needs more than the one object or more than a schema can say; the rest is in the schema.
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
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// What the API server is told, in config/webhook/manifests.yaml, which controller-gen makes of the
// markers below:
//
//   - failurePolicy says what becomes of a request when nobody answers. Defaulting fails: a MyWeb that
//     was stored without its page would keep lacking it. Validating is ignored: what slips through is
//     found by the operator (NodePortUnavailable), and a broken operator must not keep people from
//     editing MyWebs.
//   - timeoutSeconds bounds what one writer waits. The answer comes from memory; the default of 10 s
//     would only make an outage feel longer.
//   - sideEffects=None: an answer changes nothing but itself, so dry runs ask too.
//   - matchPolicy=Equivalent: a request in another version of the API is converted and asked about too.
//   - reinvocationPolicy=Never: no other webhook can make our answer wrong, for it depends on the name.
//   - matchConditions are looked at inside the API server, before any call. Only requests that matter
//     come here: a page that was missing from the start is not filled in by an unrelated edit (the pods
//     would roll), an edit of other fields is not judged for port or image, an object that is being
//     deleted is left alone.
//
// Status, scale, leases and children are other resources; no rule names them. The operator's own writes
// thus never wait for its own webhooks.
//
// +kubebuilder:webhookconfiguration:mutating=true,name=myweb-operator
// +kubebuilder:webhookconfiguration:mutating=false,name=myweb-operator
// +kubebuilder:webhook:mutating=true,name=default.mywebs.operator.k8s-summit.org,path=/mutate-operator-k8s-summit-org-v1-myweb,groups=operator.k8s-summit.org,versions=v1,resources=mywebs,verbs=create;update,failurePolicy=fail,timeoutSeconds=5,sideEffects=None,matchPolicy=Equivalent,reinvocationPolicy=Never,admissionReviewVersions=v1,serviceName=myweb-operator-webhook,serviceNamespace=myweb-operator,patch=`{"matchConditions":[{"name":"without-page","expression":"!has(object.spec.pageContentHtml)"},{"name":"new-or-page-removed","expression":"oldObject == null || has(oldObject.spec.pageContentHtml)"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:mutating=false,name=validate.mywebs.operator.k8s-summit.org,path=/validate-operator-k8s-summit-org-v1-myweb,groups=operator.k8s-summit.org,versions=v1,resources=mywebs,verbs=create;update,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,serviceName=myweb-operator-webhook,serviceNamespace=myweb-operator,patch=`{"matchConditions":[{"name":"port-or-image-changed","expression":"oldObject == null || object.spec.image != oldObject.spec.image || object.spec.?nodePortNumber != oldObject.spec.?nodePortNumber"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// Options say whether and where the webhooks are served.
type Options struct {
	// Enabled is whether they are served at all; nil means in a cluster yes, elsewhere no.
	Enabled *bool
	// Host is the address to listen on, and outside a cluster the one that the API server calls. Empty
	// means every address in a cluster, 127.0.0.1 elsewhere.
	Host string
	// Port is the port to listen on.
	Port int
	// CertDir is a folder with tls.crt and tls.key that somebody else keeps fresh, such as cert-manager;
	// who does that also writes the webhook configurations. Empty means the operator sees to both.
	CertDir string
}

// Bind adds the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.BoolFunc("webhooks", "serve the admission webhooks (default: true in a cluster, false elsewhere)", func(s string) error {
		enabled, err := strconv.ParseBool(s)
		o.Enabled = &enabled
		return err
	})
	flags.StringVar(&o.Host, "webhook-host", "", "address to serve webhooks on (default: every one in a cluster, 127.0.0.1 elsewhere, where the API server must reach it)")
	flags.IntVar(&o.Port, "webhook-port", webhook.DefaultPort, "port to serve webhooks on")
	flags.StringVar(&o.CertDir, "webhook-cert-dir", "", "folder with tls.crt and tls.key, when something else makes and installs them (default: made, installed and rotated by the operator)")
}

// Webhooks are the webhooks of one operator process.
type Webhooks struct {
	options     Options
	cluster     bool // the operator runs in the cluster that it works on
	server      webhook.Server
	certificate certificate
}

// New returns the webhooks for an operator that works on the API server of cfg.
func New(cfg *rest.Config, o Options) (*Webhooks, error) {
	inside, err := rest.InClusterConfig()
	w := &Webhooks{options: o, cluster: err == nil && inside.Host == cfg.Host}
	if w.options.Enabled == nil {
		w.options.Enabled = &w.cluster
	}
	if !*w.options.Enabled {
		return w, nil
	}
	if o.Host == "" && !w.cluster {
		w.options.Host = "127.0.0.1"
	}
	if ip := net.ParseIP(o.Host); ip.IsUnspecified() && !w.cluster {
		return nil, fmt.Errorf("--webhook-host is %s: the API server cannot call that: give one address of this machine", o.Host)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(w.options.Host, strconv.Itoa(o.Port))) // else the manager tells late
	if err != nil {
		return nil, fmt.Errorf("--webhook-port: %w: choose another one", err)
	}
	if err := l.Close(); err != nil {
		return nil, err
	}
	serve := webhook.Options{Host: w.options.Host, Port: o.Port, CertDir: o.CertDir}
	if o.CertDir == "" {
		serve.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.GetCertificate = w.certificate.get }}
	}
	w.server = webhook.NewServer(serve)
	return w, nil
}

// Server is what the manager shall serve, nil when webhooks are off.
func (w *Webhooks) Server() webhook.Server { return w.server }

// SetupWithManager adds the webhooks to the manager that was made with Server, and whatever keeps their
// certificate valid. It does nothing when webhooks are off.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	if !*w.options.Enabled {
		return nil
	}
	if err := w.serveWith(mgr); err != nil {
		return fmt.Errorf("set up webhooks: %w", err)
	}
	switch {
	case w.options.CertDir != "":
		return nil
	case w.cluster:
		return w.rotateInCluster(mgr)
	default:
		return w.installByURL(mgr)
	}
}

// serveWith makes the manager answer the API server.
func (w *Webhooks) serveWith(mgr ctrl.Manager) error {
	return errors.Join(
		indexNodePorts(mgr),
		ctrl.NewWebhookManagedBy(mgr, &webv1.MyWeb{}).
			WithDefaulter(defaulter{}).
			WithValidator(validator{mgr.GetCache()}).
			Complete(),
		mgr.AddReadyzCheck("webhooks", w.ready),
	)
}

// ready is a healthz.Checker: a connection can be made, so a Service may send requests here.
func (w *Webhooks) ready(r *http.Request) error {
	if w.options.CertDir == "" && w.certificate.current.Load() == nil {
		return errNoCertificate // the server would say so too, and log each question
	}
	return w.server.StartedChecker()(r)
}
