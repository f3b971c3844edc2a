// Package codegen_test checks the generated code and the generated CRD on a real API server.
package codegen_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/02-codegen/internal/testenv"
	webv1 "example.com/operator-workshop/02-codegen/pkg/apis/myweb/v1"
	"example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned"
	typedv1 "example.com/operator-workshop/02-codegen/pkg/generated/clientset/versioned/typed/myweb/v1"
)

const generatedCRD = "config/crd/operator.k8s-summit.org_mywebs.yaml"

// server is an API server with the generated CRD.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { server = cfg; return nil }, generatedCRD))
}

// newClientset returns the generated clientset for the API server.
func newClientset(t *testing.T) versioned.Interface {
	t.Helper()
	clientset, err := versioned.NewForConfig(server)
	testenv.Must(t, err)
	return clientset
}

// newNamespace makes a namespace for one test and returns its name.
func newNamespace(t *testing.T) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(server)
	testenv.Must(t, err)
	ns, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	testenv.Must(t, err)
	return ns.Name
}

// newWebs returns the typed client of a new namespace for one test.
func newWebs(t *testing.T) typedv1.MyWebInterface {
	t.Helper()
	return newClientset(t).OperatorV1().MyWebs(newNamespace(t))
}

// newMyWeb makes a MyWeb that the API server accepts.
func newMyWeb(name string) *webv1.MyWeb {
	return &webv1.MyWeb{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       webv1.MyWebSpec{Image: "nginx"},
	}
}

// create stores the MyWeb and returns it as the API server stored it.
func create(t *testing.T, webs typedv1.MyWebInterface, web *webv1.MyWeb) *webv1.MyWeb {
	t.Helper()
	created, err := webs.Create(t.Context(), web, metav1.CreateOptions{})
	testenv.Must(t, err)
	return created
}

// get reads the MyWeb of that name.
func get(t *testing.T, webs typedv1.MyWebInterface, name string) *webv1.MyWeb {
	t.Helper()
	web, err := webs.Get(t.Context(), name, metav1.GetOptions{})
	testenv.Must(t, err)
	return web
}
