package operator

import (
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Demanded by TestAMyWebInTheCache: a Deployment is the largest child, and most Deployments of an operator are alike.
// Objects of a cache are never changed, because readers get copies. So several of them may share a part.

// alike is the part of a pod that is equal for all MyWebs with the same image.
type alike struct {
	Containers []corev1.Container
	Security   *corev1.PodSecurityContext
}

// known has the alike of each image.
var known sync.Map

// share replaces parts of a Deployment by equal ones that are in memory already.
func share(d *appsv1.Deployment) {
	template := &d.Spec.Template
	if maps.Equal(d.Labels, template.Labels) {
		template.Labels = d.Labels
	}
	if len(template.Spec.Containers) == 0 {
		return
	}
	image, own := template.Spec.Containers[0].Image, alike{template.Spec.Containers, template.Spec.SecurityContext}
	if seen, ok := known.Load(image); !ok || !equality.Semantic.DeepEqual(seen, own) {
		known.Store(image, own)
	} else {
		template.Spec.Containers, template.Spec.SecurityContext = seen.(alike).Containers, seen.(alike).Security
	}
}
