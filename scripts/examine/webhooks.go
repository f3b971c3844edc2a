package examine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"example.com/operator-workshop/scripts/examine/fixture"
)

// besideCRDs is where kubebuilder writes the manifests of webhooks, relative to config/crd/bases and to config/crd.
var besideCRDs = []string{"../../webhook/manifests.yaml", "../webhook/manifests.yaml"}

// withoutWebhooks reports whether the user has switched the webhooks off.
func (t *target) withoutWebhooks() bool { return slices.Contains(t.Env, "ENABLE_WEBHOOKS=false") }

// webhookFiles are the manifests of the webhooks that the program serves.
func (t *target) webhookFiles() []string {
	if len(t.Webhooks) > 0 || t.workload != nil || t.withoutWebhooks() {
		return t.Webhooks
	}
	for _, place := range besideCRDs {
		file := filepath.Join(t.CRD, place)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return []string{file}
		}
	}
	return nil
}

// readWebhooks returns the configurations in the manifests, and the Secrets that a Certificate of cert-manager asks for.
// $NAMESPACE in them is the operator's namespace.
func (r *run) readWebhooks() (all []*unstructured.Unstructured, secrets []types.NamespacedName, err error) {
	objects, err := objectsOf("WEBHOOKS", r.target.webhookFiles())
	if err != nil {
		return nil, nil, err
	}
	if !r.target.withoutWebhooks() {
		objects = append(objects, r.target.workload.ofKinds("MutatingWebhookConfiguration",
			"ValidatingWebhookConfiguration", "Certificate")...)
	}
	for _, u := range objects {
		secret, _, _ := unstructured.NestedString(u.Object, "spec", "secretName")
		switch {
		case strings.HasSuffix(u.GetKind(), "WebhookConfiguration"):
			all = append(all, u)
		case u.GetKind() == "Certificate" && secret != "":
			namespace := cmp.Or(strings.ReplaceAll(u.GetNamespace(), "$NAMESPACE", r.target.home()), r.target.home())
			secrets = append(secrets, types.NamespacedName{Namespace: namespace, Name: secret})
		}
	}
	if len(all) == 0 && len(r.target.Webhooks) > 0 {
		return nil, nil, fmt.Errorf("WEBHOOKS=%s holds no MutatingWebhookConfiguration or ValidatingWebhookConfiguration",
			strings.Join(r.target.Webhooks, ","))
	}
	return all, secrets, nil
}

// servicesOf are the Services that webhooks name in their clientConfig. The names replace $NAMESPACE.
func (r *run) servicesOf(configurations []*unstructured.Unstructured) (all []types.NamespacedName) {
	services := slices.Collect(maps.Values(r.target.conversions))
	for _, u := range configurations {
		hooks, _ := u.Object["webhooks"].([]any)
		for _, hook := range hooks {
			hook, _ := hook.(map[string]any)
			config, _ := hook["clientConfig"].(map[string]any)
			if service, ok := config["service"].(map[string]any); ok {
				services = append(services, service)
			}
		}
	}
	for _, service := range services {
		if service["namespace"] == "$NAMESPACE" {
			service["namespace"] = r.target.home()
		}
		name, _ := service["name"].(string)
		namespace, _ := service["namespace"].(string)
		if n := (types.NamespacedName{Namespace: namespace, Name: name}); !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// installWebhooks makes the API server call the program, as a Service does in a cluster. The lab makes certificates, as
// cert-manager does; an operator can make its own instead.
func (r *run) installWebhooks() error {
	configurations, secrets, err := r.readWebhooks()
	if err != nil || len(configurations) == 0 && len(r.target.conversions) == 0 {
		return err
	}
	r.served = true
	if err := r.fixture.Webhooks.UseServices(r.ctx, r.servicesOf(configurations)); err != nil {
		return err
	}
	for crd, service := range r.target.conversions {
		if err := r.fixture.Webhooks.Convert(r.ctx, crd, service); err != nil {
			return err
		}
	}
	file := filepath.Join(r.fixture.Dir, "webhooks.yaml")
	if err := fixture.WriteManifest(file, configurations); err != nil {
		return err
	}
	if err := r.fixture.Webhooks.Install(r.ctx, file); err != nil {
		return err
	}
	for _, secret := range secrets {
		err := r.fixture.Namespace(r.ctx, secret.Namespace)
		if err == nil {
			err = r.fixture.Webhooks.Publish(r.ctx, secret)
		}
		if err != nil {
			return fmt.Errorf("put the certificate of the webhooks into the Secret %s: %w", secret, err)
		}
	}
	return nil
}

// webhooksAnswer waits until the program serves its webhooks, and the API server can trust them. The configurations are
// those of the manifests, or the operator has created them. If the program does not serve those beside the CRDs, the
// examination goes on without webhooks.
func (r *run) webhooksAnswer() error {
	var names []string
	var err error
	for begin := r.clock.Now(); r.clock.Now()-begin < 15*time.Second && r.operator.Running(); {
		if names, err = r.fixture.Webhooks.Called(r.ctx); err != nil {
			return err
		}
		if len(names) == 0 {
			if slices.Contains(r.operator.Process().Listening(), r.operator.port) {
				r.report.Notes = append(r.report.Notes, "It serves webhooks that no manifest names: it is examined without them "+
					"(WEBHOOKS=).")
			}
			return nil
		}
		if err = r.operator.findWebhooks(r.ctx); err == nil {
			return nil
		}
		if err := fixture.Pause(r.ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	address := localAddress(r.operator.webhookPort())
	beside := r.served && len(r.target.Webhooks) == 0 && len(r.target.conversions) == 0
	switch {
	case !r.operator.Running():
		p := r.operator.Process()
		return fmt.Errorf("the operator %v before it served its webhooks%s", p.Exit(), words(p))
	case !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("the API server does not trust the webhooks at %s: %w. The caBundle must be the CA of the "+
			"certificate that the program serves%s", address, err, words(r.operator.Process()))
	case !beside:
		return fmt.Errorf("the program serves no webhooks (%s) at %s within 15 s: name its flags in ARGS=%s",
			strings.Join(names, ", "), address, words(r.operator.Process()))
	}
	r.report.Notes = append(r.report.Notes, fmt.Sprintf("The webhooks beside the CRDs (%s) are not served by the program "+
		"at %s: it is examined without them.", strings.Join(names, ", "), address))
	r.progress("it serves no webhooks at %s: they are left out", address)
	return r.fixture.Webhooks.Install(r.ctx, "")
}

// findWebhooks returns nil when the API server can trust the webhooks of the process: on the expected port, or on
// another port on which it listens.
func (o *operator) findWebhooks(ctx context.Context) error {
	err := o.fixture.Webhooks.Trusted(ctx, o.Process(), o.webhookPort())
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	for _, port := range o.Process().Listening() {
		if o.fixture.Webhooks.Trusted(ctx, o.Process(), port) == nil {
			o.port = port
			o.fixture.Webhooks.Add(o.Process(), port)
			return nil
		}
	}
	return err
}

// localAddress is the address of a port on this machine.
func localAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// usualWebhookPort is controller-runtime's default.
const usualWebhookPort = 9443

// portFlag and certFlag match the usual names of the flags for the port and the certificates of the webhooks.
var (
	portFlag = regexp.MustCompile(`^webhook-(\w+-)?port$`)
	certFlag = regexp.MustCompile(`^webhook-(tls-)?cert(ificate)?s?-(dir|path)$|^(tls-)?certs?-dir$`)
)

// webhookPort is the port on which the program serves webhooks: the port in ARGS=, the port that was found, or else the
// usual port.
func (o *operator) webhookPort() int {
	for _, arg := range o.target.Args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if n, err := strconv.Atoi(value); err == nil && portFlag.MatchString(name) {
			return n
		}
	}
	if slices.ContainsFunc(o.flags, portFlag.MatchString) {
		if o.port == 0 {
			o.port, _ = o.freePort(usualWebhookPort)
		}
		return o.port
	}
	return cmp.Or(o.port, usualWebhookPort)
}

// certificates are the flags that the program has for the folder of certificates, when there are any.
func (o *operator) certificates(dir string) []string {
	var settings []string
	for _, flag := range o.flags {
		if certFlag.MatchString(flag) && o.fixture.Webhooks.Certified() {
			settings = append(settings, fmt.Sprintf("--%s=%s", flag, dir))
		}
	}
	return o.with(settings...)
}
