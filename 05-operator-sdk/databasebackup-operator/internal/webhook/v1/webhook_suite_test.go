package v1

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	databasesv1 "github.com/example/databasebackup-operator/api/v1"
	"github.com/example/databasebackup-operator/internal/webhooktest"
	// +kubebuilder:scaffold:imports
)

// The scaffold creates this suite, with Ginkgo. The package webhooktest starts the API server and the manager.

var (
	ctx       = context.Background()
	k8sClient client.Client
	said      = &bytes.Buffer{} // the warnings of the API server to k8sClient, a line for each
)

// heard returns the warnings since the last call.
func heard() []string {
	defer said.Reset()
	return slices.Collect(strings.Lines(said.String()))
}

func TestWebhooks(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Webhook Suite")
}

var _ = BeforeSuite(func() {
	utilruntime.Must(databasesv1.AddToScheme(scheme.Scheme))
	// +kubebuilder:scaffold:scheme
	k8sClient = webhooktest.Start(said, func(mgr ctrl.Manager) error {
		// +kubebuilder:scaffold:webhook
		return SetupDatabaseBackupWebhookWithManager(mgr, "")
	})
})
