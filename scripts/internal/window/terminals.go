package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/translation"
)

// terminals has the terminals of a window, by page and name. The blocks of a page run in the terminal "page". Buttons
// type into the terminal "commands", which does not belong to a page. The other terminals have the names of background
// blocks.
type terminals struct {
	config Config
	state  string

	mu     sync.Mutex
	all    map[string]*terminal
	closed bool
}

// Buttons use the terminal "more" while a program of the reader uses "commands". A button runs the reader's program in the
// terminal "program".
const commands, more, program = "commands", "more", "program"

func (ts *terminals) open(c Config) (err error) {
	ts.config, ts.all = c, map[string]*terminal{}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return err
	}
	self, err := process.Of(os.Getpid())
	if err != nil {
		return err
	}
	if err := removeLeft(c.State, self); err != nil {
		return err
	}
	if ts.state, err = os.MkdirTemp(c.State, "window-"); err != nil {
		return err
	}
	record, err := json.Marshal(self)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(ts.state, serverFile), record, 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(ts.state, "shell.sh"), shellScript, 0o600)
}

// serverFile has the identity of the server in the folder of its shells.
const serverFile = "server.json"

// removeLeft removes the folders of servers that have ended without removing them: they have the reader's variables.
func removeLeft(state string, self process.Identity) error {
	left, err := filepath.Glob(filepath.Join(state, "window-*"))
	for _, dir := range left {
		var server process.Identity
		data, readErr := os.ReadFile(filepath.Join(dir, serverFile))
		if readErr != nil || json.Unmarshal(data, &server) != nil || server.IsRunning() {
			continue
		}
		restarted := server.Host == self.Host && server.Boot != self.Boot
		if server.IsLocal() || restarted {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

// close ends all terminals at the same time.
func (ts *terminals) close(grace time.Duration) error {
	ts.mu.Lock()
	ts.closed = true
	all := ts.all
	ts.mu.Unlock()
	errs := make(chan error)
	for _, t := range all {
		go func() { errs <- t.stop(grace, true) }()
	}
	var err error
	for range all {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, os.RemoveAll(ts.state))
}

// get returns a terminal of a page, whose shell begins in the page's folder.
func (ts *terminals) get(name, of string, background bool) (*terminal, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.closed {
		return nil, errors.New("the window is closing")
	}
	key := of + "\n" + name
	if t := ts.all[key]; t != nil {
		return t, nil
	}
	env := append(slices.Clone(ts.config.Env), "TERM=xterm-256color", "COLORTERM=", "PAGER=cat", "WINDOW_ROOT="+ts.config.Root)
	dir := ts.config.Root
	if of != "" {
		dir = filepath.Join(dir, filepath.FromSlash(filepath.Dir(of)))
		variables := filepath.Join(ts.state, strings.ReplaceAll(of, "/", "-"))
		if err := os.MkdirAll(variables, 0o700); err != nil {
			return nil, err
		}
		env = append(env, "PAGE_STATE="+variables)
		if background {
			env = append(env, "WINDOW_LOAD="+page.Load)
		} else {
			env = append(env, "WINDOW_SAVE="+page.Save+"__save")
		}
	}
	env = append(env, "PWD="+dir) // as the reader names it, also through a symbolic link
	t := newTerminal(func() *exec.Cmd {
		cmd := exec.Command("bash", "--noprofile", "--rcfile", filepath.Join(ts.state, "shell.sh"), "-i")
		cmd.Dir, cmd.Env = dir, env
		return cmd
	})
	switch name {
	case commands:
		t.busy = translation.Mark("Something runs in the tab Commands: wait for it, or press Ctrl-C there.")
	case more:
		t.busy = translation.Mark("Something runs in the tab More: wait for it, or press Ctrl-C there.")
	}
	ts.all[key] = t
	return t, nil
}

// terminal connects a tab to a terminal, until one of the two has ended.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) {
	name, of := r.URL.Query().Get("name"), r.URL.Query().Get("page")
	blocks, background, err := s.blocksOf(name, of)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	connection := s.accept(w, r)
	if connection == nil {
		return
	}
	defer connection.CloseNow()
	t, err := s.terminals.get(name, of, background)
	if err != nil {
		_ = connection.Close(websocket.StatusGoingAway, err.Error())
		return
	}
	if !background && name != more && name != program {
		t.mu.Lock()
		err = t.start()
		t.mu.Unlock()
	}
	if err != nil {
		_ = connection.Close(websocket.StatusInternalError, err.Error())
		return
	}
	v := t.view()
	defer t.leave(v)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		defer cancel()
		s.listen(ctx, connection, t, v, blocks, of)
	}()
	send(ctx, connection, t, v, s.speaking(r).said)
}

// blocksOf returns the blocks of a terminal's page.
func (s *Server) blocksOf(name, of string) (blocks []*page.Block, background bool, err error) {
	if slices.Contains([]string{commands, more, program}, name) && of == "" {
		return nil, false, nil
	}
	if !s.pages.has(of) {
		return nil, false, errors.New("there is no such page")
	}
	if blocks, err = s.parsed(of); err != nil || name == "page" {
		return blocks, false, err
	}
	if !slices.ContainsFunc(blocks, func(b *page.Block) bool { return b.Background == name }) {
		return nil, false, errors.New("the page has no such terminal")
	}
	return blocks, true, nil
}

// send sends a tab the output of its terminal.
func send(ctx context.Context, connection *websocket.Conn, t *terminal, v *viewer, said *translation.Translation) {
	alive := time.NewTicker(20 * time.Second)
	defer alive.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-alive.C: // a laptop that slept has lost its connections without an error
			ping, cancel := context.WithTimeout(ctx, 10*time.Second)
			err = connection.Ping(ping)
			cancel()
		case <-v.more:
			for _, piece := range t.take(v) {
				if err = sendOne(ctx, connection, translated(piece, said)); err != nil {
					break
				}
			}
		}
		if err != nil {
			return
		}
	}
}

func sendOne(ctx context.Context, connection *websocket.Conn, piece any) error {
	if text, ok := piece.([]byte); ok {
		return connection.Write(ctx, websocket.MessageBinary, text)
	}
	data, err := json.Marshal(piece)
	if err != nil {
		return err
	}
	return connection.Write(ctx, websocket.MessageText, data)
}

// A request is a request of a tab to a terminal.
type request struct {
	Size *Size `json:"size"`
	// Drawn is how many bytes of output the tab has drawn.
	Drawn int `json:"drawn"`
	// Block is the number of the page's block to run.
	Block *int `json:"block"`
	// Command is the command of a button; ID names the button's action.
	ID      string `json:"id"`
	Command string `json:"command"`
	// Restart first ends what runs in the terminal.
	Restart bool `json:"restart"`
}

// listen receives keys and requests of a tab.
func (s *Server) listen(ctx context.Context, connection *websocket.Conn, t *terminal, v *viewer,
	blocks []*page.Block, of string) {
	connection.SetReadLimit(inputLimit + 1) // terminal.js refuses more
	for {
		kind, data, err := connection.Read(ctx)
		if err != nil {
			return
		}
		if kind == websocket.MessageBinary {
			if err = t.keys(data); errors.Is(err, errInputRefused) {
				t.refuse(v, err)
				err = nil
			}
		} else {
			var want request
			if err = json.Unmarshal(data, &want); err == nil {
				err = s.do(t, v, want, blocks, of)
			}
		}
		if err != nil {
			_ = connection.Close(websocket.StatusPolicyViolation, err.Error())
			return
		}
	}
}

func (s *Server) do(t *terminal, v *viewer, want request, blocks []*page.Block, of string) error {
	switch {
	case want.Size != nil:
		return t.resize(v, *want.Size)
	case want.Drawn > 0:
		t.drawn(v, want.Drawn)
	case want.Block != nil:
		if *want.Block < 0 || *want.Block >= len(blocks) || !isRunnable(blocks[*want.Block]) {
			return errors.New("the page has no such block")
		}
		s.runBlock(t, *want.Block, blocks[*want.Block], of)
	case want.Command != "":
		if !want.Restart || s.restart(t, want.ID) {
			s.runCommand(t, want)
		}
	}
	return nil
}

// runCommand types the command of a button. While a program of the reader uses the terminal, the command runs in the
// terminal "more".
func (s *Server) runCommand(t *terminal, want request) {
	text := want.Command
	if isCheck(text) {
		text += s.Room
	}
	t.run(&run{id: want.ID, text: text, judge: judgeOf(text), root: s.Root, steps: isCheck(text), other: func(r *run) {
		other, err := s.terminals.get(more, "", false)
		if err != nil {
			return // the window is closing
		}
		t.mu.Lock()
		t.set(State{ID: r.id, Is: "moved",
			Says: translation.Mark("Your own program runs here, so the button uses the tab “More”.")})
		t.mu.Unlock()
		r.other = nil
		other.run(r)
	}})
}

// runBlock types a block. A background block gets a new shell, which has the variables of the page's terminal.
func (s *Server) runBlock(t *terminal, number int, b *page.Block, of string) {
	r := &run{id: strconv.Itoa(number), text: b.Text, until: b.Until, strict: true}
	r.judge = func(printed, code string) State { return judge(b, printed, code, r.passed) }
	if b.Within > 0 {
		r.again = page.NewRepeat(io.Discard, b).Again
	}
	if b.Background != "" && !s.restart(t, r.id) {
		return
	}
	if b.Stop != "" {
		if other, err := s.terminals.get(b.Stop, of, true); err == nil {
			r.then = other.interrupt
		}
	}
	t.run(r)
}

// restart ends what runs in a terminal. It reports whether all of it has ended.
func (s *Server) restart(t *terminal, id string) bool {
	err := t.stop(s.Grace, false)
	if err != nil {
		t.mu.Lock()
		t.set(State{ID: id, Is: "failed", Says: err.Error()})
		t.mu.Unlock()
	}
	return err == nil
}

// judgeOf returns the judge of a command, which reads the exit code. Only a check can pass; other commands are done. The
// code of make is 2 for each failure, so the reason is the command's own last error.
func judgeOf(command string) func(printed, code string) State {
	return func(printed, code string) State {
		switch {
		case code != "0" && code != "":
			state := State{Is: "failed", Says: translation.Mark("Its terminal says why.")}
			if all := errorLine.FindAllStringSubmatch(printed, -1); len(all) > 0 {
				state.Says = all[len(all)-1][1]
			}
			return state
		case isCheck(command):
			return State{Is: "passed", Says: translation.Mark("The check succeeded.")}
		}
		return State{Is: "done"}
	}
}

// errorLine matches the first line of an error, as the workshop's program prints it.
var errorLine = regexp.MustCompile(`(?:^|[\r\n])(?:\x1b\[K)?error: ([^\r\n\x1b]+)`)

// These errors are those that each learner meets, so they have translations. Other errors are shown in English, as in
// the terminal.
var _ = []string{translation.Mark("not every check passed"), translation.Mark("nothing was changed")}

func isCheck(command string) bool { return strings.HasPrefix(command, "make check ") }

func failedWith(code string) State {
	return State{Is: "failed", Says: fmt.Sprintf(translation.Mark("It failed with code %s."), code)}
}

// judge compares the output of a block with the page, as the page runner does. A background block that has passed may
// end with any code, because the reader ends it with Ctrl-C.
func judge(b *page.Block, printed, code string, passed bool) State {
	failed := code != "0" && code != ""
	const notExecutable, notFound = "126", "127"
	switch {
	case b.Background != "" && !passed && b.Until != "":
		return State{Is: "failed", Says: fmt.Sprintf(translation.Mark("It ended before it printed “%s”."), b.Until)}
	case b.Background != "" && (code == notExecutable || code == notFound):
		return failedWith(code)
	case b.Background != "":
		return State{Is: "passed", Says: translation.Mark("It has ended.")}
	case b.Fails && !failed:
		return State{Is: "failed", Says: translation.Mark("It succeeded; the page says that it fails.")}
	case failed && !b.Fails:
		return failedWith(code)
	}
	if err := page.Judge(b, printed); err != nil {
		return State{Is: "failed", Says: translation.Mark("The output is not what the page shows."), Detail: err.Error()}
	}
	if b.Expected == nil || b.Expected.Skip != "" {
		return State{Is: "passed", Says: translation.Mark("It succeeded; the page expects no particular output.")}
	}
	return State{Is: "passed", Says: translation.Mark("The output is what the page shows.")}
}
