package window

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// tabOfTest is a tab that shows a page's terminal, without a browser.
type tabOfTest struct {
	*testing.T
	connection *websocket.Conn
	// shown has all output, last is the newest message.
	shown strings.Builder
	last  Message
	// lazy means that the tab does not report what it draws.
	lazy bool
}

func (f *fixture) newTab(t *testing.T) *tabOfTest {
	t.Helper()
	tab := &tabOfTest{T: t, connection: f.dial(t, "page", "README.md")}
	t.Cleanup(func() { _ = tab.connection.CloseNow() })
	return tab
}

func (tab *tabOfTest) keys(keys string) {
	tab.Helper()
	if err := tab.connection.Write(tab.Context(), websocket.MessageBinary, []byte(keys)); err != nil {
		tab.Fatal(err)
	}
}

func (tab *tabOfTest) send(request string) {
	tab.Helper()
	if err := tab.connection.Write(tab.Context(), websocket.MessageText, []byte(request)); err != nil {
		tab.Fatal(err)
	}
}

// until reads what the tab gets until it is right.
func (tab *tabOfTest) until(what string, isRight func() bool) {
	tab.Helper()
	ctx, cancel := context.WithTimeout(tab.Context(), time.Minute)
	defer cancel()
	for !isRight() {
		kind, data, err := tab.connection.Read(ctx)
		if err != nil {
			shown := tab.shown.String()
			tab.Fatalf("%s did not come: %v; the end of %d bytes is %q, the last message %+v", what, err, len(shown),
				shown[max(0, len(shown)-500):], tab.last)
		}
		if kind == websocket.MessageText {
			tab.last = Message{}
			if err := json.Unmarshal(data, &tab.last); err != nil {
				tab.Fatal(err)
			}
			continue
		}
		tab.shown.Write(data)
		if !tab.lazy {
			tab.send(fmt.Sprintf(`{"drawn":%d}`, len(data)))
		}
	}
}

// shows waits until a text comes that has not come before.
func (tab *tabOfTest) shows(text string) {
	tab.Helper()
	tab.until(text, func() bool { return strings.Contains(tab.shown.String(), text) })
	tab.shown.Reset()
}

// waitsFor makes the terminal run a program that opens a pipe, which is a sign that it runs and does not read the
// terminal. The returned function lets the program end.
func (tab *tabOfTest) waitsFor(f *fixture, then string) (end func()) {
	tab.Helper()
	pipe := filepath.Join(f.root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil && !os.IsExist(err) {
		tab.Fatal(err)
	}
	tab.keys("cat pipe" + then + "\r")
	file, err := os.OpenFile(pipe, os.O_WRONLY, 0) // until cat has opened it, too
	if err != nil {
		tab.Fatal(err)
	}
	return func() { _ = file.Close() }
}

// lines returns lines of at least some bytes.
func lines(bytes int) string {
	var text strings.Builder
	for i := 0; text.Len() < bytes; i++ {
		fmt.Fprintf(&text, "line %-54d\r", i)
	}
	return text.String()
}

func TestCtrlCEndsAProgramThatDoesNotReadAPaste(t *testing.T) {
	f := start(t)
	tab := f.newTab(t)
	tab.shows("checkout")
	for _, size := range []int{3000, 5000, 10_000, 20_000, 60_000, 100_000, 1 << 19} {
		end := tab.waitsFor(f, "")
		tab.keys(lines(size))
		other := f.newTab(t) // a second tab opens meanwhile, and has another width
		other.send(fmt.Sprintf(`{"size":{"columns":%d,"rows":24}}`, 100+size%7))
		other.until("its size", func() bool { return other.last.Size != nil && int(other.last.Size.Columns) == 100+size%7 })
		_ = other.connection.CloseNow()
		tab.keys("\x03")
		tab.shows("^C")
		end()
		tab.keys(fmt.Sprintf("echo $((%d+1)) alive\r", size))
		tab.shows(fmt.Sprintf("%d alive", size+1)) // no line of the paste came before it
	}
}

func TestTheWindowEndsWhileAPasteWaits(t *testing.T) {
	f := start(t)
	tab := f.newTab(t)
	tab.shows("checkout")
	end := tab.waitsFor(f, "")
	defer end()
	tab.keys(lines(100_000))
	tab.shows("line 50") // the rest waits
	f.close(t)
}

func TestAPasteArrivesWhenTheProgramReads(t *testing.T) {
	f := start(t)
	tab := f.newTab(t)
	tab.shows("checkout")
	end := tab.waitsFor(f, "; stty -echo; wc -l")
	paste := lines(1 << 19)
	tab.keys(paste + "\x04")
	end()
	tab.shows(fmt.Sprintf("%d\r\n", strings.Count(paste, "\r")))
}

func TestAPasteThatDoesNotFitIsRefusedInWords(t *testing.T) {
	f := start(t)
	tab := f.newTab(t)
	tab.shows("checkout")
	end := tab.waitsFor(f, "")
	defer end()
	tab.keys(lines(700_000))
	tab.keys(lines(700_000))
	tab.until("the refusal", func() bool { return strings.Contains(tab.last.Refused, "at most 1 MiB") })
	tab.keys("\x03")
	tab.shows("^C")
}

func TestTheTerminalHasTheWidthOfATabThatIsThere(t *testing.T) {
	f := start(t)
	wide, narrow := f.newTab(t), f.newTab(t)
	wide.shows("checkout")
	is := func(columns uint16) func() bool {
		return func() bool { return wide.last.Size != nil && wide.last.Size.Columns == columns }
	}
	wide.send(`{"size":{"columns":150,"rows":30}}`)
	wide.until("its size", is(150))
	narrow.send(`{"size":{"columns":40,"rows":20}}`)
	wide.until("the size of the narrow tab", is(40))
	testkit.Must(t, narrow.connection.Close(websocket.StatusNormalClosure, ""))
	wide.until("its size", is(150))
	wide.keys("stty size\r")
	wide.shows("30 150")
}

// TestATabThatDrawsNothing slows a program down for a moment, and holds a bounded part of its output.
func TestATabThatDrawsNothing(t *testing.T) {
	f := start(t)
	tab := f.newTab(t)
	tab.shows("checkout")
	tab.lazy = true
	const size = 4 << 20
	tab.keys(fmt.Sprintf("yes | head -c %d; echo the end $((6*7)); touch ended\r", size))
	eventually(t, func() bool { _, err := os.Stat(filepath.Join(f.root, "ended")); return err == nil })
	terminal, err := f.terminals.get("page", "README.md", false)
	testkit.Must(t, err)
	kept := 0
	tab.until("all that was kept for it", func() bool {
		kept = tab.shown.Len()
		return kept > high
	})
	if kept > 2*high {
		t.Errorf("the window kept %d bytes for the tab", kept)
	}
	if strings.Contains(tab.shown.String(), "the end 42") {
		t.Error("all output was kept")
	}
	terminal.mu.Lock()
	if held := cap(terminal.scroll); held > 8*scrollback {
		t.Errorf("the terminal holds %d bytes", held)
	}
	terminal.mu.Unlock()
	tab.lazy = false
	tab.send(fmt.Sprintf(`{"drawn":%d}`, 2*kept))
	tab.shows("KiB of output are not shown")
	tab.shows("the end 42")
}

// blockOf returns the number of the block of README.md with a text.
func (f *fixture) blockOf(t *testing.T, text string) int {
	t.Helper()
	blocks, err := f.parsed("README.md")
	testkit.Must(t, err)
	return slices.IndexFunc(blocks, func(b *page.Block) bool { return strings.Contains(b.Text, text) })
}

// ends waits until a block or a command has this state.
func (tab *tabOfTest) ends(is, says string) {
	tab.Helper()
	tab.until(is+": "+says, func() bool {
		return tab.last.State != nil && tab.last.State.Is == is && strings.Contains(tab.last.State.Says, says)
	})
}

func TestABackgroundBlockWithoutItsProgramFails(t *testing.T) {
	f := start(t)
	first := f.blockOf(t, "no-such-program")
	for number, want := range map[int]struct{ name, says string }{
		first: {"lost", "It ended before it printed “ready”."}, first + 2: {"missing", "It failed with code 127."},
	} {
		tab := &tabOfTest{T: t, connection: f.dial(t, want.name, "README.md")}
		tab.send(fmt.Sprintf(`{"block":%d}`, number))
		tab.ends("failed", want.says)
		_ = tab.connection.CloseNow()
	}
}

// The window says which step of a check runs.
func TestTheStepsOfACheckAreShown(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"),
		"check:\n\t@printf '\\r\\033[Kcompiling packages: 3 of 9'; read x; echo; echo '  running check 2 of 5: 8 s'; read x\n")
	tab := &tabOfTest{T: t, connection: f.dial(t, commands, "")}
	tab.send(`{"id":"check","command":"make check EX=04.1"}`)
	tab.ends("running", "compiling packages: 3 of 9")
	tab.keys("\r")
	tab.ends("running", "running check 2 of 5: 8 s")
	tab.keys("\r")
	tab.ends("passed", "")
	_ = tab.connection.CloseNow()
}

// go build prints nothing while it compiles.
func TestACommandThatCompilesSaysSo(t *testing.T) {
	f := start(t)
	tab := &tabOfTest{T: t, connection: f.dial(t, commands, "")}
	tab.send(`{"id":"x","command":"read x # go build"}`)
	tab.ends("running", "Go compiles first")
	tab.keys("\n") // read may not have begun, and then takes no carriage return
	tab.ends("done", "")
	_ = tab.connection.CloseNow()
}

// A block runs where the block before it has ended, whatever folder the reader has gone to.
func TestABlockRunsInTheFolderOfItsPage(t *testing.T) {
	f := start(t)
	tab := f.newTab(t)
	tab.shows("checkout")
	counts, away := f.blockOf(t, "wc -l <count"), "mcode $" // the prompt
	tab.keys("cd code\r")
	tab.shows(away)
	tab.send(fmt.Sprintf(`{"block":%d}`, counts))
	tab.shows("back to the folder of the page")
	tab.ends("passed", "")
	if _, err := os.Stat(filepath.Join(f.root, "count")); err != nil {
		t.Error(err)
	}
	tab.keys("cd code\r")
	tab.shows(away)
	server := &tabOfTest{T: t, connection: f.dial(t, "server", "README.md")}
	server.send(fmt.Sprintf(`{"block":%d}`, f.blockOf(t, "ready with")))
	server.ends("passed", "It runs")
	if shown := server.shown.String(); !strings.Contains(shown, "mcheckout $") {
		t.Errorf("a background block runs elsewhere: %q", shown)
	}
	_ = server.connection.CloseNow()
}

// The button Check takes part in a room when the window was opened with the room's address.
func TestCheckTakesPartInTheRoomOfTheWindow(t *testing.T) {
	f := start(t)
	f.Room = " ROOM='http://127.0.0.1:9' NAME='Jörg B.'"
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "check hint:\n\t@echo \"$@ for [$(ROOM)] [$(NAME)]\"\n")
	tab := &tabOfTest{T: t, connection: f.dial(t, commands, "")}
	tab.send(`{"id":"check","command":"make check EX=04.1"}`)
	tab.shows("check for [http://127.0.0.1:9] [Jörg B.]")
	tab.ends("passed", "")
	tab.send(`{"id":"hint","command":"make hint EX=04.1"}`)
	tab.shows("hint for [] []")
	_ = tab.connection.CloseNow()
}

// A block is repeated as the page runner repeats it: for longer than its page says while its output changes.
func TestARepeatGoesOnWhileThereIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		terminal, b := newTerminal(nil), &page.Block{Within: time.Minute}
		r := &run{again: page.NewRepeat(io.Discard, b).Again, judge: func(string, string) State { return failedWith("1") }}
		for second := range 300 {
			time.Sleep(time.Second)
			terminal.mu.Lock()
			fmt.Fprint(&r.out, second)
			terminal.end(r)
			if is := terminal.states[""].Is; is != "running" {
				t.Fatalf("after %d s: %s", second, is)
			}
			terminal.mu.Unlock()
		}
	})
}
