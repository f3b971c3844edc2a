package examine

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/lab/engine/fixture"
)

// besideCRDs is where kubebuilder writes the manifests of webhooks, relative to config/crd/bases and to config/crd.
var besideCRDs = []string{"../../webhook/manifests.yaml", "../webhook/manifests.yaml"}

// webhookFiles are the manifests of the webhooks that the program serves.
func (t *target) webhookFiles() []string {
	if len(t.Webhooks) > 0 || slices.Contains(t.Env, "ENABLE_WEBHOOKS=false") {
		return t.Webhooks
	}
	for _, place := range besideCRDs {
		if file := filepath.Join(t.CRD, place); isFile(file) {
			return []string{file}
		}
	}
	return nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// readWebhooks returns the configurations in the manifests. $NAMESPACE in them is the operator's namespace.
func (r *run) readWebhooks() (all []*unstructured.Unstructured, err error) {
	for _, file := range r.target.webhookFiles() {
		objects, err := fixture.Objects(file)
		if err != nil {
			return nil, fmt.Errorf("WEBHOOKS=%s cannot be read: %w", file, err)
		}
		for _, u := range objects {
			if strings.HasSuffix(u.GetKind(), "WebhookConfiguration") {
				all = append(all, u)
				r.webhooks = append(r.webhooks, u.GetKind()+" "+u.GetName())
			}
		}
	}
	if len(all) == 0 && len(r.target.Webhooks) > 0 {
		return nil, fmt.Errorf("WEBHOOKS=%s holds no MutatingWebhookConfiguration or ValidatingWebhookConfiguration",
			strings.Join(r.target.Webhooks, ","))
	}
	return all, nil
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
	configurations, err := r.readWebhooks()
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
	var all bytes.Buffer
	for _, u := range configurations {
		data, err := yaml.Marshal(u.Object)
		if err != nil {
			return err
		}
		all.WriteString("---\n")
		all.Write(data)
	}
	file := filepath.Join(r.fixture.Dir, "webhooks.yaml")
	if err := os.WriteFile(file, all.Bytes(), 0o600); err != nil {
		return err
	}
	if len(configurations) > 0 {
		if err := r.fixture.Webhooks.Install(r.ctx, file); err != nil {
			return err
		}
	}
	// This is controller-runtime's default folder. The program's TMPDIR is the fixture's folder.
	place := filepath.Join(r.fixture.Dir, "k8s-webhook-server", "serving-certs")
	return errors.Join(os.MkdirAll(filepath.Dir(place), 0o700), os.Symlink(r.fixture.Webhooks.CertDir, place))
}

// webhooksAnswer waits until the program serves its webhooks, and the API server can trust them. If the program serves
// none, the examination goes on without webhooks.
func (r *run) webhooksAnswer() error {
	if !r.served {
		return nil
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(r.operator.webhookPort()))
	var err error
	for begin := time.Now(); time.Since(begin) < 15*time.Second && r.operator.Running(); {
		if err = r.fixture.Webhooks.Trusted(r.ctx, address); err == nil {
			r.report.Notes = append(r.report.Notes, fmt.Sprintf("Its webhooks were served: %s.", strings.Join(r.webhooks, ", ")))
			return nil
		}
		if err := fixture.Pause(r.ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("the API server does not trust the webhooks at %s: %w. The caBundle must be the CA of the "+
			"certificate that the program serves%s", address, err, words(r.operator.Process()))
	}
	if len(r.target.Webhooks) > 0 || len(r.target.conversions) > 0 {
		return fmt.Errorf("the program serves no webhooks at %s within 15 s: name its flags in ARGS=%s", address,
			words(r.operator.Process()))
	}
	r.report.Notes = append(r.report.Notes, fmt.Sprintf("The webhooks beside the CRDs (%s) are not served by the program "+
		"at %s: it is examined without them.", strings.Join(r.webhooks, ", "), address))
	r.options.Progress("it serves no webhooks at %s: they are left out", address)
	return r.fixture.Webhooks.Install(r.ctx, "")
}

// usualWebhookPort is controller-runtime's default.
const usualWebhookPort = 9443

// webhookPort is the port on which the program serves webhooks: the port in ARGS=, or else the usual port.
func (o *operator) webhookPort() int {
	for _, arg := range o.target.Args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if n, err := strconv.Atoi(value); err == nil && name == "webhook-port" {
			return n
		}
	}
	if slices.Contains(o.flags, "webhook-port") {
		if o.port == 0 {
			o.port, _ = fixture.FreePort()
		}
		return o.port
	}
	return usualWebhookPort
}

// certificates are the flags for the certificates of the webhooks that the program has.
func (o *operator) certificates() []string {
	if _, err := os.Stat(o.fixture.Webhooks.CertDir); err != nil {
		return nil // the program serves no webhook
	}
	dir := o.fixture.Webhooks.CertDir
	return o.with("--webhook-cert-path="+dir, "--webhook-cert-dir="+dir, "--cert-dir="+dir,
		fmt.Sprintf("--webhook-port=%d", o.webhookPort()))
}

// subcommand returns the words at the beginning of a program's arguments: its flags belong to that command.
func subcommand(args []string) (words []string) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") || strings.ContainsAny(arg, "=/.$") {
			break
		}
		words = append(words, arg)
	}
	return words
}
