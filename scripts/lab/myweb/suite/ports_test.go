package suite

import (
	"testing"
	"time"

	"example.com/operator-workshop/scripts/examine/outcome"
)

// TestNodePortsAreOfOneCheck lets two checks take ports in turn.
func TestNodePortsAreOfOneCheck(t *testing.T) {
	taken := map[int32]bool{}
	for range allPorts / 2 {
		o := outcomeOf(t, time.Minute, func(check *T) {
			for range 2 {
				port := check.NodePort()
				if taken[port] || port < 30001 || port > 30085 {
					check.Errorf("port %d, after %v", port, taken)
				}
				taken[port] = true
			}
		})
		if o.Verdict != outcome.Passed {
			t.Fatal(o.What)
		}
	}
}
