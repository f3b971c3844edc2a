package suite

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reported returns the MyWeb when it is Degraded for a reason, for its newest generation, and not completed. It fails
// the check unless the message has some words.
func (t *T) Reported(name, reason string, within time.Duration, words ...string) *Web {
	web := t.Await(name, "is Degraded by "+reason, within, func(w *Web) bool {
		return w.Degraded(reason) && !w.Status.Completed
	})
	t.Says(web, words...)
	return web
}

// Says fails the check unless the message of Degraded has some words.
func (t *T) Says(web *Web, words ...string) {
	message := web.Condition("Degraded").Message
	for _, word := range words {
		if !strings.Contains(message, word) {
			t.Errorf("the message of %s does not say %q: %q", web.Name, word, message)
		}
	}
}

// Recovered fails the check unless Degraded is False.
func (t *T) Recovered(web *Web) {
	if c := web.Condition("Degraded"); c.Status != metav1.ConditionFalse {
		t.Errorf("expected that %s is no longer Degraded; but Degraded is %s: %s: %s", web.Name, c.Status,
			c.Reason, c.Message)
	}
}
