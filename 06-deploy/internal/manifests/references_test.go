package manifests_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/operator-workshop/06-deploy/internal/testenv"
)

// identity are the labels that selectors use. Selectors are immutable, so these labels have no value that changes.
var identity = map[string]string{
	"app.kubernetes.io/name": "myweb-operator", "app.kubernetes.io/instance": "myweb-operator"}

func TestBindingsAreOfRolesAndAccountsThatThereAre(t *testing.T) {
	for way, all := range ways(t) {
		check := func(binding, namespace string, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
			at := namespace
			if role.Kind == "ClusterRole" {
				at = ""
			}
			if !exists(all, role.Kind, at, role.Name) {
				t.Errorf("%s: %s is for %s %s, which is not there", way, binding, role.Kind, role.Name)
			}
			for _, s := range subjects {
				if !exists(all, s.Kind, s.Namespace, s.Name) {
					t.Errorf("%s: %s is for %s %s/%s, who is not there", way, binding, s.Kind, s.Namespace, s.Name)
				}
			}
		}
		for _, b := range only[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding") {
			check("ClusterRoleBinding "+b.Name, "", b.RoleRef, b.Subjects)
		}
		for _, b := range only[rbacv1.RoleBinding](t, all, "RoleBinding") {
			check("RoleBinding "+b.Name, b.Namespace, b.RoleRef, b.Subjects)
		}
		if account := operator(t, all).Spec.Template.Spec.ServiceAccountName; !exists(all, "ServiceAccount",
			"myweb-operator", account) {
			t.Errorf("%s: the pods run as %s, who is not there", way, account)
		}
	}
}

// grants returns which subject has which role in which namespace.
func grants(t *testing.T, all []*unstructured.Unstructured) (found []string) {
	t.Helper()
	for _, b := range only[rbacv1.ClusterRoleBinding](t, all, "ClusterRoleBinding") {
		found = append(found, fmt.Sprintf("%s has %s everywhere", b.Subjects[0].Name, b.RoleRef.Name))
	}
	for _, b := range only[rbacv1.RoleBinding](t, all, "RoleBinding") {
		found = append(found, fmt.Sprintf("%s has %s in %s", b.Subjects[0].Name, b.RoleRef.Name, b.Namespace))
	}
	slices.Sort(found)
	return found
}

func TestEachWayGrantsWhatItNeedsAndNoMore(t *testing.T) {
	const lease = "myweb-operator has myweb-operator-leader-election in myweb-operator"
	const work = "myweb-operator has myweb-operator everywhere"
	webhooks := []string{"myweb-operator has myweb-operator-webhooks everywhere",
		"myweb-operator has myweb-operator-webhooks in myweb-operator"}
	monitoring := []string{"myweb-operator has myweb-operator-metrics-auth everywhere",
		"myweb-operator-scraper has myweb-operator-metrics-reader everywhere"}
	more := map[string][]string{"webhooks": webhooks, "monitoring": monitoring,
		"production": slices.Concat(webhooks, monitoring), "kind-production": slices.Concat(webhooks, monitoring)}
	for way, all := range ways(t) {
		_, name, _ := strings.Cut(way, "/")
		want := append([]string{lease, work}, more[name]...)
		if name == "namespaced" {
			want = []string{lease, "myweb-operator has myweb-operator in websites"}
			if served, _ := argument(t, all, "namespaces"); served != "websites" {
				t.Errorf("%s: the operator serves %q", way, served)
			}
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, grants(t, all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", way, diff)
		}
		for _, role := range only[rbacv1.ClusterRole](t, all, "ClusterRole") {
			for _, rule := range role.Rules {
				words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
				if slices.Contains(words, "*") || slices.Contains(rule.Resources, "secrets") ||
					slices.Contains(rule.Verbs, "escalate") {
					t.Errorf("%s: ClusterRole %s grants too much: %v", way, role.Name, rule)
				}
			}
		}
	}
}

func TestSelectorsFindTheOperatorsPods(t *testing.T) {
	for way, all := range ways(t) {
		pod := operator(t, all).Spec.Template
		for name, value := range identity {
			if pod.Labels[name] != value {
				t.Errorf("%s: the pods have no label %s=%s", way, name, value)
			}
		}
		selectors := map[string]map[string]string{"Deployment": operator(t, all).Spec.Selector.MatchLabels}
		for _, s := range only[corev1.Service](t, all, "Service") {
			selectors["Service "+s.Name] = s.Spec.Selector
		}
		for _, p := range only[networkingv1.NetworkPolicy](t, all, "NetworkPolicy") {
			selectors["NetworkPolicy "+p.Name] = p.Spec.PodSelector.MatchLabels
		}
		for _, p := range only[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget") {
			selectors["PodDisruptionBudget "+p.Name] = p.Spec.Selector.MatchLabels
		}
		for _, c := range pod.Spec.TopologySpreadConstraints {
			selectors["topology "+c.TopologyKey] = c.LabelSelector.MatchLabels
		}
		for who, selector := range selectors {
			if diff := cmp.Diff(identity, selector); diff != "" {
				t.Errorf("%s: %s selects by (-want +got):\n%s", way, who, diff)
			}
		}
	}
}

// When a Service, probe or policy names a port of the pods, the pods have this port, and the program listens on it.
func TestPortsAreWhereTheyAreLookedFor(t *testing.T) {
	for way, all := range ways(t) {
		c := container(t, all)
		ports := map[string]int32{}
		for _, p := range c.Ports {
			ports[p.Name] = p.ContainerPort
		}
		looked := map[string]intstr.IntOrString{"startup": c.StartupProbe.HTTPGet.Port,
			"liveness": c.LivenessProbe.HTTPGet.Port, "readiness": c.ReadinessProbe.HTTPGet.Port}
		for _, s := range only[corev1.Service](t, all, "Service") {
			for _, p := range s.Spec.Ports {
				looked["Service "+s.Name] = p.TargetPort
			}
		}
		for _, policy := range only[networkingv1.NetworkPolicy](t, all, "NetworkPolicy") {
			for _, rule := range policy.Spec.Ingress {
				for _, p := range rule.Ports {
					looked["NetworkPolicy "+policy.Name] = *p.Port
				}
			}
		}
		for who, port := range looked {
			if _, ok := ports[port.StrVal]; !ok {
				t.Errorf("%s: %s looks for the port %s, the pods have %v", way, who, port.String(), slices.Sorted(maps.Keys(ports)))
			}
		}
		listens := map[string]int32{}
		for flag, name := range map[string]string{"health-probe-bind-address": "probes", "metrics-bind-address": "metrics"} {
			if address, given := argument(t, all, flag); given {
				_, port, err := net.SplitHostPort(address)
				testenv.Must(t, err)
				n, err := strconv.Atoi(port)
				testenv.Must(t, err)
				listens[name] = int32(n)
			}
		}
		if value, _ := argument(t, all, "webhooks"); strings.HasPrefix(way, "04") && value != "false" {
			listens["webhooks"] = 9443 // the default of --webhook-port
		}
		if diff := cmp.Diff(listens, ports); diff != "" {
			t.Errorf("%s: ports (-program +pod):\n%s", way, diff)
		}
	}
}

func TestWebhooksAndMonitorsNameServicesThatThereAre(t *testing.T) {
	for way, all := range ways(t) {
		services := map[string]corev1.Service{}
		for _, s := range only[corev1.Service](t, all, "Service") {
			services[s.Namespace+"/"+s.Name] = s
		}
		called := []*admissionv1.ServiceReference{}
		for _, c := range only[admissionv1.ValidatingWebhookConfiguration](t, all, "ValidatingWebhookConfiguration") {
			called = append(called, c.Webhooks[0].ClientConfig.Service)
		}
		for _, c := range only[admissionv1.MutatingWebhookConfiguration](t, all, "MutatingWebhookConfiguration") {
			called = append(called, c.Webhooks[0].ClientConfig.Service)
		}
		for _, r := range called {
			if s, ok := services[r.Namespace+"/"+r.Name]; !ok || s.Spec.Ports[0].Port != 443 {
				t.Errorf("%s: webhooks call %s/%s on 443, which is not there", way, r.Namespace, r.Name)
			}
		}
		for _, m := range only[monitoringv1.ServiceMonitor](t, all, "ServiceMonitor") {
			found := false
			for _, s := range services {
				if metav1.FormatLabelSelector(&m.Spec.Selector) == metav1.FormatLabelSelector(&metav1.LabelSelector{
					MatchLabels: map[string]string{"operator.k8s-summit.org/metrics": s.Labels["operator.k8s-summit.org/metrics"]}}) {
					found = s.Spec.Ports[0].Name == m.Spec.Endpoints[0].Port && s.Name == "myweb-operator-metrics" // the job of alerts
				}
			}
			token := m.Spec.Endpoints[0].Authorization.Credentials.Name
			if !found || !exists(all, "Secret", "myweb-operator", token) {
				t.Errorf("%s: the monitor finds its Service: %v; its token is in %s", way, found, token)
			}
		}
	}
}

// Kubernetes kills a pod that is not gone in time. The lease would then not be released, and the next leader
// would wait 15 s for it to run out.
func TestThePodGetsTheTimeThatTheProgramTakes(t *testing.T) {
	const needs = 10 * time.Second // both programs end within it: the processes' tests of 03 and 04 say so
	for _, file := range []string{
		"03-client-go-controller/internal/controller/controller.go", "04-controller-runtime/internal/operator/operator.go"} {
		source, err := os.ReadFile("../../../" + file)
		if errors.Is(err, os.ErrNotExist) {
			continue // this folder stands alone
		}
		testenv.Must(t, err)
		match := regexp.MustCompile(`(?:drain|inFlight)Timeout = (\d+) \* time\.Second`).FindSubmatch(source)
		if match == nil {
			t.Fatalf("%s does not say how long the program drains", file)
		}
		if drain, err := strconv.Atoi(string(match[1])); err != nil || time.Duration(drain)*time.Second >= needs {
			t.Errorf("%s: the program drains for %d s, so it needs more than %s", file, drain, needs)
		}
	}
	for way, all := range ways(t) {
		got, before := *operator(t, all).Spec.Template.Spec.TerminationGracePeriodSeconds, int64(0)
		if hook := container(t, all).Lifecycle; hook != nil {
			before = hook.PreStop.Sleep.Seconds
		}
		if want := int64(needs.Seconds()) + before; got < want || got > want+5 {
			t.Errorf("%s: the pod gets %d s, it needs %d s: %d s of them before the program gets its signal", way,
				got, want, before)
		}
	}
}

func TestEveryObjectSaysWhoseItIs(t *testing.T) {
	for way, all := range ways(t) {
		for _, object := range all {
			for _, name := range []string{"name", "instance", "component", "part-of", "managed-by"} {
				if object.GetLabels()["app.kubernetes.io/"+name] == "" {
					t.Errorf("%s: %s %s has no label app.kubernetes.io/%s", way, object.GetKind(), object.GetName(), name)
				}
			}
		}
	}
}

func TestPodsAskForWhatTheyNeed(t *testing.T) {
	for way, all := range ways(t) {
		c, d := container(t, all), operator(t, all)
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() ||
			c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: the container requests %v and is limited to %v", way, c.Resources.Requests, c.Resources.Limits)
		}
		want := corev1.PullIfNotPresent
		if strings.Contains(way, "kind") {
			want = corev1.PullNever
		}
		if c.ImagePullPolicy != want {
			t.Errorf("%s: the image is pulled %s, want %s", way, c.ImagePullPolicy, want)
		}
		available := strings.Contains(way, "high-availability") || strings.Contains(way, "production")
		budget := exists(all, "PodDisruptionBudget", "myweb-operator", "myweb-operator")
		class := d.Spec.Template.Spec.PriorityClassName
		if available != budget || available != (*d.Spec.Replicas == 2) ||
			available != (len(d.Spec.Template.Spec.TopologySpreadConstraints) == 2) ||
			available != (class != "" && exists(all, "PriorityClass", "", class)) {
			t.Errorf("%s: %d replicas, a budget: %v, priority %q", way, *d.Spec.Replicas, budget, class)
		}
	}
}
