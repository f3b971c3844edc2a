// Package webhook answers the API server while a MyWeb is being written: it fills in a page where there
// is none, refuses a node port that another MyWeb has, and warns of images that may change. All of that
// needs more than the one object, or more than a schema can express; the rest is in the schema.
package webhook

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook/local"
	"example.com/operator-workshop/04-controller-runtime/internal/webhookserver"
)

// The webhook configurations: controller-gen makes config/webhook/manifests.yaml of the markers below.
//
//   - failurePolicy applies when the webhook does not answer. Defaulting fails the request: a MyWeb that was stored
//     without its page would stay without it. Validating is ignored: the operator later reports a port that is
//     taken (NodePortUnavailable), and a broken operator must not keep users from editing MyWebs.
//   - timeoutSeconds limits how long one client waits. The answer comes from memory; the default of 10 s would
//     only make an outage feel longer.
//   - sideEffects=None: the webhooks change nothing but the request, so dry runs call them, too.
//   - matchPolicy=Equivalent: a request in another version of the API is converted and sent too.
//   - reinvocationPolicy=Never: no other webhook can make our answer wrong, because it depends on the name.
//   - matchConditions are evaluated inside the API server, before any call. Only requests that matter cause one:
//     a page that was missing from the start is not filled in by an unrelated edit (the pods would roll), an edit
//     of other fields is not validated for port or image, an object that is being deleted is left alone. The
//     mutating webhook's conditions see an object before the schema is checked. With failurePolicy Fail, a
//     condition that fails on a missing field or a wrong type would refuse the object with its own message.
//
// Status, scale, leases and children are other resources; no rule names them. So the operator's own writes never
// wait for its own webhooks.
//
// +kubebuilder:webhookconfiguration:mutating=true,name=myweb-operator
// +kubebuilder:webhookconfiguration:mutating=false,name=myweb-operator
// +kubebuilder:webhook:mutating=true,name=default.mywebs.operator.k8s-summit.org,path=/mutate-operator-k8s-summit-org-v1-myweb,groups=operator.k8s-summit.org,versions=v1,resources=mywebs,verbs=create;update,failurePolicy=fail,timeoutSeconds=5,sideEffects=None,matchPolicy=Equivalent,reinvocationPolicy=Never,admissionReviewVersions=v1,serviceName=myweb-operator-webhook,serviceNamespace=myweb-operator,patch=`{"matchConditions":[{"name":"without-page","expression":"has(object.spec) && type(object.spec) == map && !has(object.spec.pageContentHtml)"},{"name":"new-or-page-removed","expression":"oldObject == null || !has(oldObject.spec) || type(oldObject.spec) != map || has(oldObject.spec.pageContentHtml)"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`
// +kubebuilder:webhook:mutating=false,name=validate.mywebs.operator.k8s-summit.org,path=/validate-operator-k8s-summit-org-v1-myweb,groups=operator.k8s-summit.org,versions=v1,resources=mywebs,verbs=create;update,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,matchPolicy=Equivalent,admissionReviewVersions=v1,serviceName=myweb-operator-webhook,serviceNamespace=myweb-operator,patch=`{"matchConditions":[{"name":"port-or-image-changed","expression":"oldObject == null || !has(oldObject.spec) || type(oldObject.spec) != map || object.spec.?image != oldObject.spec.?image || object.spec.?nodePortNumber != oldObject.spec.?nodePortNumber"},{"name":"not-being-deleted","expression":"!has(object.metadata.deletionTimestamp)"}]}`

// Options say whether and where the webhooks are served.
type Options struct {
	// Enabled says whether they are served at all; nil means yes in a cluster, no elsewhere.
	Enabled *bool
	// Host is the address to listen on. Outside a cluster the API server calls this address, too. Empty means every
	// address in a cluster, 127.0.0.1 elsewhere.
	Host string
	// Port is the port to listen on.
	Port int
	// CertDir is a folder with tls.crt and tls.key that something else renews, such as cert-manager, which then
	// also writes the webhook configurations. Empty means that the operator does both.
	CertDir string
}

// Bind adds the flags.
func (o *Options) Bind(flags *flag.FlagSet) {
	enable := func(s string) error {
		enabled, err := strconv.ParseBool(s)
		o.Enabled = &enabled
		return err
	}
	flags.BoolFunc("webhooks", "serve the admission webhooks (default: true in a cluster, false elsewhere)", enable)
	flags.StringVar(&o.Host, "webhook-host", "",
		"address to serve webhooks on (default: every one in a cluster; 127.0.0.1 elsewhere, as the API server calls it)")
	flags.IntVar(&o.Port, "webhook-port", webhook.DefaultPort, "port to serve webhooks on")
	flags.StringVar(&o.CertDir, "webhook-cert-dir", "",
		"folder with tls.crt and tls.key that something else renews and installs (default: the operator does both)")
}

// Webhooks are the webhooks of one operator process.
type Webhooks struct {
	options Options
	cluster bool                  // the operator runs in the cluster that it works on
	server  *webhookserver.Server // nil when webhooks are off
}

// New returns the webhooks for an operator that works on the API server of cfg.
func New(cfg *rest.Config, o Options) (*Webhooks, error) {
	inside, err := rest.InClusterConfig()
	w := &Webhooks{options: o, cluster: err == nil && inside.Host == cfg.Host}
	if enabled := cmp.Or(o.Enabled, &w.cluster); !*enabled {
		return w, nil
	}
	if o.Host == "" && !w.cluster {
		w.options.Host = "127.0.0.1"
	}
	if ip := net.ParseIP(o.Host); ip.IsUnspecified() && !w.cluster {
		return nil, fmt.Errorf("--webhook-host is %s: the API server cannot call that: give one address of this machine",
			o.Host)
	}
	w.server, err = webhookserver.New(webhook.Options{Host: w.options.Host, Port: o.Port, CertDir: o.CertDir})
	if err != nil {
		return nil, fmt.Errorf("--webhook-port: %w: choose another one", err)
	}
	return w, nil
}

// Server returns the server that the manager must run, nil when webhooks are off.
func (w *Webhooks) Server() webhook.Server {
	if w.server == nil {
		return nil
	}
	return w.server
}

// SetupWithManager adds the webhooks, and the renewal of their certificate, to the manager that was made with Server.
// It does nothing when webhooks are off.
func (w *Webhooks) SetupWithManager(mgr ctrl.Manager) error {
	if w.server == nil {
		return nil
	}
	if err := w.serveWith(mgr); err != nil {
		return fmt.Errorf("set up webhooks: %w", err)
	}
	switch {
	case w.options.CertDir != "":
		return nil
	case w.cluster:
		namespace, err := webhookserver.Namespace()
		if err != nil {
			return fmt.Errorf("find the operator's namespace: %w", err)
		}
		return w.rotateInCluster(mgr, namespace)
	default:
		return w.installByURL(mgr)
	}
}

// serveWith makes the manager answer the API server.
func (w *Webhooks) serveWith(mgr ctrl.Manager) error {
	asWritten := &unstructured.Unstructured{}
	asWritten.SetGroupVersionKind(webv1.SchemeGroupVersion.WithKind("MyWeb"))
	return errors.Join(
		indexNodePorts(mgr),
		ctrl.NewWebhookManagedBy(mgr, asWritten).WithDefaulter(defaulter{}).Complete(),
		ctrl.NewWebhookManagedBy(mgr, &webv1.MyWeb{}).WithValidator(validator{mgr.GetCache()}).Complete(),
		mgr.AddReadyzCheck("webhooks", w.server.Ready),
	)
}

// rotateInCluster keeps a certificate for the Service of the webhooks, in the namespace of the operator.
func (w *Webhooks) rotateInCluster(mgr ctrl.Manager, namespace string) error {
	if err := w.server.Rotate(mgr, clusterRotator(namespace)); err != nil {
		return fmt.Errorf("%w: install all of config (kubectl apply -k config), or run with --webhooks=false", err)
	}
	return nil
}

// installByURL serves with a throw-away certificate, and makes the API server call this process by its address.
func (w *Webhooks) installByURL(mgr ctrl.Manager) error {
	cert, key, err := certutil.GenerateSelfSignedCertKey(w.options.Host, nil, nil)
	if err != nil {
		return fmt.Errorf("make a certificate for %s: %w", w.options.Host, err)
	}
	if err := w.server.SetCertificate(cert, key); err != nil {
		return err
	}
	url := "https://" + net.JoinHostPort(w.options.Host, strconv.Itoa(w.options.Port))
	return local.Install(mgr, url, cert, w.server.Ready)
}
