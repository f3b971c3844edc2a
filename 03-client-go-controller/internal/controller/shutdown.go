package controller

import (
	"context"
	"sync"
	"time"
)

// Demanded by behaviour/14-leader-stops, TestRunEndsWhenWhatIsBegunIsDone and TestRunDoesNotWaitForever: a
// cancelled request might yet be carried out, when the next leader works already.

// inFlightTimeout is what syncs in flight get to end when the controller is asked to stop.
const inFlightTimeout = 8 * time.Second

// finishInFlight waits for the workers: the answer to a request that was sent is still read. When that takes
// too long, it cancels their requests.
func finishInFlight(workers *sync.WaitGroup, cancel context.CancelFunc) {
	timer := time.AfterFunc(inFlightTimeout, cancel)
	defer timer.Stop()
	workers.Wait()
}
