package tools

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// A Reporter prints progress: on a terminal a line that is overwritten, elsewhere a new line now and then.
type Reporter struct {
	// W receives the text.
	W io.Writer
	// Moving means that W is a terminal, on which a line can be overwritten.
	Moving bool
	// Every is the interval at which a meter prints a line when it cannot overwrite lines.
	Every time.Duration
}

// NewReporter returns a reporter for a file such as os.Stderr.
func NewReporter(f *os.File) Reporter {
	return Reporter{W: f, Moving: term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb", Every: 20 * time.Second}
}

// Line prints one line.
func (r Reporter) Line(format string, args ...any) { fmt.Fprintf(r.W, format+"\n", args...) }

// A Meter shows the progress of a long step, and for how long it has run.
type Meter struct {
	r     Reporter
	what  string
	start time.Time
	quit  chan struct{}
	ended sync.WaitGroup

	mu          sync.Mutex
	done, total int
}

// Meter starts a meter for a step; its Stop must be called.
func (r Reporter) Meter(what string) *Meter {
	m := &Meter{r: r, what: what, start: time.Now(), quit: make(chan struct{})}
	every := r.Every
	if r.Moving {
		every = 200 * time.Millisecond
	}
	m.ended.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-m.quit:
				return
			case <-tick.C:
				m.print()
			}
		}
	})
	return m
}

// Set sets the amount that is done, and the total; a total of 0 is unknown.
func (m *Meter) Set(done, total int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done, m.total = done, total
}

// CountDownloads returns a reader of the go command's messages that counts downloaded modules.
func (m *Meter) CountDownloads() func(line string) {
	downloaded := 0
	return func(line string) {
		if strings.HasPrefix(line, "go: downloading") {
			downloaded++
			m.Set(downloaded, 0)
		}
	}
}

// Stop ends the meter and prints its last state, when it ran long enough to be seen.
func (m *Meter) Stop() {
	close(m.quit)
	m.ended.Wait()
	m.mu.Lock()
	nothing := m.done == 0
	m.mu.Unlock()
	switch {
	case m.r.Moving && nothing:
		fmt.Fprint(m.r.W, "\r\x1b[K") // the step was quick, or had nothing to do
	case m.r.Moving:
		m.print()
		fmt.Fprintln(m.r.W)
	case time.Since(m.start) > m.r.Every:
		m.print()
	}
}

func (m *Meter) print() {
	text := m.text(time.Since(m.start))
	if m.r.Moving {
		fmt.Fprint(m.r.W, "\r\x1b[K"+text)
		return
	}
	fmt.Fprintln(m.r.W, text)
}

// text describes the progress of the step after this time, and the remaining time at the same speed.
func (m *Meter) text(after time.Duration) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	text := fmt.Sprintf("  %s: %d", m.what, m.done)
	if m.total > 0 {
		text += fmt.Sprintf(" of %d", m.total)
	}
	text += fmt.Sprintf(", %s", after.Round(time.Second))
	if m.done < m.total && m.done > 0 && after > 10*time.Second {
		left := after * time.Duration(m.total-m.done) / time.Duration(m.done)
		text += fmt.Sprintf(", about %s to go", left.Round(10*time.Second))
	}
	return text
}
