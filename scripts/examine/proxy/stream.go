package proxy

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/operator-workshop/scripts/examine/ledger"
	"example.com/operator-workshop/scripts/examine/wire"
)

// maxWaiting is how many bytes the proxy buffers for a slow client before it stops reading from the API server. A
// frozen stream has no limit, because the API server must not notice the freeze.
const maxWaiting = 256 << 10

var errCut = errors.New("cut by a rule")

// A Stream is an open watch, or another answer that does not end. The proxy reads the API server's data at once, and
// passes it on event by event.
type Stream struct {
	exchange *Exchange
	source   io.ReadCloser
	framing  wire.Framing
	packed   bool        // with gzip
	stop     func() bool // no longer waits for the client's end

	mu      sync.Mutex
	changed sync.Cond
	frames  []frame // read, not passed on
	waiting int     // bytes in frames
	frozen  map[*Fault]bool
	end     error  // after the frames
	current []byte // being passed on, with these frames
	passing []frame
}

// A frame is an event, or bytes that cannot be parsed.
type frame struct {
	data    []byte
	isEvent bool
	event   wire.Event
}

// frameOf reads an event, if possible.
func (s *Stream) frameOf(data []byte) frame {
	event, err := s.framing.Event(data)
	if err != nil {
		event = wire.Event{}
	}
	return frame{data, s.framing != wire.Unframed, event}
}

// openStream begins to read an answer that does not end.
func (x *Exchange) openStream(source io.ReadCloser) {
	s := &Stream{exchange: x, source: source, frozen: map[*Fault]bool{}}
	if x.Entry().Verb == wire.Watch {
		s.framing = wire.FramingOf(x.answer.Header)
		s.packed = s.framing != wire.Unframed && x.answer.Header.Get("Content-Encoding") == "gzip"
	}
	s.changed.L = &s.mu
	x.stream = s
	x.proxy.mu.Lock()
	x.proxy.streams[s] = true
	x.proxy.mu.Unlock()
	s.stop = context.AfterFunc(x.ctx, func() { s.finish(x.ctx.Err()) })
	x.proxy.serving.Go(s.pump)
}

func (x *Exchange) closeStream() {
	if x.stream != nil {
		_ = x.stream.Close()
		x.stream = nil
	}
}

// Streams returns the open streams whose requests match, oldest first.
func (p *Proxy) Streams(m ledger.Match) []*Stream {
	p.mu.Lock()
	open := p.openStreams()
	p.mu.Unlock()
	return slices.DeleteFunc(open, func(s *Stream) bool { return !m.Matches(s.Entry()) })
}

// openStreams needs the lock.
func (p *Proxy) openStreams() []*Stream {
	var open []*Stream
	for s := range p.streams {
		open = append(open, s)
	}
	slices.SortFunc(open, func(a, b *Stream) int { return a.exchange.id - b.exchange.id })
	return open
}

// Entry is the current ledger entry of the stream.
func (s *Stream) Entry() ledger.Entry { return s.exchange.Entry() }

func (s *Stream) freeze(by *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen[by] = true
	s.changed.Broadcast()
}

func (s *Stream) thaw(by *Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.frozen, by)
	s.changed.Broadcast()
}

// Cut ends the stream with an error. Withheld events are lost.
func (s *Stream) Cut() { s.finish(errCut) }

// End ends the stream as the API server does at its timeout. Withheld events are lost.
func (s *Stream) End() { s.finish(io.EOF) }

// Expire ends the stream with the 410 Gone event. Withheld events are lost: the client must list again, and notices
// deletions only because objects are missing.
func (s *Stream) Expire() error {
	status := apierrors.NewResourceExpired("The resourceVersion for the provided watch is too old.").Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	event, err := s.framing.Encode("ERROR", &status)
	if err != nil {
		return err
	}
	s.finish(io.EOF, s.frameOf(event))
	return nil
}

// put needs the lock.
func (s *Stream) put(frames ...frame) {
	for _, f := range frames {
		s.frames, s.waiting = append(s.frames, f), s.waiting+len(f.data)
	}
	s.changed.Broadcast()
}

// finish ends the stream now, also when it is frozen. It first sends the last frames, if there are any.
func (s *Stream) finish(end error, last ...frame) {
	s.mu.Lock()
	s.frames, s.waiting, s.end = nil, 0, end
	clear(s.frozen)
	s.put(last...)
	s.mu.Unlock()
	_ = s.source.Close() // ends the pump
}

// pump reads from the API server until its data ends.
func (s *Stream) pump() {
	var source io.Reader = s.source
	if s.packed {
		unpacked, err := gzip.NewReader(s.source)
		if err != nil {
			s.take(nil, err)
			return
		}
		source = unpacked
	}
	for next := s.framing.Frames(source); ; {
		data, err := next()
		if !s.take(s.read(data), err) || err != nil {
			return
		}
	}
}

// read records in the ledger the object that an event reports.
func (s *Stream) read(data []byte) []frame {
	if len(data) == 0 {
		return nil
	}
	f := s.frameOf(data)
	if l := s.exchange.proxy.ledger; f.event.Type != "ERROR" {
		l.Learn(f.event.Object)
		if l.IsCopied() {
			l.Describe(s.framing.Content(data))
		}
	}
	return []frame{f}
}

// take adds frames once there is space. It returns false when the stream has ended.
func (s *Stream) take(frames []frame, end error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.end == nil && len(s.frozen) == 0 && s.waiting > maxWaiting {
		s.changed.Wait()
	}
	if s.end != nil {
		return false
	}
	s.end = end
	s.put(frames...)
	return true
}

// Read passes available data to the client.
func (s *Stream) Read(p []byte) (int, error) {
	s.mu.Lock()
	for len(s.current) == 0 && (len(s.frozen) > 0 || len(s.frames) == 0 && s.end == nil) {
		s.changed.Wait()
	}
	if len(s.current) == 0 {
		if len(s.frames) == 0 {
			defer s.mu.Unlock()
			return 0, s.end
		}
		s.advance()
	}
	n := copy(p, s.current)
	s.current = s.current[n:]
	var passed []wire.Event
	if len(s.current) == 0 {
		for _, f := range s.passing {
			if f.isEvent {
				passed = append(passed, f.event)
			}
		}
	}
	s.mu.Unlock()
	s.exchange.change(func(e *ledger.Entry) { e.Events += len(passed) })
	s.exchange.proxy.ledger.Deliver(s.exchange.id, passed)
	return n, nil
}

// advance makes all frames the current bytes. It needs the lock.
func (s *Stream) advance() {
	var data bytes.Buffer
	for _, f := range s.frames {
		data.Write(f.data)
	}
	s.passing, s.frames, s.waiting = s.frames, nil, 0
	s.changed.Broadcast()
	s.current = data.Bytes()
	if s.packed {
		s.current = pack(data.Bytes())
	}
}

// pack compresses as the API server does when it flushes a watch: a complete gzip member, with a flush before its
// end. Without the flush, a reader would keep the last bytes until the next member begins.
func pack(data []byte) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed) // the buffer returns no errors
	_, _ = w.Write(data)
	_ = w.Flush()
	_ = w.Close()
	return out.Bytes()
}

// Close is called when no reader is left.
func (s *Stream) Close() error {
	s.stop()
	s.finish(io.ErrClosedPipe)
	p := s.exchange.proxy
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.streams, s)
	return nil
}

// newLasting returns a source that has some bytes and then blocks until it is closed.
func newLasting(body []byte) io.ReadCloser {
	blocked, _ := io.Pipe()
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), blocked), blocked}
}
