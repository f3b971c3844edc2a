package loop

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
)

// A Printer prints the loop of programs as it happens: each event that was delivered, and after it the requests that
// followed, with the time between them. This is the order of events and requests: an event before a request is not
// necessarily its cause.
type Printer struct {
	// W receives the output. After an event its line stays open: the next request completes the line.
	W io.Writer
	// Namespace is omitted from the names of objects, and so is the namespace default.
	Namespace string

	open   *Record // the event of the open line
	order  Order
	pids   map[string]int // the first process with a name
	column int
}

// Print prints one record. It omits records of housekeeping and the end of a watch.
func (p *Printer) Print(r Record) error {
	if r.Is == Note {
		return p.line(p.begin(r) + r.Text() + "\n")
	}
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
		text = "→ " + Gap(r.Time.Sub(before.Time)) + " → " + text
	}
	if ok && p.open != nil && p.open.N == before.N && p.open.By.key() == r.By.key() {
		p.open = nil
		_, err := fmt.Fprintf(p.W, " %s\n", text)
		return err
	}
	return p.line(p.begin(r) + text + "\n")
}

// short omits the printer's namespace.
func (p *Printer) short(text string) string { return Short(text, p.Namespace) }

// Short returns the text of a record without a namespace that a reader knows.
func Short(text, namespace string) string {
	if namespace == "" {
		return text
	}
	return strings.Replace(text, " "+namespace+"/", " ", 1)
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

// begin returns the time and the program. It adds the process number when the name is that of a second process.
func (p *Printer) begin(r Record) string {
	if p.pids == nil {
		p.pids = map[string]int{}
	}
	name := output.Line(r.By.Name)
	if first, known := p.pids[name]; !known {
		p.pids[name] = r.By.PID
	} else if first != r.By.PID {
		name = fmt.Sprintf("%s[%d]", name, r.By.PID)
	}
	p.column = max(p.column, len(name))
	return fmt.Sprintf("%s  %-*s  ", r.clock(), p.column, name)
}

func (r Record) clock() string { return r.Time.Local().Format("15:04:05.000") }

// Text describes an event or a request: "Deployment web MODIFIED", "update webs/status web 200 moved". Clients
// chose the names.
func (r Record) Text() string {
	if r.Is == Note {
		return output.Line(r.Note)
	}
	words := []string{cmp.Or(r.Kind, r.Resource), r.object(), r.Type}
	if r.Is == Request {
		code, dry := "no answer", ""
		if r.Code > 0 {
			code = strconv.Itoa(r.Code)
		}
		if r.DryRun {
			dry = "dry run"
		}
		words = []string{r.Verb, r.FullResource(), r.object(), dry, code, r.Effect}
	}
	return output.Line(strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " "))
}

// object omits the namespace default.
func (r Record) object() string { return strings.TrimPrefix(r.Which(), "default/") }

// Gap is the time between an event and a request, in words.
func Gap(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.Round(time.Second).String()
}
