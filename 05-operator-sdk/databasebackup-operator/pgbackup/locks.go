package main

import (
	"context"
	"fmt"
	"time"
)

// watchLocks looks for locks for which pg_dump waits, and logs them, until the caller calls the function that it
// returns. That function returns the lock for which pg_dump waited last, if it got it not.
func (p *program) watchLocks(ctx context.Context) (stop func() string) {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan string, 1)
	go func() {
		waiting := ""
		defer func() { found <- waiting }()
		open, err := p.connect(ctx, p.config.Database)
		if err != nil {
			return
		}
		defer open.close()
		for ; ctx.Err() == nil; pause(ctx, time.Second) {
			rows, err := open.query(ctx, toolSessions, applicationName("tool"))
			if err != nil || len(rows) == 0 { // pg_dump has ended, perhaps because it waited too long
				continue
			}
			before := waiting
			waiting = ""
			if rows[0][0] != "" {
				waiting = fmt.Sprintf("the lock of table %s, which session %s (%s) holds", rows[0][0], rows[0][1], rows[0][2])
			}
			if waiting != "" && waiting != before {
				p.log.Warn("The dump waits for " + waiting)
			}
		}
	}()
	return func() string {
		cancel()
		return <-found
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
