package window

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/internal/loop"
)

// cluster is the ledger of the local cluster, which goes on. The others are those of checks, which have ended.
const clusterSource = "cluster"

// A Verdict is what a check has left beside its ledger.
type Verdict struct {
	Exercise string `json:"exercise"`
	Passed   bool   `json:"passed"`
	Check    string `json:"check"`
	Message  string `json:"message"`
	// At is the number of the record at which the program differed, 0 when no record shows it.
	At int `json:"at,omitempty"`
	// Time is when the ledger was written.
	Time time.Time `json:"time"`
}

// verdicts are those of the checks that left a ledger, by exercise.
func (s *Server) verdicts() (all []Verdict) {
	files, _ := filepath.Glob(filepath.Join(s.Checks, "*", "verdict.json"))
	for _, file := range files {
		var v Verdict
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &v) != nil || v.Exercise != filepath.Base(filepath.Dir(file)) {
			continue
		}
		if info, err := os.Stat(s.checkLedger(v.Exercise)); err == nil {
			v.Time = info.ModTime()
			all = append(all, v)
		}
	}
	return all
}

func (s *Server) checkLedger(exercise string) string {
	return filepath.Join(s.Checks, exercise, "ledger.jsonl")
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
	waiting []loop.Record
}

// feedMessage is what a tab gets.
type feedMessage struct {
	Records []loop.Record `json:"records,omitempty"`
	// Away says why there are no records.
	Away string `json:"away,omitempty"`
	// End says that there are no more.
	End bool `json:"end,omitempty"`
}

// add takes a record. Discovery and health are of no resource, and are left out.
func (f *feed) add(ctx context.Context, r loop.Record) error {
	if r.Resource == "" {
		return nil
	}
	f.mu.Lock()
	f.waiting = append(f.waiting, r)
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
				paths = []string{s.checkLedger(name)}
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
