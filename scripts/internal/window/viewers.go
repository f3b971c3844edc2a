package window

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/creack/pty"

	"example.com/operator-workshop/scripts/internal/translation"
)

const (
	// high and low are amounts of output that a tab has not drawn yet. Above high the shell's output is not read, until
	// the tab is below low. So little output comes after Ctrl-C.
	high, low = 64 << 10, 16 << 10
	// patience is how long a tab may slow a program down before the tab skips output. From then on the tab skips all
	// output above high, until it has caught up.
	patience = 3 * time.Second
	// skippedTo is how much of the skipped output a tab gets.
	skippedTo = 32 << 10
	// pieceOfOutput is how much output one message to a tab has, apart from the earlier output.
	pieceOfOutput = 16 << 10
)

// A viewer is a browser tab that shows a terminal. The terminal's lock guards it.
type viewer struct {
	// size is the size of the terminal in the tab, zero while the tab does not show it.
	size Size
	// waiting has output ([]byte) and messages (Message) for the tab; more receives when there are some.
	waiting []any
	more    chan struct{}
	// pending is the number of bytes of output that the tab has not drawn.
	pending int
	// slows means that the shell's output waits for the tab. The timer runs until the tab has drawn everything.
	slows bool
	timer *time.Timer
	// skips means that the tab gets no output, until it has drawn what it got; skipped counts the bytes.
	skips   bool
	skipped int
	// behind means that the tab has skipped output, and has not drawn everything since.
	behind bool
}

// add keeps a piece for the tab.
func (v *viewer) add(piece any) {
	text, isText := piece.([]byte)
	v.pending += len(text)
	if n := len(v.waiting); isText && n > 0 {
		if last, ok := v.waiting[n-1].([]byte); ok && len(last)+len(text) <= pieceOfOutput {
			v.waiting[n-1] = append(last, text...)
			piece = nil
		}
	}
	if piece != nil {
		if isText {
			piece = bytes.Clone(text)
		}
		v.waiting = append(v.waiting, piece)
	}
	select {
	case v.more <- struct{}{}:
	default:
	}
}

// view adds a tab, which first gets the earlier output.
func (t *terminal) view() *viewer {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := &viewer{more: make(chan struct{}, 1)}
	v.add(Message{Size: &Size{t.size.Cols, t.size.Rows}})
	v.add(lastLines(t.scroll, scrollback))
	v.add(Message{States: slices.Collect(maps.Values(t.states)), Replayed: true})
	t.viewers = append([]*viewer{v}, t.viewers...)
	return v
}

// leave removes a tab. The terminal gets the size of the tab whose size changed last.
func (t *terminal) leave(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.viewers = slices.DeleteFunc(t.viewers, func(other *viewer) bool { return other == v })
	if v.timer != nil {
		v.timer.Stop()
	}
	t.changed.Broadcast()
	_ = t.fit()
}

// take returns what waits for a tab.
func (t *terminal) take(v *viewer) []any {
	t.mu.Lock()
	defer t.mu.Unlock()
	some := v.waiting
	v.waiting = nil
	return some
}

// refuse reports to a tab why its input was refused.
func (t *terminal) refuse(v *viewer, reason error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.add(Message{Refused: fmt.Sprintf(translation.Mark("The input was refused: %s."), reason)})
}

// inform sends a message to all tabs. The caller holds the lock.
func (t *terminal) inform(m Message) {
	for _, v := range t.viewers {
		v.add(m)
	}
}

// show sends output to all tabs. The caller holds the lock.
func (t *terminal) show(text []byte) {
	for _, v := range t.viewers {
		if v.skips {
			v.skipped += len(text)
			continue
		}
		v.add(text)
		switch {
		case v.pending <= high:
		case v.behind:
			v.skips = true
		case v.timer == nil:
			v.timer = time.AfterFunc(patience, func() { t.skip(v) })
			fallthrough
		default:
			v.slows = true
		}
	}
}

// skip makes a tab skip output when it has not drawn everything in time.
func (t *terminal) skip(v *viewer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.timer == nil {
		return // it has caught up at this moment
	}
	v.timer, v.slows, v.skips, v.behind = nil, false, true, true
	t.changed.Broadcast()
}

// isSlowed reports whether the shell's output waits for a tab. The caller holds the lock.
func (t *terminal) isSlowed() bool {
	return !t.hurries && slices.ContainsFunc(t.viewers, func(v *viewer) bool { return v.slows })
}

// drawn notes that a tab has drawn output.
func (t *terminal) drawn(v *viewer, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v.pending = max(0, v.pending-max(0, bytes))
	if v.pending <= low {
		v.slows = false
		t.changed.Broadcast()
	}
	if v.pending > 0 {
		return
	}
	if v.timer != nil {
		v.timer.Stop()
		v.timer = nil
	}
	v.behind = v.skips
	if !v.skips {
		return
	}
	text := lastLines(t.scroll, min(v.skipped, skippedTo))
	if left := v.skipped - len(text); left > 0 {
		v.add(fmt.Appendf(nil, "\x1b[0m\r\n[%d KiB of output are not shown: it came faster than the browser draws]\r\n", left>>10))
	}
	v.add(text)
	v.skips, v.skipped = false, 0
}

// lastLines returns the end of a text, from the beginning of a line where there is one.
func lastLines(text []byte, size int) []byte {
	over := len(text) - size
	if over <= 0 {
		return text
	}
	if newline := bytes.IndexByte(text[over:], '\n'); newline >= 0 {
		over += newline + 1
	}
	return text[over:]
}

// resize notes the size of the terminal in a tab. The size that changed last is the size of the terminal.
func (t *terminal) resize(v *viewer, size Size) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if size.Columns < 2 || size.Rows < 2 {
		return nil
	}
	v.size = size
	if at := slices.Index(t.viewers, v); at >= 0 {
		t.viewers = append(slices.Delete(t.viewers, at, at+1), v)
	}
	return t.fit()
}

// fit gives the terminal the size of the last tab that has one. The caller holds the lock.
func (t *terminal) fit() error {
	var size Size
	for _, v := range t.viewers {
		if v.size != (Size{}) {
			size = v.size
		}
	}
	if size == (Size{}) || size == (Size{t.size.Cols, t.size.Rows}) {
		return nil
	}
	t.size.Cols, t.size.Rows = size.Columns, size.Rows
	t.inform(Message{Size: &size})
	if t.file == nil {
		return nil
	}
	return pty.Setsize(t.file, &t.size)
}
