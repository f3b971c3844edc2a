package webhook

import (
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The permissions for rotation, beside the operator's own: controller-gen makes config/rbac/webhook_role.yaml of
// the markers. Writes are limited to names. Lists and watches are not: the library watches all webhook
// configurations, which hold no secret, and all Secrets in the operator's namespace, so no other Secret should be
// there.
//
// +kubebuilder:rbac:namespace=myweb-operator,groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:namespace=myweb-operator,groups="",resources=secrets,resourceNames=myweb-operator-webhook,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=myweb-operator,verbs=update

const (
	configurationName = "myweb-operator"         // of both webhook configurations
	serviceName       = "myweb-operator-webhook" // and of the Secret
)

// clusterRotator says which certificate to keep, and where.
func clusterRotator(namespace string) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:      client.ObjectKey{Namespace: namespace, Name: serviceName},
		DNSName:        fmt.Sprintf("%s.%s.svc", serviceName, namespace),
		CAName:         "myweb-operator-ca",
		CAOrganization: "myweb-operator",
		Webhooks: []rotator.WebhookInfo{
			{Name: configurationName, Type: rotator.Mutating},
			{Name: configurationName, Type: rotator.Validating},
		},
		FieldOwner: configurationName,
	}
}
