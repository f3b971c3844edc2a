package webhook

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/distribution/reference"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
)

// portIndex is the name under which the cache finds MyWebs by the node port that they have. The
// controller's own index knows only the ports that were asked for.
const portIndex = "webhook/nodePort"

// indexNodePorts makes the manager's cache find MyWebs by their node port.
func indexNodePorts(mgr ctrl.Manager) error {
	ports := func(obj client.Object) []string {
		if port := nodePort(obj.(*webv1.MyWeb)); port != 0 {
			return []string{strconv.Itoa(int(port))}
		}
		return nil
	}
	return mgr.GetFieldIndexer().IndexField(context.Background(), &webv1.MyWeb{}, portIndex, ports)
}

// nodePort returns the port of a MyWeb: the port that it asks for, else the port that the cluster allocated and that it
// keeps. 0 means none yet.
func nodePort(web *webv1.MyWeb) int32 {
	if web.Spec.NodePortNumber != nil {
		return *web.Spec.NodePortNumber
	}
	return web.Status.NodePort
}

// validator checks fields that depend on other MyWebs, or deserve only a warning.
type validator struct {
	// webs is the manager's cache: an answer costs no request. It has the namespaces that the operator watches.
	webs client.Reader
}

// ValidateCreate implements admission.Validator.
func (v validator) ValidateCreate(ctx context.Context, web *webv1.MyWeb) (admission.Warnings, error) {
	return imageWarnings(web.Spec.Image), v.refuseTakenPort(ctx, web)
}

// ValidateUpdate implements admission.Validator. It checks only what the update changes: two MyWebs that
// collide already must stay editable, and a warning is given once.
func (v validator) ValidateUpdate(ctx context.Context, old, web *webv1.MyWeb) (warnings admission.Warnings, err error) {
	if web.Spec.Image != old.Spec.Image {
		warnings = imageWarnings(web.Spec.Image)
	}
	if nodePort(web) != nodePort(old) {
		err = v.refuseTakenPort(ctx, web)
	}
	return warnings, err
}

// ValidateDelete implements admission.Validator. Deletions are not sent here.
func (validator) ValidateDelete(context.Context, *webv1.MyWeb) (admission.Warnings, error) {
	return nil, nil
}

// refuseTakenPort returns an error that names the other MyWeb when another MyWeb has the node port. The name crosses
// namespaces, because node ports belong to the whole cluster: a user who may not list the other namespace learns that
// this MyWeb exists, like any client that calls the port.
//
// This does not guarantee a free port: two MyWebs that are created at the same moment do not see each other in the
// cache, and both pass. The API server refuses only the second Service, so the operator still needs
// NodePortUnavailable.
func (v validator) refuseTakenPort(ctx context.Context, web *webv1.MyWeb) error {
	port := web.Spec.NodePortNumber
	if port == nil {
		return nil
	}
	webs := &webv1.MyWebList{}
	if err := v.webs.List(ctx, webs, client.MatchingFields{portIndex: strconv.Itoa(int(*port))}); err != nil {
		return apierrors.NewInternalError(fmt.Errorf("list the MyWebs on node port %d: %w", *port, err))
	}
	holder := otherThan(web, webs.Items)
	if holder == nil {
		return nil
	}
	return apierrors.NewInvalid(webv1.SchemeGroupVersion.WithKind("MyWeb").GroupKind(), web.Name, field.ErrorList{
		field.Invalid(field.NewPath("spec", "nodePortNumber"), *port, fmt.Sprintf("MyWeb %s has this port: "+
			"choose another one, or leave the field out and the cluster allocates one", client.ObjectKeyFromObject(holder))),
	})
}

// otherThan returns the first, by namespace and name, of the given MyWebs that is not web; nil when there is none. It
// compares names: the cache may still hold a MyWeb that was deleted and is created anew.
func otherThan(web *webv1.MyWeb, all []webv1.MyWeb) *webv1.MyWeb {
	key := client.ObjectKeyFromObject(web)
	isWeb := func(w webv1.MyWeb) bool { return client.ObjectKeyFromObject(&w) == key }
	others := slices.DeleteFunc(slices.Clone(all), isWeb)
	if len(others) == 0 {
		return nil
	}
	first := slices.MinFunc(others, func(a, b webv1.MyWeb) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return &first
}

// imageWarnings returns warnings about an image that the schema accepts. Clients show about 120 characters of a
// warning, so no warning repeats the image, which may be long.
func imageWarnings(image string) admission.Warnings {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return admission.Warnings{"spec.image is no reference that container runtimes accept: no node can pull it"}
	}
	if _, pinned := named.(reference.Digested); pinned {
		return nil // a tag beside the digest has no effect
	}
	tagged, ok := named.(reference.Tagged)
	switch {
	case !ok:
		return admission.Warnings{"spec.image has neither tag nor digest: each node takes the newest one when it pulls"}
	case tagged.Tag() == "latest":
		return admission.Warnings{"spec.image has the tag latest: each node takes what that is when it pulls"}
	}
	return nil
}
