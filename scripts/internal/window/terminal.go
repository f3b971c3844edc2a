package window

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"

	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/internal/translation"
)

//go:embed shell.sh
var shellScript []byte

// scrollback is how many bytes of a terminal's past output a page gets when it is opened later, or again.
const scrollback = 256 << 10

// A terminal is a shell on a pseudo-terminal, for all browser tabs that show it. It lives in the server: a reloaded
// page finds it unchanged.
type terminal struct {
	command func() *exec.Cmd
	busy    string // says that something runs, where a button does not stand beside the terminal

	mu      sync.Mutex
	changed *sync.Cond // for who waits for input, for slow tabs or for the shell's end
	shell   *exec.Cmd
	file    *os.File // of the pseudo-terminal, nil when no shell runs
	ended   chan struct{}
	closed  bool
	hurries bool // the shell is ended, so its last output waits for no tab
	input   []byte
	size    pty.Winsize
	scroll  []byte
	viewers []*viewer // the tab whose size changed last is the last one
	states  map[string]State
	fresh   bool // the shell has started and has not shown its prompt yet
	idle    bool // the shell shows its prompt
	prompts bool // a command has ended, so the next prompt is a new prompt, not an old prompt that is drawn again
	away    bool // the shell is not in the root folder
	now     *run
	waiting *run // for the first prompt
}

// A Message has the facts that a tab needs besides output.
type Message struct {
	State    *State  `json:"state,omitempty"`
	States   []State `json:"states,omitempty"`
	Size     *Size   `json:"size,omitempty"`
	Replayed bool    `json:"replayed,omitempty"`
	// Refused says why input was refused.
	Refused string `json:"refused,omitempty"`
}

// A Size is the size of a terminal, in characters.
type Size struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// A State is the result of a command that a page has typed.
type State struct {
	// ID is the block's number, or the name of a button's action.
	ID string `json:"id"`
	// Is: running, passed, failed, done (a command that judges nothing has succeeded), refused, moved (to another
	// terminal).
	Is string `json:"is"`
	// Says is one sentence, Detail has the expected and the actual output.
	Says   string `json:"says,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// A run is a command that a page has typed.
type run struct {
	id, text string
	// until is a text whose appearance makes the command a success while it continues.
	until string
	// judge returns the result of a command that has ended.
	judge func(printed string, code string) State
	// again reports whether a command is repeated because its output differs from the page.
	again func(printed string) bool
	// then is called after a success.
	then func()
	// other runs the command in another terminal, while a program that the reader started uses this one.
	other func(*run)
	// root is the folder in which the command runs; empty means the folder of the shell.
	root string
	// steps means that the command prints the steps that take more than a moment.
	steps bool
	// strict means that the shell stops at the first error, as the page runner does.
	strict bool

	out  output.Buffer
	code string
	// printing means that a command of the text runs now.
	printing bool
	passed   bool
}

func newTerminal(command func() *exec.Cmd) *terminal {
	t := &terminal{command: command, states: map[string]State{}, size: pty.Winsize{Cols: 96, Rows: 24}}
	t.changed = sync.NewCond(&t.mu)
	return t
}

// start starts the shell unless it runs. The caller holds the lock.
func (t *terminal) start() error {
	if t.file != nil || t.closed {
		return nil
	}
	cmd := t.command()
	file, err := pty.StartWithSize(cmd, &t.size)
	if err != nil {
		return err
	}
	t.shell, t.file, t.ended, t.idle = cmd, file, make(chan struct{}), false
	t.fresh, t.hurries, t.input = true, false, nil
	go t.read(cmd, file, t.ended)
	go t.feed(file)
	return nil
}

// read reads the output of the shell until the shell has ended.
func (t *terminal) read(cmd *exec.Cmd, file *os.File, ended chan struct{}) {
	var marks scanner
	buffer := make([]byte, 32<<10)
	for {
		t.mu.Lock()
		for t.isSlowed() {
			t.changed.Wait()
		}
		t.mu.Unlock()
		n, err := file.Read(buffer)
		t.mu.Lock()
		marks.scan(buffer[:n], t.print, t.found)
		t.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = cmd.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.now != nil {
		t.set(State{ID: t.now.id, Is: "failed", Says: translation.Mark("The shell has ended.")})
	}
	t.print([]byte("\r\n[the shell has ended: press Enter for another one]\r\n"))
	_ = file.Close()
	t.file, t.now, t.idle = nil, nil, false
	t.changed.Broadcast()
	close(ended)
}

// print keeps output and sends it to the tabs. The caller holds the lock.
func (t *terminal) print(text []byte) {
	if len(text) == 0 {
		return
	}
	if t.scroll = append(t.scroll, text...); len(t.scroll) > 2*scrollback {
		t.scroll = bytes.Clone(lastLines(t.scroll, scrollback))
	}
	t.show(text)
	if r := t.now; r != nil && r.printing {
		_, _ = r.out.Write(text)
		if all := stepLine.FindAllSubmatch(text, -1); r.steps && len(all) > 0 {
			t.set(State{ID: r.id, Is: "running", Says: string(all[len(all)-1][1])})
		}
		if !r.passed && r.until != "" && strings.Contains(r.out.String(), r.until) {
			r.passed = true
			t.set(State{ID: r.id, Is: "passed", Says: fmt.Sprintf(translation.Mark("It runs: it printed “%s”."), r.until)})
		}
	}
}

// stepLine matches a step that takes more than a moment, as make check prints it.
var stepLine = regexp.MustCompile(`(?:^|[\r\n])(?:\x1b\[K)?(?:  )?((?:compiling|downloading|making|running|starting) [^\r\n\x1b]+)`)

// found reacts to a mark. The caller holds the lock.
func (t *terminal) found(m mark) {
	r := t.now
	switch m.kind {
	case 'C':
		t.idle = false
		if r != nil {
			r.printing = r.code == "" || r.code == "0" // after an error the shell skips the other lines
		}
	case 'E':
		t.prompts, t.away = true, false
		if r != nil {
			r.printing = false
			if r.code == "" || r.code == "0" {
				r.code = m.code
			}
		}
	case 'A':
		t.away = true
	case 'P':
		if !t.prompts {
			return
		}
		t.prompts, t.fresh, t.idle = false, false, true
		if r != nil {
			t.now = nil
			t.end(r)
		}
		if next := t.waiting; next != nil {
			t.waiting = nil
			t.write(next)
		}
	}
}

// end passes the output of an ended command to its judge, and acts on the result. The caller holds the lock.
func (t *terminal) end(r *run) {
	state := r.judge(r.out.String(), r.code)
	state.ID = r.id
	retry := state.Is == "failed" && r.again != nil && r.again(r.out.String())
	if retry {
		state.Is, state.Says, state.Detail = "running", translation.Mark("Not yet: it is repeated until it matches."), ""
	}
	t.set(state)
	switch {
	case retry:
		time.AfterFunc(time.Second, func() { t.repeat(r) })
	case state.Is == "passed" && r.then != nil:
		go r.then()
	}
}

// repeat types a command again, unless the reader has typed another command meanwhile.
func (t *terminal) repeat(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.idle || t.now != nil || t.file == nil {
		t.set(State{ID: r.id, Is: "failed", Says: translation.Mark("It was not repeated: the terminal is in use.")})
		return
	}
	t.write(&run{id: r.id, text: r.text, judge: r.judge, again: r.again, then: r.then, strict: r.strict})
}

// set keeps a state and sends it to the tabs. The caller holds the lock.
func (t *terminal) set(s State) {
	t.states[s.ID] = s
	t.inform(Message{State: &s})
}

// write types a command. It writes the command as pasted text, so that all lines of a block are one input. The caller
// holds the lock.
func (t *terminal) write(r *run) {
	t.now, t.idle = r, false
	const toEnd, clear, strict = "\x05", "\x15", "\x1b[7717~" // the last one is a key of shell.sh
	begin, text := toEnd+clear, strings.TrimRight(r.text, "\n")
	if r.strict {
		begin += strict
	}
	if r.root != "" && t.away {
		text = fmt.Sprintf("(cd '%s' && %s)", strings.ReplaceAll(r.root, "'", `'\''`), text)
	}
	if err := t.enter([]byte(begin + "\x1b[200~" + text + "\x1b[201~\r")); err != nil {
		t.now = nil
		t.set(State{ID: r.id, Is: "failed", Says: err.Error()})
	}
}

// run types a command, or returns the reason why not.
func (t *terminal) run(r *run) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.start(); err != nil {
		t.set(State{ID: r.id, Is: "failed", Says: err.Error()})
		return
	}
	if t.now == nil && t.waiting == nil && !t.idle && !t.fresh && r.other != nil { // the reader's own program runs
		go r.other(r)
		return
	}
	if t.now != nil || t.waiting != nil || !t.idle && !t.fresh {
		t.set(State{ID: r.id, Is: "refused",
			Says: cmp.Or(t.busy, translation.Mark("Something runs in this terminal: wait for it, or press Ctrl-C there."))})
		return
	}
	says := translation.Mark("It runs.")
	if compiles.MatchString(r.text) {
		says = translation.Mark("It runs: Go compiles first, which takes some minutes the first time.")
	}
	t.set(State{ID: r.id, Is: "running", Says: says})
	if !t.idle {
		t.waiting = r
		return
	}
	t.write(r)
}

// compiles matches commands of Go that print nothing while they compile.
var compiles = regexp.MustCompile(`\bgo (build|run|test|install|vet)\b`)

// stop ends the shell and every process that it has started in its session.
func (t *terminal) stop(grace time.Duration, forever bool) error {
	t.mu.Lock()
	t.closed, t.hurries = t.closed || forever, true
	t.changed.Broadcast()
	shell, file, ended := t.shell, t.file, t.ended
	t.mu.Unlock()
	if file == nil {
		return nil
	}
	err := endSession(shell.Process.Pid, grace)
	select {
	case <-ended:
	case <-time.After(grace):
		err = errors.Join(err, errors.New("the terminal's shell was not gone in time"))
	}
	return err
}
