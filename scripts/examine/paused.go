package examine

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/fixture"
	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/proxy"
	"example.com/operator-workshop/scripts/examine/wire"
)

// pausedLeader pauses the leader until the other replica has taken over, deletes a child of which the new leader gets no
// event, and lets the old leader go on: only the old leader can restore the child.
func (t *trial) pausedLeader(both []*operator) (Finding, error) {
	old, leader := both[0], both[1]
	if len(t.writesOf(old, 0)) == 0 {
		old, leader = leader, old
	}
	mark, begin, c := t.Mark(), time.Now(), t.restored
	if err := errors.Join(old.Process().Pause(), t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{})); err != nil {
		return Finding{}, err
	}
	if err := t.Eventually(time.Minute, t.asUndisturbed); err != nil {
		return failed("1 minute after the leader was paused the other replica has not restored %s: %v", c, err), nil
	} else if len(t.writesOf(leader, mark)) == 0 {
		return skipped("%s came back, and the other replica did not write it", c), nil
	}
	if err := t.quiet(time.Second); err != nil && !errors.Is(err, errRestless) {
		return Finding{}, err
	}
	t.Everywhere(proxy.Rule{Name: "freeze", Do: proxy.Freeze(),
		Match: ledger.Match{Users: []string{leader.user.Name}, Verbs: []string{wire.Watch}}})
	mark = t.Mark()
	if err := errors.Join(t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}), old.Process().Resume()); err != nil {
		return Finding{}, err
	}
	paused, resumed := time.Since(begin), time.Now()
	if err := fixture.Pause(t.Ctx, afterPause); err != nil {
		return Finding{}, err
	}
	if len(t.writesOf(old, mark)) > 0 {
		_ = t.Eventually(renewTime, func() error {
			if !old.ended() {
				return errors.New("the old leader runs")
			}
			return nil
		})
	}
	took := time.Since(resumed)
	first, again := t.writesOf(old, mark), t.Mark()
	_ = t.at(c).Delete(t.Ctx, c.Name, metav1.DeleteOptions{}) // it exists only if the old leader has restored it
	if err := fixture.Pause(t.Ctx, afterPause); err != nil {
		return Finding{}, err
	}
	later := t.writesOf(old, again)
	switch what := fmt.Sprintf("paused for %.0f s, the old leader", paused.Seconds()); {
	case len(later) > 0:
		return failed("%s writes beside the new leader, and goes on: %d writes", what, len(first)+len(later)).
			with(append(lines(first), lines(later)...)...), nil
	case len(first) > 0 && old.ended():
		return failed("%s wrote %d times directly after its pause, beside the new leader, and ended %.0f s after its pause", what,
			len(first), took.Seconds()).with(lines(first)...), nil
	case len(first) > 0:
		return failed("%s wrote %d times directly after its pause, beside the new leader", what, len(first)).
			with(lines(first)...), nil
	case old.ended():
		return passed("%s ended without another write", what), nil
	default:
		return passed("%s wrote nothing more", what), nil
	}
}

// afterPause is how long the lab looks for writes after a pause. The leader learns at its next request for the lease that
// it has lost it.
const afterPause = 4 * time.Second

// renewTime is longer than client-go tries to renew a lease that another replica holds (its RenewDeadline is usually
// 10 s). Until then, the work goes on.
const renewTime = 15 * time.Second
