package window

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// A foxTab is a tab of Firefox, which these tests drive with WebDriver BiDi: Firefox serves that protocol itself.
type foxTab struct {
	t          *testing.T
	ctx        context.Context
	connection *websocket.Conn
	tab        string
	last       int
}

// inFirefox opens the window in Firefox, or skips the test unless WINDOW_FIREFOX demands it. The test fails at the end when
// a script of the page threw an error.
func (f *fixture) inFirefox(t *testing.T) *foxTab {
	t.Helper()
	path, err := exec.LookPath("firefox-esr")
	if err != nil {
		if os.Getenv("WINDOW_FIREFOX") != "" {
			t.Fatal(err)
		}
		t.Skip("Debian's package firefox-esr is not installed")
	}
	cmd := exec.Command(path, "--headless", "--no-remote", "--profile", t.TempDir(), "--remote-debugging-port", "0",
		"--width", "1280", "--height", "800")
	said, err := cmd.StderrPipe()
	testkit.Must(t, err)
	testkit.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // its other processes end with it
		_ = cmd.Wait()
	})
	lines, address := bufio.NewScanner(said), regexp.MustCompile(`BiDi listening on (ws://\S+)`)
	for lines.Scan() {
		if match := address.FindStringSubmatch(lines.Text()); match != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute) // it outlives the test's own context
			t.Cleanup(cancel)
			connection, _, err := websocket.Dial(ctx, match[1]+"/session", nil)
			testkit.Must(t, err)
			connection.SetReadLimit(16 << 20)
			b := &foxTab{t: t, ctx: ctx, connection: connection}
			go func() { // a full pipe would stop Firefox
				for lines.Scan() {
				}
			}()
			b.begin(f)
			return b
		}
	}
	t.Fatal("Firefox has ended")
	return nil
}

func (b *foxTab) begin(f *fixture) {
	b.t.Helper()
	b.call("session.new", map[string]any{"capabilities": map[string]any{}}, nil)
	b.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	b.t.Cleanup(func() { b.value("1") }) // this answer comes after the errors
	var tree struct{ Contexts []struct{ Context string } }
	b.call("browsingContext.getTree", map[string]any{}, &tree)
	b.tab = tree.Contexts[0].Context
	b.call("browsingContext.navigate", map[string]any{"context": b.tab, "url": f.Address(), "wait": "complete"}, nil)
	b.waits(`document.querySelector('#panel-page[data-connected="yes"]')`)
}

// call sends a command, and waits for its result.
func (b *foxTab) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.last++
	command, err := json.Marshal(map[string]any{"id": b.last, "method": method, "params": params})
	testkit.Must(b.t, err)
	testkit.Must(b.t, b.connection.Write(b.ctx, websocket.MessageText, command))
	for {
		_, data, err := b.connection.Read(b.ctx)
		testkit.Must(b.t, err)
		var answer struct {
			ID             int
			Error, Message string
			Result         json.RawMessage
			Params         struct{ Level, Text string } // of an event: a line of the log
		}
		testkit.Must(b.t, json.Unmarshal(data, &answer))
		if answer.Params.Level == "error" {
			b.t.Errorf("the browser reports: %s", answer.Params.Text)
		}
		if answer.ID != b.last {
			continue
		}
		if answer.Error != "" {
			b.t.Fatalf("%s: %s: %s", method, answer.Error, answer.Message)
		}
		if result != nil {
			testkit.Must(b.t, json.Unmarshal(answer.Result, result))
		}
		return
	}
}

// value returns the value of an expression, as JSON.
func (b *foxTab) value(expression string) string {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails struct{ Text string }
	}
	b.call("script.evaluate", map[string]any{"expression": "JSON.stringify(" + expression + ")", "awaitPromise": false,
		"target": map[string]any{"context": b.tab}}, &answer)
	if answer.ExceptionDetails.Text != "" {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Text)
	}
	return fmt.Sprint(answer.Result.Value)
}

// waits waits until an expression is true.
func (b *foxTab) waits(expression string) {
	b.t.Helper()
	eventually(b.t, func() bool { return b.value("Boolean("+expression+")") == "true" })
}

// says waits until an element contains a text.
func (b *foxTab) says(selector, want string) {
	b.t.Helper()
	b.waits(fmt.Sprintf(`document.querySelector(%q)?.textContent.includes(%q)`, selector, want))
}

// The keys of WebDriver.
const (
	altKey, ctrlKey                      = "\uE00A", "\uE009"
	enterKey, tabKey, escapeKey, leftKey = "\uE007", "\uE004", "\uE00C", "\uE012"
)

// press presses keys, one after the other, while the modifiers are held.
func (b *foxTab) press(keys string, modifiers ...string) {
	b.t.Helper()
	var actions []map[string]any
	act := func(kind, key string) { actions = append(actions, map[string]any{"type": kind, "value": key}) }
	for _, modifier := range modifiers {
		act("keyDown", modifier)
	}
	for _, key := range strings.Split(keys, "") {
		act("keyDown", key)
		act("keyUp", key)
	}
	for _, modifier := range modifiers {
		act("keyUp", modifier)
	}
	b.call("input.performActions", map[string]any{"context": b.tab,
		"actions": []map[string]any{{"type": "key", "id": "keyboard", "actions": actions}}}, nil)
}

// click clicks on the first button of a place that contains a text, as soon as the button is there and keeps its place.
func (b *foxTab) click(place, text string) {
	b.t.Helper()
	button := fmt.Sprintf(`[...document.querySelectorAll(%q)].find(b => b.textContent.includes(%q) && b.checkVisibility())`,
		place+" button", text)
	b.waits(button)
	var at, last struct{ X, Y int }
	eventually(b.t, func() bool {
		last = at
		testkit.Must(b.t, json.Unmarshal([]byte(b.value(fmt.Sprintf(`(() => {
			const button = %s;
			button?.scrollIntoView({ block: "nearest", behavior: "instant" });
			const box = (button ?? document.body).getBoundingClientRect();
			return { x: Math.round(box.x + box.width / 2), y: Math.round(box.y + box.height / 2) };
		})()`, button))), &at))
		return at == last
	})
	b.call("input.performActions", map[string]any{"context": b.tab, "actions": []map[string]any{{"type": "pointer", "id": "mouse",
		"actions": []map[string]any{{"type": "pointerMove", "x": at.X, "y": at.Y}, {"type": "pointerDown", "button": 0},
			{"type": "pointerUp", "button": 0}}}}}, nil)
}

// TestBeginByClickInFirefox: the command runs, and then the file is open in the editor.
func TestBeginByClickInFirefox(t *testing.T) {
	f := start(t)
	testkit.Write(t, filepath.Join(f.root, "Makefile"), "exercise:\n\t@echo 'package main // the starter' >work/04-x/main.go\n")
	b := f.inFirefox(t)
	b.click(`[role="tablist"]`, "Exercises")
	b.click("#panel-exercises .buttons", "Begin")
	b.says(".editor .cm-content", "package main // the starter")
	b.waits(`document.activeElement.matches(".editor .cm-content")`)
}

// TestARunIsComparedInFirefox: the first difference between the reader's run and the solution's run is marked.
func TestARunIsComparedInFirefox(t *testing.T) {
	f := start(t)
	f.writeReplay(t)
	f.writeSolutionRun(t)
	b := f.inFirefox(t)
	b.click(`[role="tablist"]`, "Exercises")
	b.click("#panel-exercises", "step by step")
	b.click(".loop-bar", "Compare")
	b.says(".loop-comparison .bad .mark", "The first difference: Your run lacks this.")
	b.says(".loop-comparison .bad", "ConfigMap web DELETED")
	if wide := b.value(tooWide); wide != "[]" {
		t.Errorf("wider than their place: %s", wide)
	}
}

// TestAReaderWritesInFirefox uses the keyboard alone.
func TestAReaderWritesInFirefox(t *testing.T) {
	for name, size := range map[string][3]int{"usual": {1280, 800, 1}, "at 200 %": {640, 400, 2}} {
		t.Run(name, func(t *testing.T) {
			f := start(t)
			b := f.inFirefox(t)
			b.call("browsingContext.setViewport", map[string]any{"context": b.tab, "devicePixelRatio": size[2],
				"viewport": map[string]any{"width": size[0], "height": size[1]}}, nil)
			b.waits(fmt.Sprintf("innerWidth === %d && devicePixelRatio === %d", size[0], size[2]))
			b.press("e", altKey)
			b.waits(`document.activeElement.matches(".editor .cm-content")`)
			b.press("a", ctrlKey)
			b.press("package main // right" + enterKey + tabKey + "// indented")
			b.press("s", ctrlKey)
			f.codeBecomes(t, "package main // right\n// indented\n")
			b.says(codeStatus, "Saved.")
			b.press(enterKey, ctrlKey)
			b.says("#panel-exercises .verdict", "passed")
			b.press(escapeKey + tabKey)
			b.waits(`document.activeElement.textContent === "Save" && document.activeElement.checkVisibility()`)
			if wide := b.value(tooWide); wide != "[]" {
				t.Errorf("wider than their place: %s", wide)
			}
			b.press("w", altKey)
			b.waits(`document.activeElement.matches("main")`)
		})
	}
}

func TestAVerdictAndItsReplayInFirefox(t *testing.T) {
	f := start(t)
	f.writeReplay(t)
	e := f.Course.All[0]
	s, err := f.Course.State()
	testkit.Must(t, err)
	testkit.Must(t, f.Course.Judged(e, s, f.Course.Digest(e), exercise.Judgement{
		Own: []exercise.Result{{ID: "behaviour/05-deleted-configmap", Verdict: "failed", What: "it is not back"}}}))
	b := f.inFirefox(t)
	b.value(`document.querySelector("#tab-exercises").click()`)
	b.says("#panel-exercises .card", "it is not back")
	b.waits(`(() => {
		const replay = [...document.querySelectorAll("#panel-exercises button")].find(b => b.textContent.includes("step by step"));
		replay?.click();
		return replay;
	})()`)
	b.says(now, "delete configmaps web 200 moved")
	b.says(now+" .mark", "✗ here it differed: it is not back")
	b.value(`document.querySelector(".arrows").focus()`)
	b.press(leftKey)
	b.says(now, "update mywebs/status web 200 moved")
	b.says(".side", "ConfigMap web")
}
