package myweb

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apilabels "k8s.io/apimachinery/pkg/labels"

	webv1 "example.com/operator-workshop/06-deploy/scale/api/v1"
	"example.com/operator-workshop/06-deploy/scale/internal/owned"
)

// StatusFor returns the status of a MyWeb with the given children, which are empty when they are missing.
// blocked is the error that keeps them from their desired state, nil when there is none.
func StatusFor(web *webv1.MyWeb, deployment *appsv1.Deployment, service *corev1.Service,
	blocked *owned.ConditionError, now time.Time) webv1.MyWebStatus {
	status := *web.Status.DeepCopy()
	status.ObservedGeneration = web.Generation
	status.Selector = apilabels.SelectorFromSet(selector(web)).String()
	status.ReadyReplicas = deployment.Status.ReadyReplicas
	status.NodePort = 0
	for _, port := range service.Spec.Ports {
		if port.Name == "http" {
			status.NodePort = port.NodePort
		}
	}
	status.Completed = owned.SetConditions(&status.Conditions, web.Generation, deployment, replicas(web), blocked, now)
	return status
}
