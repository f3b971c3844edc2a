package loop

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Printer prints the loop of programs as it happens: each event that was delivered, and after it the requests that
// came, with the time between them. What was delivered before a request is what came before it. Nothing says that it is
// the cause.
type Printer struct {
	// W is written to. After an event the line is open: the request that follows completes it.
	W io.Writer
	// Namespace is left out of the names of objects, and so is default.
	Namespace string

	open   *Record // the event of the open line
	order  Order
	pids   map[string]int // the first process of a name
	column int
}

// Print prints one record. Records of housekeeping are left out, and so is the end of a watch.
func (p *Printer) Print(r Record) error {
	if r.IsHousekeeping() {
		return nil
	}
	if r.Is == Event {
		return p.event(r)
	}
	if r.IsEndOfWatch() {
		return nil
	}
	return p.request(r)
}

func (p *Printer) event(r Record) error {
	p.order.Note(r)
	err := p.line(p.begin(r) + p.short(r.Text()) + " delivered")
	p.open = &r
	return err
}

func (p *Printer) request(r Record) error {
	text := p.short(r.Text())
	before, ok := p.order.Before(r)
	if ok {
		text = "→ " + gap(r.Time.Sub(before.Time)) + " → " + text
	}
	if ok && p.open != nil && p.open.N == before.N && p.open.By.key() == r.By.key() {
		p.open = nil
		_, err := fmt.Fprintf(p.W, " %s\n", text)
		return err
	}
	return p.line(p.begin(r) + text + "\n")
}

// short leaves out the printer's namespace.
func (p *Printer) short(text string) string {
	if p.Namespace == "" {
		return text
	}
	return strings.Replace(text, " "+p.Namespace+"/", " ", 1)
}

// line closes the open line and writes a text.
func (p *Printer) line(text string) error {
	if err := p.Close(); err != nil {
		return err
	}
	_, err := io.WriteString(p.W, text)
	return err
}

// Close ends the open line.
func (p *Printer) Close() (err error) {
	if p.open != nil {
		_, err = io.WriteString(p.W, "\n")
	}
	p.open = nil
	return err
}

// begin is the time and the program. The second process of a name has its number.
func (p *Printer) begin(r Record) string {
	if p.pids == nil {
		p.pids = map[string]int{}
	}
	name := r.By.Name
	if first, known := p.pids[name]; !known {
		p.pids[name] = r.By.PID
	} else if first != r.By.PID {
		name = fmt.Sprintf("%s[%d]", name, r.By.PID)
	}
	p.column = max(p.column, len(name))
	return fmt.Sprintf("%s  %-*s  ", r.clock(), p.column, name)
}

func (r Record) clock() string { return r.Time.Local().Format("15:04:05.000") }

// Text is an event or a request in words: "Deployment myweb MODIFIED", "update mywebs/status myweb 200 moved".
func (r Record) Text() string {
	words := []string{cmp.Or(r.Kind, r.Resource), r.object(), r.Type}
	if r.Is == Request {
		code, dry := "no answer", ""
		if r.Code > 0 {
			code = strconv.Itoa(r.Code)
		}
		if r.DryRun {
			dry = "dry run"
		}
		words = []string{r.Verb, r.What(), r.object(), dry, code, r.Effect}
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

// object leaves out the namespace that everything is in unless something else was asked for.
func (r Record) object() string { return strings.TrimPrefix(r.Which(), "default/") }

// gap is a time between an event and a request.
func gap(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(time.Second).String()
}
