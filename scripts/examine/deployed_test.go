package examine

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/pod"
)

// TestThePodsOfReplicas counts the pods in the API server before a second replica, with it, and after it.
func TestThePodsOfReplicas(t *testing.T) {
	if err := pod.Check(); err != nil {
		t.Skip("this system allows no pods: ", err)
	}
	t.Parallel()
	target, err := Subject{Program: build(t), Manifest: manifest, CRD: "testoperator/config/crd.yaml",
		Sample: "testoperator/config/sample.yaml"}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t.Context(), target, Options{Progress: t.Logf})
	crds := filepath.Join(t.TempDir(), "crds.yaml")
	if err := fixture.WriteManifest(crds, target.crds); err != nil {
		t.Fatal(err)
	}
	if r.fixture, err = fixture.Start(t.Context(), fixture.Options{CRDs: []string{crds}, Services: true}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.fixture.Stop() }()
	if err := r.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods := func(want ...string) error {
		list, err := r.fixture.Kube.CoreV1().Pods("testoperator").List(t.Context(), metav1.ListOptions{})
		var names []string
		for _, p := range list.Items {
			names = append(names, p.Name)
		}
		if err == nil && len(names) != len(want) {
			err = fmt.Errorf("the pods are %v, want %v", names, want)
		}
		return err
	}
	first := r.operator.pod
	if err := pods(first); err != nil || !strings.HasPrefix(first, "greeter-") {
		t.Fatal(first, err)
	}
	target.Role = []string{filepath.Join(t.TempDir(), "missing.yaml")}
	if _, err := r.newOperator(t.Context(), "failed", nil); err == nil {
		t.Fatal("a replica has a role that does not exist")
	}
	target.Role = nil
	if err := fixture.Eventually(t.Context(), 30*time.Second, func() error { return pods(first) }); err != nil {
		t.Fatal("after a replica that failed: ", err)
	}
	second, err := r.newOperator(t.Context(), "second", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := pods(first, second.pod); err != nil || second.pod == first {
		t.Fatal(second.pod, err)
	}
	r.giveBack(t.Context(), second)
	if err := fixture.Eventually(t.Context(), 30*time.Second, func() error { return pods(first) }); err != nil {
		t.Fatal(err)
	}
	if _, err := r.fixture.Kube.CoreV1().Pods("testoperator").Get(t.Context(), first, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	hasOnlyItsRoles(t, r)
	for o, valid := range map[*operator]bool{r.operator: true, second: false} {
		token, err := o.user.Token()
		if err != nil {
			t.Fatal(err)
		}
		err = fixture.Eventually(t.Context(), 30*time.Second, func() error { // the API server reads pods through a cache
			review, err := r.fixture.Kube.AuthenticationV1().TokenReviews().Create(t.Context(),
				&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
			if err == nil && review.Status.Authenticated != valid {
				err = fmt.Errorf("the token of %s is valid: %v, want %v", o.pod, review.Status.Authenticated, valid)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// hasOnlyItsRoles sends requests with the token of the pod: the roles in the manifests allow one of them.
func hasOnlyItsRoles(t *testing.T, r *run) {
	t.Helper()
	token, err := r.operator.user.Token()
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(r.fixture.Config)
	config.BearerToken = token
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kube.CoreV1().ConfigMaps("testoperator").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error("its role allows this: ", err)
	}
	_, err = kube.CoreV1().Secrets("testoperator").Get(t.Context(), "greetings", metav1.GetOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("no role allows it to get a Secret: %v", err)
	}
}
