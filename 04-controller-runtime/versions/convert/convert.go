// Package convert converts MyWebs between their versions. v2 is the hub: each other version is a spoke, and has one
// function to v2 and one from it. With one spoke this saves nothing yet; with three spokes, six functions are enough
// instead of twelve.
package convert

import (
	"context"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	webv2 "example.com/operator-workshop/04-controller-runtime/versions/api/v2"
)

// Description is the annotation in which v1 keeps the description, because v1 has no field for it. So an object that a
// client reads and writes in v1 keeps its description.
const Description = "operator.k8s-summit.org/description"

// ToV2 converts v1 to v2. Like FromV2 it must not fail: if it refuses one stored object, no client can list MyWebs any
// more. The schema reports errors in an object.
func ToV2(_ context.Context, from *webv1.MyWeb, to *webv2.MyWeb) error {
	from = from.DeepCopy() // the caller keeps its maps and pointers
	to.ObjectMeta = from.ObjectMeta
	to.Spec = webv2.MyWebSpec{
		Image:       from.Spec.Image,
		NodePort:    from.Spec.NodePortNumber,
		Description: from.Annotations[Description],
		Replicas:    from.Spec.Replicas,
	}
	if html := from.Spec.PageContentHTML; html != nil {
		to.Spec.Page = &webv2.Page{HTML: *html} // the empty page, too: it is a choice
	}
	delete(to.Annotations, Description)
	to.Status = webv2.MyWebStatus(from.Status) // compiles while the fields are the same
	return nil
}

// FromV2 converts v2 to v1.
func FromV2(_ context.Context, from *webv2.MyWeb, to *webv1.MyWeb) error {
	from = from.DeepCopy()
	to.ObjectMeta = from.ObjectMeta
	to.Spec = webv1.MyWebSpec{
		Image:          from.Spec.Image,
		NodePortNumber: from.Spec.NodePort,
		Replicas:       from.Spec.Replicas,
	}
	if page := from.Spec.Page; page != nil {
		to.Spec.PageContentHTML = &page.HTML
	}
	if from.Spec.Description != "" {
		if to.Annotations == nil {
			to.Annotations = map[string]string{}
		}
		to.Annotations[Description] = from.Spec.Description
	}
	to.Status = webv1.MyWebStatus(from.Status)
	return nil
}
