package window

import (
	"context"
	"errors"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/internal/loop"
)

// cluster is the ledger of the local cluster, which goes on. The others are those of checks, which have ended.
const clusterSource = "cluster"

// A Verdict is what a check has left beside its ledger.
type Verdict struct {
	loop.Judgement
	// Time is when the ledger was written.
	Time time.Time `json:"time"`
}

// An Arrow is a record as it is drawn.
type Arrow struct {
	loop.Record
	// Text is the record in words.
	Text string `json:"text"`
	// Changes is set when a request asks for a change.
	Changes bool `json:"changes,omitempty"`
	// After is the number of the event that was delivered to the program before it sent the request, 0 for none.
	After int `json:"after,omitempty"`
}

// verdicts are those of the checks that left a ledger, by exercise.
func (s *Server) verdicts() (all []Verdict) {
	folders, _ := os.ReadDir(s.Checks)
	for _, folder := range folders {
		kept := loop.KeptOf(s.Checks, folder.Name())
		j, err := kept.Judgement()
		if info, missing := os.Stat(kept.Ledger()); err == nil && missing == nil && j.Exercise == folder.Name() {
			all = append(all, Verdict{j, info.ModTime()})
		}
	}
	return all
}

func (s *Server) loopSources(w http.ResponseWriter, _ *http.Request) { answer(w, s.verdicts()) }

// batch is how many records are sent at once, and flush how long the first of them may wait for others.
const (
	batch = 256
	flush = 50 * time.Millisecond
)

// A feed sends records to a tab. It keeps no more than one batch: a slow tab makes the reading of the file wait.
type feed struct {
	connection *websocket.Conn

	mu      sync.Mutex
	order   loop.Order
	waiting []Arrow
}

// feedMessage is what a tab gets.
type feedMessage struct {
	Records []Arrow `json:"records,omitempty"`
	// Away says why there are no records.
	Away string `json:"away,omitempty"`
	// End says that there are no more.
	End bool `json:"end,omitempty"`
}

// add takes a record. Discovery and health are of no resource, and are left out; so is the second record of a watch.
func (f *feed) add(ctx context.Context, r loop.Record) error {
	if r.Resource == "" || r.IsEndOfWatch() {
		return nil
	}
	f.mu.Lock()
	f.order.Note(r)
	arrow := Arrow{Record: r, Text: r.Text(), Changes: r.Changes()}
	if event, ok := f.order.Before(r); ok && r.Is == loop.Request {
		arrow.After = event.N
	}
	f.waiting = append(f.waiting, arrow)
	full := len(f.waiting) >= batch
	f.mu.Unlock()
	if full {
		return f.flush(ctx)
	}
	return nil
}

func (f *feed) flush(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.waiting) == 0 {
		return nil
	}
	some := f.waiting
	f.waiting = nil
	return sendOne(ctx, f.connection, feedMessage{Records: some})
}

// keepFlushing sends what waits until the context ends.
func (f *feed) keepFlushing(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(flush):
			if f.flush(ctx) != nil {
				return
			}
		}
	}
}

// records sends a tab the records of a source. Those of the local cluster go on; a tab that has lost them connects again,
// and knows by their time and number which ones it has.
func (s *Server) records(w http.ResponseWriter, r *http.Request) {
	paths, follow := []string{loop.Backup(s.Ledger), s.Ledger}, true
	if name := r.PathValue("source"); name != clusterSource {
		paths, follow = nil, false
		for _, v := range s.verdicts() {
			if v.Exercise == name {
				paths = []string{loop.KeptOf(s.Checks, name).Ledger()}
			}
		}
	}
	if len(paths) == 0 {
		http.Error(w, "There is no ledger of a check of this exercise: `make check` writes it.", http.StatusNotFound)
		return
	}
	connection, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // it has answered
	}
	defer connection.CloseNow()
	ctx := connection.CloseRead(r.Context())
	f := &feed{connection: connection}
	flushing, stop := context.WithCancel(ctx)
	defer stop()
	go f.keepFlushing(flushing)
	for i, path := range paths {
		last := i == len(paths)-1
		err = loop.Read(ctx, path, follow && last, func(r loop.Record) error { return f.add(ctx, r) })
		if errors.Is(err, os.ErrNotExist) && !last {
			err = nil
		}
		if err != nil {
			break
		}
	}
	if f.flush(ctx) == nil {
		_ = sendOne(ctx, connection, ending(err))
	}
	_ = connection.Close(websocket.StatusNormalClosure, "")
}

// ending is what a tab gets when there are no more records.
func ending(err error) feedMessage {
	switch {
	case err == nil:
		return feedMessage{End: true}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, loop.ErrGone):
		return feedMessage{Away: "No local cluster with the lens runs: `make up` starts it."}
	}
	return feedMessage{Away: err.Error()}
}
