package manifests_test

import (
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Every object of every way goes through the API server's decoding, defaulting, validation and admission. An
// unknown field is an error there.
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
		// This server knows these by name only. Their types know their fields.
		only[monitoringv1.ServiceMonitor](t, all, "ServiceMonitor")
		only[monitoringv1.PrometheusRule](t, all, "PrometheusRule")
	}
}

// The operator's namespace enforces the restricted Pod Security Standard, and the pods of every way meet it.
func TestTheNamespaceTakesTheOperatorsPods(t *testing.T) {
	for way, all := range ways(t) {
		prepare(t, all)
		template := operator(t, all).Spec.Template
		pod := func(change func(*corev1.PodSpec)) error {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "myweb-operator", Name: "operator", Labels: template.Labels}, Spec: *template.Spec.DeepCopy()}
			change(&p.Spec)
			return server.Create(t.Context(), p, client.DryRunAll)
		}
		if err := pod(func(*corev1.PodSpec) {}); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		for what, change := range map[string]func(*corev1.PodSpec){
			"may be root":        func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
			"has capabilities":   func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
			"may become another": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		} {
			if err := pod(change); err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted:`) {
				t.Errorf("%s: a pod that %s: got %v; so the test above shows nothing", way, what, err)
			}
		}
	}
}
