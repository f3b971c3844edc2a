package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/gomega"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/04-controller-runtime/internal/testenv"
	"example.com/operator-workshop/04-controller-runtime/internal/webhook/local"
)

// These tests are about a process outside a cluster, which installs its webhooks itself.

func TestTheLocalWayKeepsTheShippedConfigurations(t *testing.T) {
	serve(t)
	for _, want := range shippedConfigurations(t) {
		got := want.DeepCopy()
		must(t, admin.Create(t.Context(), want, client.DryRunAll)) // fills in the API server's defaults
		must(t, admin.Get(t.Context(), client.ObjectKey{Name: local.Name}, got))
		for _, u := range []*unstructured.Unstructured{want, got} {
			delete(u.Object, "metadata")
			delete(webhookOf(u), "clientConfig")
		}
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Error(diff)
		}
	}
}

// TestTheNextStartTakesOver is about a process that was killed: its configurations are still installed.
func TestTheNextStartTakesOver(t *testing.T) {
	ns := namespace(t)
	for _, u := range shippedByURL(t, fmt.Sprintf("https://127.0.0.1:%d", testenv.FreePort(t))) {
		u.SetName(local.Name)
		must(t, admin.Create(t.Context(), u))
		t.Cleanup(func() { must(t, client.IgnoreNotFound(admin.Delete(context.Background(), u))) })
	}
	eventually(t, func(g gomega.Gomega) {
		err := admin.Create(t.Context(), myweb(ns, "web"), client.DryRunAll)
		g.Expect(apierrors.IsInternalError(err)).To(gomega.BeTrue(), "a MyWeb without a page needs the webhook: %v", err)
	})
	must(t, admin.Create(t.Context(), myweb(ns, "web", page("x")), client.DryRunAll))

	serve(t)()
	if left := installed(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	eventually(t, func(g gomega.Gomega) { // the API server sees the removal a moment later
		g.Expect(admin.Create(t.Context(), myweb(ns, "web"), client.DryRunAll)).To(gomega.Succeed())
	})
}

func TestStoppingLeavesTheConfigurationsOfAnotherProcess(t *testing.T) {
	stopFirst := serve(t)
	before := address(t)
	stopSecond := serve(t)
	eventually(t, func(g gomega.Gomega) { g.Expect(address(t)).NotTo(gomega.BeElementOf("", before)) })
	stopFirst()
	if left := installed(t); len(left) != 2 {
		t.Errorf("the first process removed what the second had taken over; left: %v", left)
	}
	stopSecond()
	if left := installed(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTheAuthorityComesBack: another client replaces a configuration, and its manifest has no authority, or another one.
func TestTheAuthorityComesBack(t *testing.T) {
	serve(t)
	another, _, err := certutil.GenerateSelfSignedCertKey("another", nil, nil)
	must(t, err)
	for _, u := range shippedConfigurations(t) {
		for what, bundle := range map[string]any{"removed": nil, "replaced": base64.StdEncoding.EncodeToString(another)} {
			t.Run(what+" in a "+u.GetKind(), func(t *testing.T) {
				authority := func() any {
					must(t, admin.Get(t.Context(), client.ObjectKey{Name: local.Name}, u))
					return webhookOf(u)["clientConfig"].(map[string]any)["caBundle"]
				}
				want := authority()
				webhookOf(u)["clientConfig"].(map[string]any)["caBundle"] = bundle
				must(t, admin.Update(t.Context(), u))
				gomega.NewWithT(t).Eventually(authority, "30s", "20ms").Should(gomega.Equal(want))
			})
		}
	}
}

// address returns the URL that both local configurations call.
func address(t *testing.T) string {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfiguration{}
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: local.Name}, mutating))
	must(t, admin.Get(t.Context(), client.ObjectKey{Name: local.Name}, validating))
	one, _, _ := strings.Cut(*mutating.Webhooks[0].ClientConfig.URL, "/mutate-")
	other, _, _ := strings.Cut(*validating.Webhooks[0].ClientConfig.URL, "/validate-")
	if one != other {
		return "" // one configuration is still to come
	}
	return one
}

// installed lists the webhook configurations of the cluster.
func installed(t *testing.T) (names []string) {
	t.Helper()
	mutating, validating := &admissionv1.MutatingWebhookConfigurationList{},
		&admissionv1.ValidatingWebhookConfigurationList{}
	must(t, admin.List(t.Context(), mutating))
	must(t, admin.List(t.Context(), validating))
	for _, c := range mutating.Items {
		names = append(names, "mutating/"+c.Name)
	}
	for _, c := range validating.Items {
		names = append(names, "validating/"+c.Name)
	}
	return names
}
