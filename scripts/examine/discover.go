package examine

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"example.com/operator-workshop/scripts/examine/ledger"
)

// A child is an object that the operator writes for the sample.
type child struct {
	GVR     schema.GroupVersionResource
	Name    string
	Cluster bool // it has no namespace
	// Namespace is empty for the namespace of the trial.
	Namespace string
}

func (c child) String() string {
	if c.Namespace != "" {
		return c.GVR.GroupResource().String() + "/" + c.Namespace + "/" + c.Name
	}
	return c.GVR.GroupResource().String() + "/" + c.Name
}

// discoverChildren finds the objects that the operator owns: the existing objects that it wrote, and all objects with
// an owner reference to the sample, by any writer. It leaves out objects that the operator only marked, and that have
// another controller, such as the pods of a workload: that controller restores them.
func (t *trial) discoverChildren() (children []child, err error) {
	changes := t.Changes(0)
	candidates := t.childrenOf(changes)
	created := t.childrenOf(slices.DeleteFunc(slices.Clone(changes), func(e ledger.Entry) bool {
		return !slices.Contains(e.Served, http.StatusCreated)
	}))
	owned, err := t.ownedNow()
	if err != nil {
		return nil, err
	}
	for _, c := range append(candidates, owned...) {
		if slices.Contains(children, c) {
			continue
		}
		u, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		if metav1.GetControllerOf(u) != nil && !slices.Contains(created, c) && !slices.Contains(owned, c) {
			continue
		}
		children = append(children, c)
	}
	slices.SortFunc(children, func(a, b child) int { return cmp.Compare(a.String(), b.String()) })
	return children, nil
}

// childrenOf are the objects of writes, except the sample. With a sample that has no namespace, each child has its own
// namespace.
func (t *trial) childrenOf(changes []ledger.Entry) (all []child) {
	own := t.own()
	return slices.DeleteFunc(childrenOf(changes, t.here()), func(c child) bool {
		return ledgerName(c) == ledgerName(own) && c.Name == own.Name && c.Namespace == "" // in any version
	})
}

// childrenOf are the objects of writes. An object outside a namespace has its own.
func childrenOf(changes []ledger.Entry, namespace string) (all []child) {
	for _, e := range changes {
		gvr := schema.GroupVersionResource{Group: e.Group, Version: e.Version, Resource: e.Resource}
		ofNamespace := gvr.GroupResource() == schema.GroupResource{Resource: "namespaces"} // named in its path
		c := child{GVR: gvr, Name: e.Name, Cluster: e.Namespace == "" || ofNamespace}
		if e.Namespace != namespace && !ofNamespace {
			c.Namespace = e.Namespace
		}
		if e.Name != "" && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// made are the existing objects that the operator created in the trial.
func (t *trial) made() (all []child, err error) {
	for _, c := range t.childrenOf(created(t.Changes(0))) {
		switch _, err := t.at(c).Get(t.Ctx, c.Name, metav1.GetOptions{}); {
		case err == nil:
			all = append(all, c)
		case !apierrors.IsNotFound(err):
			return nil, err
		}
	}
	return all, nil
}

// ownedNow are the objects that the sample owns at this moment.
func (t *trial) ownedNow() ([]child, error) {
	owner, err := t.sample()
	if err != nil {
		return nil, err
	}
	return t.owned(t.Ctx, owner.GetUID())
}

// owned are the namespaced objects in reach with an owner reference to the sample.
//
// The cluster's own controllers also make objects for a sample of a built-in kind: there only those count that the
// operator wrote.
func (t *trial) owned(ctx context.Context, owner types.UID) (all []child, err error) {
	written := t.childrenOf(t.Changes(0))
	lists, err := discovery.ServerPreferredNamespacedResources(t.fixture.Kube.Discovery())
	if err != nil {
		return nil, err
	}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "delete") || r.Name == "events" {
				continue
			}
			gvr := gv.WithResource(r.Name)
			items, err := t.fixture.Dynamic.Resource(gvr).Namespace(t.scope()).List(ctx, metav1.ListOptions{})
			if err != nil {
				continue // a resource that cannot be listed now has no children to show
			}
			for _, u := range items.Items {
				if slices.ContainsFunc(u.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }) {
					c := child{GVR: gvr, Name: u.GetName()}
					if u.GetNamespace() != t.here() {
						c.Namespace = u.GetNamespace()
					}
					if !t.target.builtIn || slices.Contains(written, c) {
						all = append(all, c)
					}
				}
			}
		}
	}
	return all, nil
}
