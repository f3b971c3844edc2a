package hardening

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"example.com/operator-workshop/04-controller-runtime/internal/fields"
	"example.com/operator-workshop/04-controller-runtime/internal/owned"
)

// Demanded by fault/21-autoscaler: an autoscaler of the Deployment and the operator set the replicas in turn, and each
// change starts or ends pods. The limit of drift slows the operator down, and the status reports the other client.

// ReasonFieldConflict is the reason of Degraded while another client sets a field of a child, or deletes it, again and again.
const ReasonFieldConflict = "FieldConflict"

// reportFight is how long a fight is still reported after the last correction: two periods of a HorizontalPodAutoscaler.
const reportFight = 30 * time.Second

// fight reports a fight over a child whose correction has to wait.
func (a hardenedApplier) fight(ctx context.Context, c *comparison, wait time.Duration) error {
	d := a.of(*c.owner.UID).drift[c.Kind]
	if d.fight == nil || d.named < d.corrections { // one request for each correction
		problem, err := a.opponent(ctx, c)
		if err != nil {
			return err
		}
		d.named, d.fight = d.corrections, problem
	}
	d.fight.RetryAfter = wait
	return d.fight
}

// opponent describes what another client does to a child, and how a user ends the fight.
func (a hardenedApplier) opponent(ctx context.Context, c *comparison) (*owned.ConditionError, error) {
	kind := a.Kind.Kind
	if len(c.diff) == 0 { // there is no live child
		return owned.Errorf(ReasonFieldConflict, "%s: another client deletes it again and again, and this %s creates it "+
			"again: stop that client", c, kind), nil
	}
	manager, err := a.manager(ctx, c)
	if err != nil {
		return nil, err
	}
	path := c.diff[0].Path.String()
	advice := fmt.Sprintf("stop that client, or change the %s", kind)
	if path == "spec.replicas" {
		advice = fmt.Sprintf("an autoscaler belongs on the scale of the %s: its scaleTargetRef must name %s %s",
			kind, kind, *c.owner.Name)
	}
	return owned.Errorf(ReasonFieldConflict, "%s: %s sets %s again and again, and so does this %s: %s",
		c, manager, path, kind, advice), nil
}

// fightOver returns nil when a child that is up to date is not fought over, or not any more.
func (a hardenedApplier) fightOver(c *comparison) error {
	now := a.Clock.Now()
	d := a.of(*c.owner.UID).driftOf(c.Kind, now)
	if d.fight == nil {
		return nil
	}
	if d.fight.RetryAfter = d.last.Add(reportFight).Sub(now); d.fight.RetryAfter <= 0 {
		d.fight = nil
		return nil
	}
	return d.fight
}

// manager names the other client that was the last to set the first differing field of a child. The cache has no managed
// fields, so manager asks the API server, as mayAdopt does.
func (a hardenedApplier) manager(ctx context.Context, c *comparison) (string, error) {
	kind, err := a.Client.GroupVersionKindFor(c.Live)
	if err != nil {
		return "", err
	}
	live, err := a.list(ctx, kind, c.Live.GetNamespace(), c.Live.GetName())
	if err != nil {
		return "", err
	}
	name := "another client"
	for _, object := range live {
		for _, entry := range object.ManagedFields { // the oldest first; an entry of a scale has no time
			var tree map[string]any
			if entry.Manager == string(a.FieldOwner) || entry.FieldsV1 == nil ||
				json.Unmarshal(entry.FieldsV1.GetRawBytes(), &tree) != nil || !manages(tree, c.diff[0].Path) {
				continue
			}
			if name = entry.Manager; entry.Subresource != "" {
				name += " (by the subresource " + entry.Subresource + ")"
			}
		}
	}
	return name, nil
}

// manages reports whether a tree of managed fields has a field, or a whole of which it is a part. An element of a list
// can have other keys in the tree than in the path, so any element counts.
func manages(tree map[string]any, path fields.Path) bool {
	if len(path) == 0 || len(tree) == 0 {
		return true
	}
	for key, inner := range tree {
		isElement := strings.HasPrefix(path[0], "[") && strings.HasPrefix(key, "k:")
		inner, _ := inner.(map[string]any)
		if (isElement || key == "f:"+path[0]) && manages(inner, path[1:]) {
			return true
		}
	}
	return false
}
