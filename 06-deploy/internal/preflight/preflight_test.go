package preflight

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/operator-workshop/06-deploy/internal/kustomize"
	"example.com/operator-workshop/06-deploy/internal/testenv"
)

const manifestsFolder = "../../config"

var (
	cfg  *rest.Config
	kube client.Client
)

// server starts an API server without MyWebs for one test: what a test leaves there would disturb
// another.
func server(t *testing.T) {
	t.Helper()
	ctrl.SetLogger(logr.Discard()) // clients have nothing to say here
	cfg = testenv.NewAPIServer(t)
	var err error
	kube, err = client.New(cfg, client.Options{})
	testenv.Must(t, err)
}

func way(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	all, err := kustomize.Build(filepath.Join(manifestsFolder, folder))
	testenv.Must(t, err)
	return all
}

// put creates objects, which end with the test.
func put(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		testenv.Must(t, kube.Create(t.Context(), object))
		t.Cleanup(func() {
			if err := kube.Delete(context.Background(), object, client.GracePeriodSeconds(0)); err != nil {
				t.Error(err)
			}
		})
	}
}

// says checks that an error contains all of these texts.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v\nwant %q", err, text)
		}
	}
}

// TestTheStory goes through the problems that block an installation, one after the other: objects of an API server
// stay, so the order matters.
func TestTheStory(t *testing.T) {
	server(t)
	says(t, Check(t.Context(), cfg, way(t, "04/default")),
		"the cluster does not know MyWebs, so the operator would not start: make install")
	says(t, Check(t.Context(), cfg, way(t, "04/monitoring")),
		"the cluster has no ServiceMonitor: install the Prometheus operator, or deploy without monitoring",
		"the cluster has no PrometheusRule")
	if _, err := envtest.InstallCRDs(cfg, envtest.CRDInstallOptions{Paths: []string{manifestsFolder +
		"/crd/operator.k8s-summit.org_mywebs.yaml"}}); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"03/default", "04/default", "04/kind", "04/high-availability", "04/webhooks"} {
		if err := Check(t.Context(), cfg, way(t, folder)); err != nil {
			t.Errorf("%s: an empty cluster, and %v", folder, err)
		}
	}
	says(t, Check(t.Context(), cfg, way(t, "04/namespaced")),
		"the namespace websites is not there: kubectl create namespace websites")

	t.Run("who may not", mayNot)
	t.Run("taken", isTaken)
	t.Run("a namespace that refuses", refuses)
	t.Run("the CRD", crdInUse)
}

// mayNot tests three users: the first may do everything in a namespace, the second may create roles but cannot grant
// permissions that they do not have, and the third has no permission.
func mayNot(t *testing.T) {
	as := func(user string) *rest.Config {
		other := rest.CopyConfig(cfg)
		other.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
		return other
	}
	grant := func(user string, rules ...rbacv1.PolicyRule) {
		name := metav1.ObjectMeta{Name: user}
		put(t, &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, &rbacv1.ClusterRoleBinding{ObjectMeta: name,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}}})
	}
	every := []string{"*"}
	grant("developer",
		rbacv1.PolicyRule{APIGroups: []string{"", "apps", "networking.k8s.io"}, Resources: every, Verbs: every})
	grant("half", rbacv1.PolicyRule{APIGroups: []string{"", "apps", "networking.k8s.io"}, Resources: every, Verbs: every},
		rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: every, Verbs: []string{"create", "patch", "get"}})
	all := way(t, "04/default")
	eventually(t, func() error {
		err := Check(t.Context(), as("developer"), all)
		if err == nil || strings.Contains(err.Error(), "create deployments") {
			return fmt.Errorf("the role did not take effect: %w", err)
		}
		says(t, err, "you may not create clusterrolebindings.rbac.authorization.k8s.io, create "+
			"clusterroles.rbac.authorization.k8s.io, create rolebindings.rbac.authorization.k8s.io in myweb-operator",
			"ask who administers the cluster to do it; to use MyWebs afterwards the role edit in your namespace is enough")
		return nil
	})
	eventually(t, func() error {
		err := Check(t.Context(), as("half"), all)
		if err == nil || strings.Contains(err.Error(), "you may not") {
			return fmt.Errorf("the role did not take effect: %w", err)
		}
		says(t, err, "the API server refuses ClusterRole myweb-operator",
			"is attempting to grant RBAC permissions not currently held")
		return nil
	})
}

func eventually(t *testing.T, f func() error) {
	t.Helper()
	gomega.NewWithT(t).Eventually(f, "20s", "100ms").Should(gomega.Succeed())
}

func isTaken(t *testing.T) {
	all := way(t, "04/default")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "myweb-operator"}}
	viewer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "myweb-viewer", Labels: map[string]string{
		"app.kubernetes.io/name": "myweb-operator", "app.kubernetes.io/managed-by": "Helm"}}}
	put(t, role, viewer)
	err := Check(t.Context(), cfg, all)
	says(t, err, "ClusterRole myweb-operator is there and is not this operator's (it lacks the label "+
		"app.kubernetes.io/name=myweb-operator): remove it, or label it",
		"ClusterRole myweb-viewer was installed by Helm: go on with Helm, or uninstall it with Helm first")
	role.Labels = map[string]string{
		"app.kubernetes.io/name": "myweb-operator", "app.kubernetes.io/managed-by": "kustomize"}
	testenv.Must(t, kube.Update(t.Context(), role))
	if err := Check(t.Context(), cfg, all); err == nil || strings.Contains(err.Error(), "ClusterRole myweb-operator") {
		t.Errorf("our own role is refused: %v", err)
	}
}

// refuses tests a namespace that already exists. Pod Security or a quota refuses the pod; then it is accepted.
func refuses(t *testing.T) {
	all := way(t, "04/default")
	for _, object := range all {
		if object.GetKind() != "Namespace" {
			continue
		}
		made := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: object.GetName(), Labels: object.GetLabels()}}
		testenv.Must(t, kube.Create(t.Context(), made))
		// no controller makes it here
		put(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: made.Name, Name: "default"}})
	}
	if err := Check(t.Context(), cfg, all); err != nil {
		t.Errorf("the namespace is as ours, and %v", err)
	}
	loose := way(t, "04/default")
	for _, object := range loose {
		if object.GetKind() == "Deployment" {
			unstructured.RemoveNestedField(object.Object, "spec", "template", "spec", "securityContext")
		}
	}
	says(t, Check(t.Context(), cfg, loose), "the namespace myweb-operator takes no pod of the operator: ",
		`violates PodSecurity "restricted:v1.37"`, "change its policy or quota")
	put(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "myweb-operator", Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{
			{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("32Mi")}}}}})
	eventually(t, func() error {
		err := Check(t.Context(), cfg, all)
		if err == nil {
			return errors.New("the limit did not take effect")
		}
		says(t, err, "takes no pod of the operator: ", "maximum memory usage per Container is 32Mi")
		return nil
	})
}

func crdInUse(t *testing.T) {
	if err := Unused(t.Context(), cfg); err != nil {
		t.Errorf("there is no MyWeb, and %v", err)
	}
	for i := range 7 {
		put(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "operator.k8s-summit.org/v1", "kind": "MyWeb",
			"metadata": map[string]any{"namespace": "default", "name": fmt.Sprintf("site-%d", i)},
			"spec":     map[string]any{"image": "nginx"}}})
	}
	says(t, Unused(t.Context(), cfg),
		"there are 7 MyWebs (default/site-0, default/site-1, default/site-2, default/site-3, default/site-4, and 2 more), "+
			"and their websites go with the CRD: delete them first (kubectl delete web -A --all), or say FORCE=1")
}

func TestAnOldCluster(t *testing.T) {
	for found, want := range map[string]string{
		"v1.37.1": "", "v1.30.0": "", "v1.31.2+k3s1": "", "v1.30.0-eks-1234": "",
		"v1.29.15": "the cluster runs Kubernetes v1.29.15, the operator needs 1.30 or newer", "dev": `its version is "dev"`,
	} {
		if err := newEnough(found); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", found, err)
		}
	}
}

// waiting returns the status of a pod whose program ended before, and is not started now. In a cluster controllers
// report this status; here the test writes it.
func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "operator", Image: "myweb-operator:workshop", RestartCount: 4,
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: reason, Message: message}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}}
}

func TestWaitingSaysWhyItIsInVain(t *testing.T) {
	server(t)
	says(t, Wait(t.Context(), cfg, way(t, "04/default"), &bytes.Buffer{}),
		"the Deployment myweb-operator/myweb-operator is not there: make deploy")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "wait-"}}
	testenv.Must(t, kube.Create(t.Context(), namespace))
	for name, test := range map[string]struct {
		deployment appsv1.DeploymentStatus
		pod        corev1.PodStatus
		want       string
	}{
		"ready": {deployment: appsv1.DeploymentStatus{
			ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1, ReadyReplicas: 1}},
		"the image was not loaded": {pod: waiting("ErrImageNeverPull", ""),
			want: "the image myweb-operator:workshop cannot be had (ErrImageNeverPull): it is not on the node, and " +
				"imagePullPolicy Never forbids to look elsewhere: make image load"},
		"the image cannot be pulled": {pod: waiting("ImagePullBackOff", "no such host"),
			want: "cannot be had (ImagePullBackOff): no such host: push it (make docker-push), check its name"},
		"the image has no name": {pod: waiting("InvalidImageName", ""), want: "IMG must be name:tag"},
		"the program ends": {pod: waiting("CrashLoopBackOff", ""),
			want: "the program ended 4 times, last with code 1: see kubectl -n " + namespace.Name + " logs operator --previous"},
		"no node": {pod: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled,
			Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}},
			want: "not ready in time: no node takes the pod operator: 0/1 nodes are available"},
		"the namespace refuses the pod": {deployment: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota: small"}}},
			want: "takes no pod of the operator: exceeded quota: small: change its policy or quota"},
		"nobody does anything": {want: "not ready in time: 0 of 1 replicas are updated, 0 pods are ready: " +
			"see kubectl -n " + namespace.Name + " describe pods"},
	} {
		t.Run(name, func(t *testing.T) {
			d := rolling(t, namespace.Name, test.deployment, test.pod)
			asked, err := unstructuredOf(d)
			testenv.Must(t, err)
			limit := time.Minute
			if strings.HasPrefix(test.want, "not ready in time") { // it waits in vain
				limit = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var out bytes.Buffer
			err = Wait(ctx, cfg, []*unstructured.Unstructured{asked}, &out)
			if test.want == "" {
				if err != nil || !strings.Contains(out.String(), "is ready: 1 of 1 replicas") {
					t.Errorf("%v\n%s", err, &out)
				}
				return
			}
			says(t, err, test.want)
		})
	}
}

// rolling makes a Deployment and its pod, in the state given.
func rolling(t *testing.T, namespace string, deployment appsv1.DeploymentStatus,
	status corev1.PodStatus) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": "operator"}
	spec := corev1.PodSpec{AutomountServiceAccountToken: new(false), ServiceAccountName: "default",
		Containers: []corev1.Container{{Name: "operator", Image: "myweb-operator:workshop"}}}
	object := metav1.ObjectMeta{Namespace: namespace, Name: "operator", Labels: labels}
	d := &appsv1.Deployment{ObjectMeta: object,
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}
	pod := &corev1.Pod{ObjectMeta: object, Spec: spec}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	put(t, account, d, pod)
	d.Status, pod.Status = deployment, status
	testenv.Must(t, errors.Join(kube.Status().Update(t.Context(), d), kube.Status().Update(t.Context(), pod)))
	return d
}

// unstructuredOf returns the object as it was applied: without status.
func unstructuredOf(d *appsv1.Deployment) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("apps/v1")
	object.SetKind("Deployment")
	return object, kube.Get(context.Background(), client.ObjectKeyFromObject(d), object)
}
