package webhook

import (
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// These are the permissions for rotation, in addition to the operator's other permissions: controller-gen makes
// config/webhook/role.yaml of the markers. Writes are limited to names. Lists and watches are not: the library watches
// all webhook configurations, which hold no secret, and all Secrets in the operator's namespace, so no other Secret
// should be there.
//
// A marker with a namespace makes a Role beside the ClusterRole. kustomize replaces "system" by the operator's
// namespace. The names in resourceNames include the prefix that kustomize adds.
//
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,resourceNames=databasebackup-operator-webhook-server-cert,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=databasebackup-operator-validating-webhook-configuration,verbs=update

// Names with the prefix that kustomize gives them.
const (
	operatorName   = "databasebackup-operator"
	serviceName    = operatorName + "-webhook-service"
	secretName     = operatorName + "-webhook-server-cert"
	validatingName = operatorName + "-validating-webhook-configuration"
)

// clusterRotator configures which certificate the rotator keeps, and where.
func clusterRotator(namespace string) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:      client.ObjectKey{Namespace: namespace, Name: secretName},
		DNSName:        fmt.Sprintf("%s.%s.svc", serviceName, namespace),
		CAName:         operatorName + "-ca",
		CAOrganization: operatorName,
		Webhooks:       []rotator.WebhookInfo{{Name: validatingName, Type: rotator.Validating}},
		FieldOwner:     operatorName,
	}
}
