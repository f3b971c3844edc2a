package suite

import (
	"testing"
	"time"
)

func TestNodePortsAreOfOneCheck(t *testing.T) {
	for range 3 { // more than the range has, if they were not returned
		outcome := outcomeOf(t, time.Minute, func(check *T) {
			mine := map[int32]bool{}
			for range 40 {
				port := check.NodePort()
				if mine[port] || port < 30001 || port > 30085 {
					check.Errorf("port %d, after %v", port, mine)
				}
				mine[port] = true
				outcome := outcomeOf(t, time.Minute, func(other *T) {
					if got := other.NodePort(); mine[got] {
						other.Errorf("port %d is of a check that runs", got)
					}
				})
				if outcome.Verdict != Passed {
					check.Errorf("another check: %s", outcome.Reason)
				}
			}
		})
		if outcome.Verdict != Passed {
			t.Fatal(outcome.Reason)
		}
	}
	all := outcomeOf(t, time.Minute, func(check *T) {
		for range 81 {
			check.NodePort()
		}
	})
	if all.Verdict != Failed || len(nodePorts.free) != 80 {
		t.Errorf("more ports than there are: %s %s; %d are free afterwards", all.Verdict, all.Reason, len(nodePorts.free))
	}
}
