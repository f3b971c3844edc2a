package ports

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
)

// configuration tells the API server to ask about MyWebs. The test environment fills in the address and the certificate.
func configuration() *admissionv1.ValidatingWebhookConfiguration {
	return &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "exercise"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name:                    "validate.mywebs.operator.k8s-summit.org",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionv1.SideEffectClassNone),
			FailurePolicy:           new(admissionv1.Fail),
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{
				Namespace: "default", Name: "exercise", Path: new("/validate-operator-k8s-summit-org-v1-myweb")}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule: admissionv1.Rule{APIGroups: []string{"operator.k8s-summit.org"}, APIVersions: []string{"v1"},
					Resources: []string{"mywebs"}},
			}},
		}},
	}
}

// A fixture is a real API server that asks the reader's webhook.
type fixture struct {
	*testing.T
	client.Client
}

func newFixture(t *testing.T) *fixture {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(webv1.AddToScheme(scheme.Scheme))
	root, err := testenv.Root()
	must(t, err)
	env, err := testenv.NewEnvironment(filepath.Join(root, "04-controller-runtime", "config", "crd"))
	must(t, err)
	serving := &env.WebhookInstallOptions
	serving.ValidatingWebhooks = []*admissionv1.ValidatingWebhookConfiguration{configuration()}
	t.Cleanup(func() { _ = env.Stop() })
	cfg, err := env.Start()
	must(t, err)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Metrics: server.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{Host: serving.LocalServingHost,
			Port: serving.LocalServingPort, CertDir: serving.LocalServingCertDir})})
	must(t, err)
	must(t, SetupWithManager(mgr))
	testenv.Run(t, mgr.Start)
	f := &fixture{T: t}
	f.Client, err = client.New(cfg, client.Options{})
	must(t, err)
	must(t, f.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}))
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// myweb returns a MyWeb that asks for a port; for 0 it asks for none.
func myweb(namespace, name string, port int32) *webv1.MyWeb {
	web := &webv1.MyWeb{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: webv1.MyWebSpec{Image: "nginx:1.29"}}
	if port != 0 {
		web.Spec.NodePortNumber = &port
	}
	return web
}

// create creates a MyWeb that must be accepted, and waits until the API server has reached the webhook.
func (f *fixture) create(web *webv1.MyWeb, wrong string) *webv1.MyWeb {
	f.Helper()
	f.poll(func() (bool, error) {
		err := f.Create(f.Context(), web)
		if err != nil && strings.Contains(err.Error(), "failed calling webhook") {
			return false, nil
		}
		return err == nil, err
	}, wrong)
	return web
}

// refuses waits until the creation of a MyWeb is refused because holder has its port: the cache of the webhook is a
// moment behind.
func (f *fixture) refuses(web, holder *webv1.MyWeb, wrong string) {
	f.Helper()
	var refusal error
	f.poll(func() (bool, error) {
		refusal = f.Create(f.Context(), web.DeepCopy(), client.DryRunAll)
		return refusal != nil, nil
	}, wrong)
	cause, found := apierrors.StatusCause(refusal, metav1.CauseTypeFieldValueInvalid)
	if !found || cause.Field != "spec.nodePortNumber" {
		f.Fatalf("the refusal does not name the field spec.nodePortNumber in its causes: %v", refusal)
	}
	if !strings.Contains(refusal.Error(), client.ObjectKeyFromObject(holder).String()) {
		f.Fatalf("the refusal does not name the MyWeb %s, which has the port: %v", client.ObjectKeyFromObject(holder), refusal)
	}
}

func (f *fixture) poll(done func() (bool, error), wrong string) {
	f.Helper()
	err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, 15*time.Second, true,
		func(context.Context) (bool, error) { return done() })
	if wait.Interrupted(err) {
		f.Fatal(wrong)
	} else if err != nil {
		f.Fatalf("%s: %v", wrong, err)
	}
}

// allocate reports a port as the operator does. The API server does not ask the webhook about a status.
func (f *fixture) allocate(web *webv1.MyWeb, port int32) {
	f.Helper()
	web.Status.NodePort = port
	must(f.T, f.Status().Update(f.Context(), web))
}

func TestPorts(t *testing.T) {
	f := newFixture(t)
	first := f.create(myweb("default", "first", 30500), "the port 30500 is free, and the MyWeb was refused")
	f.refuses(myweb("default", "second", 30500), first, "two MyWebs of a namespace ask for the port 30500, and both were accepted")
	f.refuses(myweb("elsewhere", "second", 30500), first,
		"two MyWebs in two namespaces ask for the port 30500, and both were accepted")

	first.Labels = map[string]string{"team": "a"}
	if err := f.Update(t.Context(), first); err != nil {
		t.Fatalf("a label of the MyWeb was changed, and it was refused because of the port that it has itself: %v", err)
	}
	second := f.create(myweb("default", "second", 30501), "the port 30501 is free, and the MyWeb was refused")
	second.Spec.NodePortNumber = new(int32(30500))
	if err := f.Update(t.Context(), second); err == nil {
		t.Fatal("a MyWeb changed its port to 30500, which another MyWeb has, and the update was accepted")
	}

	// The cache gets changes in their order: when it has the port 30503, it has free, too.
	free := f.create(myweb("default", "free", 0), "a MyWeb that asks for no port was refused")
	known := f.create(myweb("default", "known", 30503), "the port 30503 is free, and the MyWeb was refused")
	f.refuses(myweb("default", "other", 30503), known, "two MyWebs ask for the port 30503, and both were accepted")
	f.create(myweb("default", "also-free", 0), "two MyWebs ask for no port, and the second one was refused")

	f.allocate(free, 30502)
	f.refuses(myweb("default", "other", 30502), free,
		"the cluster allocated the port 30502 to a MyWeb (status.nodePort), and another MyWeb that asks for it was accepted")
	f.allocate(free, 30503) // two objects that were stored without the webhook may have the same port
	f.poll(func() (bool, error) {
		return f.Create(t.Context(), myweb("default", "other", 30502), client.DryRunAll) == nil, nil
	}, "no MyWeb has the port 30502 any more, and it was refused")
	known.Labels = map[string]string{"team": "a"}
	if err := f.Update(t.Context(), known); err != nil {
		t.Fatalf("two MyWebs had the same port already, and a changed label was refused: %v", err)
	}
}
