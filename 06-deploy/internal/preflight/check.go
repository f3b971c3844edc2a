// Package preflight checks the cluster before manifests are applied, and reports afterwards why the operator does not
// start. Every message names the object, the reason and the fix.
package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/operator-workshop/06-deploy/internal/manifests"
)

const (
	// oldest is the first version of Kubernetes that has all that the manifests ask for.
	oldest    = "1.30"
	nameLabel = "app.kubernetes.io/name"
	byLabel   = "app.kubernetes.io/managed-by"
)

var myWeb = schema.GroupVersionKind{Group: "operator.k8s-summit.org", Version: "v1", Kind: "MyWeb"}

// Check returns all problems that prevent manifests from being applied, so that a user does not find them one by one.
// It changes nothing.
func Check(ctx context.Context, cfg *rest.Config, all []*unstructured.Unstructured) error {
	d, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return err
	}
	found, err := d.ServerVersionWithContext(ctx)
	if err != nil {
		return fmt.Errorf("the API server %s does not answer: %w: is it the right cluster (kubectl config "+
			"current-context), and does it run?", cfg.Host, err)
	}
	if err := newEnough(found.GitVersion); err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("use the API server %s: %w", cfg.Host, err)
	}
	if err := kinds(c, all); err != nil {
		return err
	}
	var wrong []error
	for _, look := range []func(context.Context, client.Client, []*unstructured.Unstructured) error{
		namespaces, permissions, taken, refused, pods} {
		wrong = append(wrong, look(ctx, c, all))
	}
	return errors.Join(wrong...)
}

// newEnough returns an error when a version of Kubernetes is too old.
func newEnough(found string) error {
	v, err := version.ParseGeneric(found)
	if err != nil {
		return fmt.Errorf("the API server says that its version is %q: %w", found, err)
	}
	if v.LessThan(version.MustParseGeneric(oldest)) {
		return fmt.Errorf("the cluster runs Kubernetes %s, the operator needs %s or newer (for conditions of webhooks and "+
			"pauses before the end of a pod): upgrade the cluster", found, oldest)
	}
	return nil
}

// kinds returns an error for each kind that the cluster does not have, and for MyWebs, without which the
// operator does not start.
func kinds(c client.Client, all []*unstructured.Unstructured) error {
	var wrong []error
	for _, object := range all {
		kind := object.GroupVersionKind()
		_, err := c.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		switch {
		case err == nil:
		case !meta.IsNoMatchError(err):
			return fmt.Errorf("ask the API server for %s: %w", kind.Kind, err)
		case kind.Group == "monitoring.coreos.com":
			wrong = append(wrong, fmt.Errorf(
				"the cluster has no %s: install the Prometheus operator, or deploy without monitoring (another CONFIG)", kind.Kind))
		default:
			wrong = append(wrong,
				fmt.Errorf("the cluster has no %s in %s: install what brings that kind", kind.Kind, kind.GroupVersion()))
		}
	}
	_, err := c.RESTMapper().RESTMapping(myWeb.GroupKind(), myWeb.Version)
	brought := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool {
		return o.GetName() == "mywebs."+myWeb.Group
	})
	if meta.IsNoMatchError(err) && !brought {
		wrong = append(wrong, errors.New("the cluster does not know MyWebs, so the operator would not start: make install"))
	}
	return errors.Join(wrong...)
}

// namespaces returns an error for each namespace of an object that neither exists nor is in the manifests.
func namespaces(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	var wrong []error
	for _, name := range where(all) {
		made := slices.ContainsFunc(all, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == "Namespace" && o.GetName() == name
		})
		there, err := exists(ctx, c, name)
		if err != nil {
			return err
		}
		if !made && !there {
			wrong = append(wrong,
				fmt.Errorf("the namespace %s is not there: kubectl create namespace %s, or name another one", name, name))
		}
	}
	return errors.Join(wrong...)
}

// where are the namespaces of the objects.
func where(all []*unstructured.Unstructured) (names []string) {
	for _, object := range all {
		if name := object.GetNamespace(); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func exists(ctx context.Context, c client.Client, namespace string) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if apierrors.IsForbidden(err) {
		return true, nil // a user who may not read namespaces may still have one
	}
	return err == nil, client.IgnoreNotFound(err)
}

// permissions returns an error that names all objects that the user may not create.
func permissions(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	var missing []string
	wide := false
	for _, object := range all {
		mapping, err := c.RESTMapper().RESTMapping(object.GroupVersionKind().GroupKind(), object.GroupVersionKind().Version)
		if err != nil {
			return err
		}
		for _, verb := range []string{"create", "patch"} {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: verb, Group: mapping.Resource.Group, Resource: mapping.Resource.Resource, Namespace: object.GetNamespace(),
					Name: object.GetName()}}}
			if err := c.Create(ctx, review); err != nil {
				return fmt.Errorf("ask what you may do: %w", err)
			}
			if review.Status.Allowed {
				continue
			}
			what := verb + " " + mapping.Resource.GroupResource().String()
			if object.GetNamespace() != "" {
				what += " in " + object.GetNamespace()
			} else {
				wide = true
			}
			missing = append(missing, what)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	fix := "ask for these permissions"
	if wide {
		fix = "an operator is installed cluster-wide, so ask who administers the cluster to do it; to use MyWebs " +
			"afterwards the role edit in your namespace is enough"
	}
	return fmt.Errorf("you may not %s: %s", strings.Join(slices.Compact(missing), ", "), fix)
}

// taken returns an error for each name that another object already has.
func taken(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	var wrong []error
	for _, object := range all {
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(object.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKeyFromObject(object), there)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // permissions reports the latter
			continue
		}
		if err != nil {
			return fmt.Errorf("look for %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		what := fmt.Sprintf("%s %s", object.GetKind(), client.ObjectKeyFromObject(object))
		what = strings.Replace(what, " /", " ", 1)
		switch by := there.GetLabels()[byLabel]; {
		case there.GetLabels()[nameLabel] != object.GetLabels()[nameLabel]:
			wrong = append(wrong, fmt.Errorf("%s is there and is not this operator's (it lacks the label %s=%s): remove it, "+
				"or label it so to let it be taken over",
				what, nameLabel, object.GetLabels()[nameLabel]))
		case by != "" && by != object.GetLabels()[byLabel]:
			wrong = append(wrong,
				fmt.Errorf("%s was installed by %s: go on with %s, or uninstall it with %s first", what, by, by, by))
		}
	}
	return errors.Join(wrong...)
}

// refused sends each object to the API server as a dry run, and returns the errors. That is not possible for objects in
// a namespace that does not exist yet.
func refused(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	var wrong []error
	for _, object := range all {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object.DeepCopy()), client.DryRunAll,
			client.FieldOwner("preflight"), client.ForceOwnership)
		if err == nil || apierrors.IsNotFound(err) || missing(err) {
			continue
		}
		wrong = append(wrong, fmt.Errorf("the API server refuses %s %s: %w", object.GetKind(), object.GetName(), err))
	}
	return errors.Join(wrong...)
}

// missing reports whether an error is about a permission on the object itself: permissions reports it.
func missing(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot patch resource ")
}

// pods returns an error when an existing namespace would refuse the operator's pod.
func pods(ctx context.Context, c client.Client, all []*unstructured.Unstructured) error {
	deployments, err := manifests.Only[appsv1.Deployment](all, "Deployment")
	if err != nil {
		return err
	}
	var wrong []error
	for _, d := range deployments {
		if there, err := exists(ctx, c, d.Namespace); err != nil || !there {
			return err
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, GenerateName: "preflight-", Labels: d.Spec.Template.Labels}, Spec: d.Spec.Template.Spec}
		pod.Spec.ServiceAccountName, pod.Spec.PriorityClassName = "default", "" // the operator's own may not exist yet
		err := c.Create(ctx, pod, client.DryRunAll)
		if err != nil && !strings.Contains(err.Error(), "serviceaccount") && !missingCreate(err) {
			wrong = append(wrong, fmt.Errorf("the namespace %s takes no pod of the operator: %w: change its policy or quota, "+
				"or deploy elsewhere", d.Namespace, err))
		}
	}
	return errors.Join(wrong...)
}

// missingCreate reports whether the error is that the user may not create pods. No user needs to, because controllers
// create them.
func missingCreate(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), " cannot create resource ")
}
