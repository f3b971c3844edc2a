package main

import (
	"context"
	"errors"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// publish applies the IngressClass of a Greeting, and an IngressClass that all Greetings share. Neither has a
// namespace.
func (r *reconciler) publish(ctx context.Context, name cache.ObjectName) error {
	if r.fault != publishes && r.fault != withdraws || r.begun[name] {
		return nil
	}
	spec := map[string]any{"controller": "example.com/testoperator"}
	if err := r.applyClass(ctx, "shared", spec); err != nil {
		return err
	}
	spec["parameters"] = map[string]any{"apiGroup": greetings.Group, "kind": "Greeting", "name": name.Name,
		"scope": "Namespace", "namespace": name.Namespace}
	return r.applyClass(ctx, r.className(name), spec)
}

func (r *reconciler) applyClass(ctx context.Context, name string, spec map[string]any) error {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(classes.GroupVersion().WithKind("IngressClass"))
	u.SetName(name)
	_, err := r.client.Resource(classes).Apply(ctx, name, u, metav1.ApplyOptions{FieldManager: "testoperator", Force: true})
	return err
}

func (r *reconciler) className(name cache.ObjectName) string {
	if r.fault == withdraws {
		return name.Namespace + "-" + name.Name
	}
	return name.Name
}

// withdraw deletes the IngressClass of a Greeting that is gone.
func (r *reconciler) withdraw(ctx context.Context, name cache.ObjectName) error {
	if r.fault != withdraws || name.Namespace == "" {
		return nil
	}
	err := r.client.Resource(classes).Delete(ctx, r.className(name), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// sweep deletes the children of a Greeting that is being deleted.
func (r *reconciler) sweep(ctx context.Context, greeting *unstructured.Unstructured) (errs error) {
	if r.fault != sweeps && r.fault != sweepsOwn || greeting == nil {
		return nil
	}
	for _, gvr := range children {
		options := metav1.DeleteOptions{}
		if r.fault == sweepsOwn {
			have, err := r.get(gvr, cache.MetaObjectToName(greeting))
			if err != nil || !metav1.IsControlledBy(have, greeting) {
				continue
			}
			options.Preconditions = metav1.NewUIDPreconditions(string(have.GetUID()))
		}
		err := r.client.Resource(gvr).Namespace(greeting.GetNamespace()).Delete(ctx, greeting.GetName(), options)
		if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// ask looks up the Service of a Greeting, which only a cluster knows by its name.
func ask(ctx context.Context, name cache.ObjectName) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := net.DefaultResolver.LookupHost(ctx, name.Name+"."+name.Namespace+".svc")
	return err
}
