package controller

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	apilabels "k8s.io/apimachinery/pkg/labels"

	proxyv1alpha1 "github.com/example/nginx-operator/api/v1alpha1"
	"github.com/example/nginx-operator/internal/owned"
)

// statusFor returns the status of an Nginx whose live Deployment and running pods are as given. what is the
// obstacle that kept its children from being applied, nil when there was none. A condition's time moves
// only with its status.
func statusFor(nginx *proxyv1alpha1.Nginx, pods *appsv1.Deployment, nodes []string, what *owned.Obstacle, now time.Time) proxyv1alpha1.NginxStatus {
	status := *nginx.Status.DeepCopy()
	status.ObservedGeneration = nginx.Generation
	status.Selector = apilabels.SelectorFromSet(selector(nginx)).String()
	status.ReadyReplicas = pods.Status.ReadyReplicas
	status.Nodes = nodes
	owned.Set(&status.Conditions, nginx.Generation, pods, nginx.Spec.Count, what, now)
	return status
}

// untold returns how long the writing of a status can wait; 0 is not at all. A Deployment that somebody
// touched, if only to annotate it, has a new generation: what that means for the pods its controller says
// a moment later, and until then nothing is told, except that something is wrong, or that other pods run: the
// pods say that themselves.
func untold(old, status proxyv1alpha1.NginxStatus, pods *appsv1.Deployment) time.Duration {
	if old.ObservedGeneration != status.ObservedGeneration || !slices.Equal(old.Nodes, status.Nodes) || meta.IsStatusConditionTrue(status.Conditions, owned.ConditionDegraded) {
		return 0
	}
	return owned.Untouched(pods)
}
