package controller

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/testenv"
)

var shippedCRDs = filepath.Join("..", "..", "config", "crd", "bases")

// All tests of this package share one API server. Each test has its own namespace.
var config *rest.Config

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	utilruntime.Must(databasesv1.AddToScheme(scheme.Scheme))
	os.Exit(testenv.Main(m, func(cfg *rest.Config) error { config = cfg; return nil }, shippedCRDs))
}

// newClient returns an administrator's client and a new namespace for the test.
func newClient(t *testing.T) (client.WithWatch, string) {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{})
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "backup-"}}
	must(t, c.Create(t.Context(), namespace))
	return c, namespace.Name
}
