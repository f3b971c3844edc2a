package webhook

import (
	"fmt"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The permissions for rotation, beside the operator's own: controller-gen generates config/webhook/role.yaml from the
// markers. Writes are limited to names. Lists and watches are not: the library watches all webhook configurations,
// which hold no secret, and all Secrets in the operator's namespace, so no other Secret should be there.
//
// A marker with a namespace becomes a Role beside the ClusterRole. kustomize replaces "system" by the operator's
// namespace. The names in resourceNames are those with the prefix that kustomize gives them.
//
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,verbs=list;watch
// +kubebuilder:rbac:namespace=system,groups="",resources=secrets,resourceNames=memcached-operator-webhook-server-cert,verbs=get;update
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,verbs=list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=memcached-operator-mutating-webhook-configuration;memcached-operator-validating-webhook-configuration,verbs=update

// Names with the prefix that kustomize gives them.
const (
	operatorName   = "memcached-operator"
	serviceName    = operatorName + "-webhook-service"
	secretName     = operatorName + "-webhook-server-cert"
	mutatingName   = operatorName + "-mutating-webhook-configuration"
	validatingName = operatorName + "-validating-webhook-configuration"
)

// clusterRotator returns a rotator for the certificate of the webhooks.
func clusterRotator(namespace string) *rotator.CertRotator {
	return &rotator.CertRotator{
		SecretKey:      client.ObjectKey{Namespace: namespace, Name: secretName},
		DNSName:        fmt.Sprintf("%s.%s.svc", serviceName, namespace),
		CAName:         operatorName + "-ca",
		CAOrganization: operatorName,
		Webhooks: []rotator.WebhookInfo{
			{Name: mutatingName, Type: rotator.Mutating},
			{Name: validatingName, Type: rotator.Validating},
		},
		FieldOwner: operatorName,
	}
}
