package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"example.com/operator-workshop/03-client-go-controller/internal/hardening"
	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	webv1 "example.com/operator-workshop/03-client-go-controller/pkg/apis/myweb/v1"
)

// guardApply returns an error when a child should not be applied, or not yet. For a child that lost its owner
// reference it asks the API server about the MyWeb, as fault/22-orphans-unseen demands: a list, because the role has
// no get.
func (c *Controller) guardApply(
	ctx context.Context, web *webv1.MyWeb, child *myweb.Child, differences []hardening.Difference,
) (*hardening.ApplyGuard, error) {
	guard, err := c.memory.GuardApply(web, child, differences, c.clock.Now())
	if err != nil {
		return nil, err
	}
	return guard, hardening.CanAdopt(web, child, func() ([]webv1.MyWeb, error) {
		webs, err := c.web.OperatorV1().MyWebs(web.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, web.Name).String()})
		if err != nil {
			return nil, fmt.Errorf("list MyWeb %s: %w", nameOf(web), err)
		}
		return webs.Items, nil
	})
}
