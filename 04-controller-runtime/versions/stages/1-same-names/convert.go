// Package convert converts MyWebs between their versions: fields with the same name are copied, all other fields are
// lost. The API server does the same without a webhook.
package convert

import (
	"context"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
)

// Description is the annotation in which v1 may keep the description.
const Description = "operator.k8s-summit.org/description"

// ToV2 converts v1 to v2. It must not fail, and must leave from as it is.
func ToV2(_ context.Context, from *webv1.MyWeb, to *webv2.MyWeb) error {
	from = from.DeepCopy()
	to.ObjectMeta = from.ObjectMeta
	to.Spec = webv2.MyWebSpec{
		Image:    from.Spec.Image,
		Replicas: from.Spec.Replicas,
	}
	to.Status = webv2.MyWebStatus(from.Status)
	return nil
}

// FromV2 converts v2 to v1. It must not fail, and must leave from as it is.
func FromV2(_ context.Context, from *webv2.MyWeb, to *webv1.MyWeb) error {
	from = from.DeepCopy()
	to.ObjectMeta = from.ObjectMeta
	to.Spec = webv1.MyWebSpec{
		Image:    from.Spec.Image,
		Replicas: from.Spec.Replicas,
	}
	to.Status = webv1.MyWebStatus(from.Status)
	return nil
}
