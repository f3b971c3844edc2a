package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"example.com/operator-workshop/scripts/internal/lab/ledger"
	"example.com/operator-workshop/scripts/internal/lab/wire"
)

// A Count is a stretch of time in which three witnesses count the same requests: the ledger, the audit log
// and apiserver_request_total.
type Count struct {
	world *World
	mark  int
	audit audit
	begin map[Total]int
}

// settle is how long nothing may happen at the API server where a count begins, and how often the three
// witnesses are asked at its end.
const settle = 50 * time.Millisecond

// Count begins to count at the next moment in which no request is under way. It waits for one until ctx
// ends.
func (w *World) Count(ctx context.Context) (*Count, error) {
	for {
		c := &Count{world: w, mark: w.Ledger.Mark(), audit: audit{path: w.AuditLog}}
		if err := c.audit.read(); err != nil {
			return nil, err
		}
		before, err := w.Totals(ctx)
		if err != nil {
			return nil, err
		}
		if err := pause(ctx, settle); err != nil {
			return nil, fmt.Errorf("wait for a moment without requests: %w", err)
		}
		if c.begin, err = w.Totals(ctx); err != nil {
			return nil, err
		}
		c.audit.events = nil
		if err := c.audit.read(); err != nil {
			return nil, err
		}
		busy := slices.ContainsFunc(c.audit.events, func(e AuditEvent) bool { return e.ObjectRef != nil })
		if !busy && maps.Equal(before, c.begin) && c.mark == w.Ledger.Mark() {
			c.audit.events = nil
			return c, nil
		}
	}
}

// Agree returns nil when the three witnesses agree on every request since the count began. Requests end at
// different moments for each of them, so it asks again until they agree or ctx ends; then the error tells
// each difference. The users must have gone through the proxy alone, and their watches must have ended:
// the metric counts a watch at its end.
//
// The ledger and the audit log are compared request by request, by the name that the API server gives to
// each answer. The metric knows no users: it is compared with the audit log of everybody, and with the
// ledger where nobody else asked for the same. Left out of it is what it does not count, as its source
// shows: requests for no resource, and those for which the user had no permission.
func (c *Count) Agree(ctx context.Context, users ...string) error {
	for {
		err := c.compareNow(ctx, users)
		if err == nil {
			return nil
		}
		if pause(ctx, settle) != nil {
			return fmt.Errorf("the witnesses do not agree:\n%w", err)
		}
	}
}

// compareNow finishes one comparison even if ctx ends meanwhile.
func (c *Count) compareNow(ctx context.Context, users []string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return c.compare(ctx, users)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Count) compare(ctx context.Context, users []string) error {
	end, err := c.world.Totals(ctx)
	if err != nil {
		return err
	}
	if err := c.audit.read(); err != nil {
		return err
	}
	entries := c.world.Ledger.Entries(ledger.Match{Users: users, After: c.mark})
	totals := map[Total]int{}
	for t, n := range end {
		if n != c.begin[t] {
			totals[t] = n - c.begin[t]
		}
	}
	return errors.Join(c.compareRequests(entries, users), c.compareTotals(entries, totals, users))
}

// compareRequests holds the ledger against the audit log, one request at a time.
func (c *Count) compareRequests(entries []ledger.Entry, users []string) (err error) {
	begun, done := c.audit.of("ResponseStarted", users), c.audit.of("ResponseComplete", users)
	for _, e := range entries {
		if len(e.AuditIDs) != len(e.Served) || len(e.Served) == 0 {
			err = errors.Join(err, fmt.Errorf("the ledger has a request that was not answered: %v", e))
		}
		for i, id := range e.AuditIDs {
			event, ok := done[id]
			if _, started := begun[id]; !ok || e.Verb == wire.Watch && !started {
				err = errors.Join(err, fmt.Errorf("not in the audit log: %v", e))
			} else if want, got := line(e.Request, e.Served[i]), line(event.Request(), event.ResponseStatus.Code); want != got {
				err = errors.Join(err, fmt.Errorf("the ledger has %q, the audit log %q", want, got))
			}
			delete(done, id)
		}
		if e.Open {
			err = errors.Join(err, fmt.Errorf("not ended: %v", e))
		}
	}
	for _, event := range done {
		err = errors.Join(err, fmt.Errorf("not in the ledger: %s %s %s", event.User.Username, event.Verb, event.RequestURI))
	}
	return err
}

// line is what the audit log tells of a request. It has the name of an object that is created from the
// object itself.
func line(r wire.Request, code int) string {
	if r.Verb == wire.Apply {
		r.Verb = wire.Patch
	}
	what := r.What()
	if r.Resource == "" {
		what = "" // the audit log has the whole URL
	}
	return fmt.Sprintf("%s %s %s %s %d", r.Verb, what, r.Version, r.Which(), code)
}

// compareTotals holds the metric against the audit log of everybody, and against the ledger where the users
// were the only ones.
func (c *Count) compareTotals(entries []ledger.Entry, totals map[Total]int, users []string) error {
	everybody, others, patched := map[Total]int{}, map[Total]int{}, map[Total]int{}
	denied := map[string]bool{}
	for _, e := range c.audit.events {
		if e.Denied() {
			denied[e.AuditID] = true
		}
		if e.Stage != "ResponseComplete" || e.ObjectRef == nil || e.Denied() {
			continue
		}
		t := totalOf(e.Request(), e.ResponseStatus.Code)
		everybody[t]++
		if !slices.Contains(users, e.User.Username) {
			others[t]++
		}
	}
	for t, n := range totals {
		patched[t.patched()] += n
	}
	err := differences("apiserver_request_total", patched, "the audit log", everybody)
	entries = slices.DeleteFunc(entries, func(e ledger.Entry) bool {
		return slices.ContainsFunc(e.AuditIDs, func(id string) bool { return denied[id] })
	})
	ours, seen := LedgerTotals(entries), map[Total]int{}
	for t := range ours {
		if others[t.patched()] > 0 {
			delete(ours, t)
		} else if totals[t] > 0 {
			seen[t] = totals[t]
		}
	}
	return errors.Join(err, differences("apiserver_request_total", seen, "the ledger", ours))
}

func differences(a string, inA map[Total]int, b string, inB map[Total]int) (err error) {
	all := maps.Clone(inA)
	maps.Copy(all, inB)
	sorted := slices.SortedFunc(maps.Keys(all), func(x, y Total) int { return cmp.Compare(x.String(), y.String()) })
	for _, t := range sorted {
		if inA[t] != inB[t] {
			err = errors.Join(err, fmt.Errorf("%v: %d in %s, %d in %s", t, inA[t], a, inB[t], b))
		}
	}
	return err
}
