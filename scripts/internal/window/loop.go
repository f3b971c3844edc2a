package window

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/internal/translation"
)

// cluster names the ledger of the local cluster, which continues. The other ledgers belong to checks, which have ended.
const clusterSource = "cluster"

// A LastCheck is the judgement that a check has left beside its ledger.
type LastCheck struct {
	loop.KeptVerdict
	// Time is when the ledger was written.
	Time time.Time `json:"time"`
}

// An Arrow is a record in the form in which it is drawn.
type Arrow struct {
	loop.Record
	// Text describes the record in words.
	Text string `json:"text"`
	// Changes is set when a request asks for a change.
	Changes bool `json:"changes,omitempty"`
	// Later is the time since the event that was delivered to the program before it sent the request.
	Later string `json:"later,omitempty"`
	// Sentence says what the record is, and which event came before it. The event before it is not its cause.
	Sentence string `json:"sentence"`
}

// lastChecks returns the checks that left a ledger, by exercise.
func (s *Server) lastChecks() (all []LastCheck) {
	folders, _ := os.ReadDir(s.Course.Checks)
	for _, folder := range folders {
		kept := loop.KeptOf(s.Course.Checks, folder.Name())
		j, err := kept.Verdict()
		if info, missing := os.Stat(kept.Ledger()); err == nil && missing == nil && j.Exercise == folder.Name() {
			all = append(all, LastCheck{j, info.ModTime()})
		}
	}
	return all
}

func (s *Server) loopSources(w http.ResponseWriter, r *http.Request) {
	all, said := s.lastChecks(), s.speaking(r).exercises
	for i := range all {
		all[i].Message = said.SayWhole(all[i].Message)
	}
	answer(w, all)
}

// batch is how many records are sent at once, and flush is how long the first of them may wait for others.
const (
	batch = 256
	flush = 50 * time.Millisecond
)

// A describer writes about records in a language, in the order of their ledger.
type describer struct {
	spoken
	// namespace is the check's own namespace, which each text omits.
	namespace string
	order     loop.Order
}

// A feed sends records to a tab. It keeps at most one batch: when a tab is slow, the reading of the file waits.
type feed struct {
	connection *websocket.Conn

	mu sync.Mutex
	describer
	waiting []Arrow
}

// feedMessage is a message to a tab.
type feedMessage struct {
	Records []Arrow `json:"records,omitempty"`
	// Away is the reason for which there are no records. A later message without it withdraws the reason.
	Away string `json:"away,omitempty"`
	// End means that no more records follow.
	End bool `json:"end,omitempty"`
}

// add takes a record. It omits records without a resource, which are discovery and health checks, and the second record
// of a watch.
func (f *feed) add(ctx context.Context, r loop.Record) error {
	if r.Is != loop.Note && (r.Resource == "" || r.IsEndOfWatch()) {
		return nil
	}
	f.mu.Lock()
	f.waiting = append(f.waiting, f.arrow(r))
	full := len(f.waiting) >= batch
	f.mu.Unlock()
	if full {
		return f.flush(ctx)
	}
	return nil
}

// arrow describes a record, and the event before it.
func (t *describer) arrow(r loop.Record) Arrow {
	t.order.Note(r)
	arrow := Arrow{Record: r, Text: loop.Short(r.Text(), t.namespace), Changes: r.Changes()}
	by := t.said.Say(cmp.Or(r.By.Name, "unknown"))
	if r.By.PID != 0 {
		by = fmt.Sprintf("%s (process %d)", by, r.By.PID)
	}
	event, ok := t.order.Before(r)
	switch r.Is {
	case loop.Note:
		arrow.Text = t.exercises.SayWhole(arrow.Text)
		arrow.Sentence = arrow.Text
	case loop.Event:
		arrow.Sentence = strings.TrimSpace(t.said.Sayf("%s was delivered to %s.", arrow.Text, by) + " " + t.fields(r))
	default:
		sentences := []string{t.said.Sayf("%s sent %s.", by, arrow.Text)}
		if r.Took > 0 {
			sentences[0] = t.said.Sayf("%s sent %s; the answer took %.1f ms.", by, arrow.Text, r.Took)
		}
		if effect := effect(r); effect != "" {
			sentences = append(sentences, t.said.Say(effect))
		}
		if fields := t.fields(r); fields != "" {
			sentences = append(sentences, fields)
		}
		if ok {
			arrow.Later = loop.Gap(r.Time.Sub(event.Time))
			sentences = append(sentences, t.said.Sayf("Before it, by %s, %s was delivered: that is the order, not a cause.",
				arrow.Later, loop.Short(event.Text(), t.namespace)))
		}
		arrow.Sentence = strings.Join(sentences, " ")
	}
	return arrow
}

// fields is a sentence about the fields that changed.
func (t *describer) fields(r loop.Record) string {
	if len(r.Fields) == 0 {
		return ""
	}
	return t.said.Sayf("These fields differ from the version before: %s.", strings.Join(r.Differences(), ", "))
}

// effects are sentences about the effect of a write.
var effects = map[string]string{"moved": translation.Mark("It changed the object."),
	"same": translation.Mark("It changed nothing.")}

// effect describes the effect of a write. An apply creates the object that is missing. An object with finalizers is
// deleted later.
func effect(r loop.Record) string {
	switch {
	case r.Effect == "moved" && r.Code == http.StatusCreated && r.Subresource == "":
		return translation.Mark("It created the object.")
	case r.Effect == "moved" && r.Verb == "delete":
		return translation.Mark("It deleted the object, or marked it for deletion.")
	case r.Effect == "moved" && r.Verb == "deletecollection":
		return translation.Mark("It deleted the objects, or marked them for deletion.")
	}
	return effects[r.Effect]
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

// keepFlushing sends waiting records until the context ends.
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

// records sends a tab the records of a source. The records of the local cluster continue. A tab that has lost its
// connection connects again, and recognises the records that it has by their time and number.
func (s *Server) records(w http.ResponseWriter, r *http.Request) {
	paths, follow, namespace := []string{loop.Backup(s.Ledger), s.Ledger}, true, ""
	if name := r.PathValue("source"); name != clusterSource {
		paths, follow = nil, false
		for _, v := range s.lastChecks() {
			if v.Exercise == name {
				paths, namespace = []string{loop.KeptOf(s.Course.Checks, name).Ledger()}, v.Namespace
			}
		}
	}
	if len(paths) == 0 {
		http.Error(w, "There is no ledger of a check of this exercise: `make check` writes it.", http.StatusNotFound)
		return
	}
	connection := s.accept(w, r)
	if connection == nil {
		return
	}
	defer connection.CloseNow()
	ctx := connection.CloseRead(r.Context())
	f := &feed{connection: connection, describer: describer{spoken: s.speaking(r), namespace: namespace}}
	flushing, stop := context.WithCancel(ctx)
	defer stop()
	go f.keepFlushing(flushing)
	var err error
	for i, path := range paths {
		last := i == len(paths)-1
		if _, missing := os.Stat(path); last && missing == nil { // an empty ledger has no record that ends an Away
			_ = sendOne(ctx, connection, feedMessage{})
		}
		err = loop.Read(ctx, path, follow && last, func(r loop.Record) error { return f.add(ctx, r) })
		if errors.Is(err, os.ErrNotExist) && !last {
			err = nil
		}
		if err != nil {
			break
		}
	}
	if f.flush(ctx) == nil {
		message := ending(err)
		message.Away = f.said.Say(message.Away)
		_ = sendOne(ctx, connection, message)
	}
	_ = connection.Close(websocket.StatusNormalClosure, "")
}

// ending returns the message that a tab gets when no more records follow.
func ending(err error) feedMessage {
	switch {
	case err == nil:
		return feedMessage{End: true}
	case errors.Is(err, os.ErrNotExist), errors.Is(err, loop.ErrGone):
		return feedMessage{Away: translation.Mark("No local cluster with the lens runs: `make up` starts it.")}
	}
	return feedMessage{Away: err.Error()}
}
