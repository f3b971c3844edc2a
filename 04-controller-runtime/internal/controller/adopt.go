package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/operator-workshop/04-controller-runtime/api/v1"
	"example.com/operator-workshop/04-controller-runtime/internal/hardening"
	"example.com/operator-workshop/04-controller-runtime/internal/myweb"
)

// guardApply returns an error when a child should not be applied, or not yet. For a child that lost its owner
// reference it asks the API server about the MyWeb, as fault/22-orphans-unseen demands: a list, because the role has
// no get.
func (r *Reconciler) guardApply(ctx context.Context, web *webv1.MyWeb, child *myweb.Child,
	differences []hardening.Difference) (*hardening.ApplyGuard, error) {
	guard, err := r.memory.GuardApply(web, child, differences, r.Clock.Now())
	if err != nil {
		return nil, err
	}
	return guard, hardening.CanAdopt(web, child, func() ([]webv1.MyWeb, error) {
		var webs webv1.MyWebList
		err := r.live.List(ctx, &webs, client.InNamespace(web.Namespace),
			client.MatchingFields{"metadata.name": web.Name})
		return webs.Items, err
	})
}
