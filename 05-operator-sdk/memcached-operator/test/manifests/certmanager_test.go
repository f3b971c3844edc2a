package manifests

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

// ways are the folders of config/ that a user can apply.
var ways = []string{"default", "certmanager", "one-namespace", "several-namespaces", "prometheus"}

// scopes are the namespaces that each way watches, and the roles that it grants in each namespace.
var scopes = map[string]struct {
	watched string
	grants  []string
}{
	"default": {
		"", []string{"everywhere: manager-role", "everywhere: metrics-auth-role", "everywhere: webhook-certificate-role",
			"system: leader-election-role", "system: webhook-certificate-role"}},
	"certmanager": {
		"", []string{"everywhere: manager-role", "everywhere: metrics-auth-role", "system: leader-election-role"}},
	"one-namespace": {"metadata.namespace", []string{"system: leader-election-role", "system: manager-role"}},
	"several-namespaces": {"team-a,team-b",
		[]string{"system: leader-election-role", "team-a: manager-role", "team-b: manager-role"}},
}

// With cert-manager the names of four objects must agree.
func TestCertManagersCertificateIsForTheServiceAndInTheSecret(t *testing.T) {
	all := build(t, "certmanager")
	service := ""
	for _, c := range only[admissionv1.ValidatingWebhookConfiguration](t, all, "ValidatingWebhookConfiguration") {
		if got := c.Annotations["cert-manager.io/inject-ca-from"]; got != namespace+"/"+name+"-serving-cert" {
			t.Errorf("the authority is taken from %q", got)
		}
		service = c.Webhooks[0].ClientConfig.Service.Name
	}
	found := false
	for _, object := range all {
		if object.GetKind() != "Certificate" || object.GetName() != name+"-serving-cert" {
			continue
		}
		found = true
		spec := object.Object["spec"].(map[string]any)
		if dns := spec["dnsNames"].([]any)[0]; dns != service+"."+namespace+".svc" {
			t.Errorf("the certificate is for %v, the webhooks are at %s", dns, service)
		}
		mounted := ""
		for _, v := range manager(t, all).Spec.Template.Spec.Volumes {
			if v.Name == "webhook-certs" {
				mounted = v.Secret.SecretName
			}
		}
		if spec["secretName"] != mounted {
			t.Errorf("the certificate is in Secret %v, the pod mounts %s", spec["secretName"], mounted)
		}
	}
	if !found {
		t.Error("there is no certificate for the webhooks")
	}
	if secrets := only[corev1.Secret](t, all, "Secret"); len(secrets) != 0 {
		t.Errorf("there are %d Secrets: cert-manager makes them", len(secrets))
	}
}
