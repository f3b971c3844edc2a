package window

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/internal/exercise"
)

const (
	// goplsNeeds is how much memory must be available before gopls starts: its heap, and a check beside it.
	goplsNeeds = 3 << 30
	// goplsStarts is how often gopls may end by itself in a folder, until the window no longer starts it there.
	goplsStarts = 3
)

// goplsEnv lets gopls and the go commands that it runs read the modules of this machine, and neither download nor report
// anything. Without the last variable both start a process that sends counters, if the user has agreed to that.
var goplsEnv = []string{"GOMEMLIMIT=1GiB", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOPROXY=off", "GONOPROXY=none",
	"GOSUMDB=off", "GOVCS=*:off", "GOPACKAGESDRIVER=off", "GO_TELEMETRY_CHILD=2"}

// goplsMethods are the messages that the editor sends to gopls. Others could make gopls run commands.
var goplsMethods = []string{"initialize", "initialized", "$/cancelRequest", "textDocument/didOpen", "textDocument/didChange",
	"textDocument/didClose", "textDocument/completion", "textDocument/hover", "textDocument/signatureHelp"}

// goplsOptions are the options that the editor gives to gopls. Others could make gopls run a program.
var goplsOptions = []string{"linksInHover", "diagnosticsTrigger"}

// languageServers runs Go's language server, gopls: one process for each folder of exercises, while a tab shows a file of
// the folder.
type languageServers struct {
	config Config
	env    []string

	mu      sync.Mutex
	folders map[string]*goFolder
	closed  bool
	running sync.WaitGroup
}

// A goFolder is a folder of exercises.
type goFolder struct {
	// turn is taken by the tab to which gopls answers. The next tab waits.
	turn   chan struct{}
	deaths int
}

func (l *languageServers) open(c Config, temporary string) {
	l.config, l.folders = c, map[string]*goFolder{}
	l.env = slices.Concat(c.Env, goplsEnv, []string{"GOPLSCACHE=" + filepath.Join(c.State, "gopls"), "TMPDIR=" + temporary})
}

// close waits until every gopls has ended. The contexts of their connections have ended before.
func (l *languageServers) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.running.Wait()
}

func (l *languageServers) folder(dir string) *goFolder {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.folders[dir] == nil {
		l.folders[dir] = &goFolder{turn: make(chan struct{}, 1)}
	}
	return l.folders[dir]
}

// address returns the address of an exercise's file for gopls. It is empty when gopls is not compiled, has ended too
// often, or would get too little memory.
func (l *languageServers) address(e exercise.Exercise) string {
	dir, err := l.dir(e)
	if err != nil || filepath.Ext(e.File) != ".go" || !l.mayStart(dir) {
		return ""
	}
	return fileAddress(filepath.Join(dir, filepath.Base(e.File)))
}

// dir returns the folder of the exercise's file. No symbolic link leads it out of work/.
func (l *languageServers) dir(e exercise.Exercise) (string, error) {
	work, err := filepath.EvalSymlinks(l.config.Course.Work)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(l.config.Course.Dir(e), filepath.Dir(e.File)))
	if err == nil && !isBelow(work, dir) {
		err = fmt.Errorf("%s is not in work/", dir)
	}
	return dir, err
}

func (l *languageServers) mayStart(dir string) bool {
	if _, err := os.Stat(l.config.Gopls); err != nil {
		return false
	}
	memory, err := l.config.Memory()
	folder := l.folder(dir)
	l.mu.Lock()
	defer l.mu.Unlock()
	return err == nil && memory >= goplsNeeds && folder.deaths < goplsStarts && !l.closed
}

// gopls connects the editor of a tab to gopls, until one of the two has ended.
func (s *Server) gopls(w http.ResponseWriter, r *http.Request) {
	e, ok := s.begun(w, r)
	if !ok {
		return
	}
	dir, err := s.languageServers.dir(e)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	connection := s.accept(w, r)
	if connection == nil {
		return
	}
	defer connection.CloseNow()
	connection.SetReadLimit(8 * mostOfText) // JSON may write six bytes for one
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	messages := make(chan []byte)
	go func() {
		defer cancel()
		if err := receive(ctx, connection, dir, messages); err != nil {
			_ = connection.Close(websocket.StatusPolicyViolation, err.Error())
		}
	}()
	if died := s.languageServers.serve(ctx, dir, connection, messages); died {
		_ = connection.Close(websocket.StatusInternalError, "gopls has ended")
		return
	}
	_ = connection.Close(websocket.StatusNormalClosure, "")
}

// receive reads the messages of an editor. The error is the reason for which a message is refused.
func receive(ctx context.Context, connection *websocket.Conn, dir string, messages chan<- []byte) error {
	for {
		_, message, err := connection.Read(ctx)
		if err != nil {
			return nil // the tab is closed
		}
		if err := checkMessage(message, dir); err != nil {
			return err
		}
		select {
		case messages <- message:
		case <-ctx.Done():
			return nil
		}
	}
}

// checkMessage refuses a message that the editor does not send, or that is not about files in the folder.
func checkMessage(message []byte, dir string) error {
	var m struct {
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
		Params struct {
			RootURI               string         `json:"rootUri"`
			WorkspaceFolders      []goplsFile    `json:"workspaceFolders"`
			InitializationOptions map[string]any `json:"initializationOptions"`
			TextDocument          goplsFile      `json:"textDocument"`
		} `json:"params"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	if m.Method != "" && !slices.Contains(goplsMethods, m.Method) { // an answer has no method
		return fmt.Errorf("the window does not pass on %s", m.Method)
	}
	if m.Result != nil { // the editor answers that it cannot; an answer could set options
		return errors.New("the window does not pass on a result")
	}
	for option := range m.Params.InitializationOptions {
		if !slices.Contains(goplsOptions, option) {
			return fmt.Errorf("the window does not pass on the option %s", option)
		}
	}
	for _, file := range append(m.Params.WorkspaceFolders, goplsFile{m.Params.RootURI}, m.Params.TextDocument) {
		if file.URI != "" && !file.isBelow(dir) {
			return fmt.Errorf("the file is not in %s", filepath.Base(dir))
		}
	}
	return nil
}

// A goplsFile is the address of a file or of a folder.
type goplsFile struct {
	URI string `json:"uri"`
}

// isBelow reports whether the file is in a folder. Its address is only a path: gopls and the window read it alike.
func (f goplsFile) isBelow(dir string) bool {
	parsed, err := url.Parse(f.URI)
	return err == nil && f.URI == fileAddress(parsed.Path) && isBelow(dir, filepath.FromSlash(parsed.Path))
}

// serve waits for the turn of a tab, and lets gopls answer it. died means that gopls has ended by itself.
func (l *languageServers) serve(ctx context.Context, dir string, connection *websocket.Conn, messages <-chan []byte) (died bool) {
	folder := l.folder(dir)
	select {
	case folder.turn <- struct{}{}:
		defer func() { <-folder.turn }()
	case <-ctx.Done():
		return false
	}
	if !l.mayStart(dir) {
		return false
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return false
	}
	l.running.Add(1)
	l.mu.Unlock()
	defer l.running.Done()
	if died = l.run(ctx, dir, connection, messages); died {
		l.mu.Lock()
		folder.deaths++
		l.mu.Unlock()
	}
	return died
}

// run starts gopls and passes messages on in both directions. It returns after gopls and its go commands have ended. They
// leave the processor to the reader's checks.
func (l *languageServers) run(ctx context.Context, dir string, connection *websocket.Conn, messages <-chan []byte) (died bool) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, "nice", "-n", "10", l.config.Gopls)
	cmd.Dir, cmd.Env = dir, l.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil || cmd.Start() != nil {
		died = ctx.Err() == nil
		cancel()
		return died
	}
	defer func() {
		cancel() // it ends go commands that gopls has left
		_ = cmd.Wait()
	}()
	if connection.Write(ctx, websocket.MessageText, []byte("{}")) != nil { // gopls is there
		return false
	}
	go func() {
		for {
			select {
			case message := <-messages:
				_ = writeMessage(in, message) // the end of gopls ends run
			case <-ctx.Done():
				return
			}
		}
	}()
	reader := bufio.NewReader(out)
	for {
		message, err := readMessage(reader)
		if err != nil {
			return ctx.Err() == nil
		}
		if connection.Write(ctx, websocket.MessageText, message) != nil {
			return false
		}
	}
}

func fileAddress(path string) string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(path)}).String()
}

// isBelow reports whether a path is a folder, or in it.
func isBelow(folder, path string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(relative)
}
