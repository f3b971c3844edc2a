package controller

import (
	"errors"
	"fmt"
	"testing"

	"example.com/operator-workshop/03-client-go-controller/internal/myweb"
	"example.com/operator-workshop/03-client-go-controller/test/mywebtest"
)

func TestWhatARefusalMeans(t *testing.T) {
	web := mywebtest.New()
	c := &Controller{workqueue: NewWorkqueue()}
	defer c.workqueue.ShutDown()
	for range freeingTries {
		c.workqueue.AddRateLimited(nameOf(web))
	}
	for name, test := range mywebtest.Refusals() {
		t.Run(name, func(t *testing.T) {
			reason := ""
			err := c.refused(web, fmt.Errorf("apply Service default/site: %w", test.Err))
			if blocked, ok := errors.AsType[*myweb.ConditionError](err); ok {
				reason = blocked.Reason
			}
			if reason != test.Reason || !errors.Is(err, test.Err) && reason == "" {
				t.Errorf("got %q (%v), want %q", reason, err, test.Reason)
			}
		})
	}
}
