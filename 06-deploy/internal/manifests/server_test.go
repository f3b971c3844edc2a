package manifests_test

import (
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Every object of every way goes through the API server's decoding, defaulting, validation and admission. An
// unknown field is an error there. So does the operator's pod: its namespace enforces the restricted Pod Security
// Standard.
func TestTheAPIServerAcceptsEveryWay(t *testing.T) {
	for way, all := range ways(t) {
		prepare(t, all)
		for _, object := range all {
			err := server.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.DryRunAll,
				client.FieldOwner("test"), client.ForceOwnership)
			if err != nil {
				t.Errorf("%s: %s %s: %v", way, object.GetKind(), object.GetName(), err)
			}
		}
		template := operator(t, all).Spec.Template
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "myweb-operator", Name: "operator",
			Labels: template.Labels}, Spec: template.Spec}
		if err := server.Create(t.Context(), pod, client.DryRunAll); err != nil {
			t.Errorf("%s: the operator's pod: %v", way, err)
		}
		// This server knows these by name only. Their types know their fields.
		only[monitoringv1.ServiceMonitor](t, all, "ServiceMonitor")
		only[monitoringv1.PrometheusRule](t, all, "PrometheusRule")
	}
}
