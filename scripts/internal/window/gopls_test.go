package window

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/internal/testkit"
)

const goProgram = `package main

// A Client talks to <b>the</b> cluster.
type Client struct{}

// Fetch reads one object.
func (Client) Fetch() {}

func main() {
	client := Client{}
	client.Fetch()
`

// withGopls returns a checkout with a Go program and gopls, or skips the test.
func withGopls(t *testing.T) *fixture {
	t.Helper()
	compiled, err := filepath.Abs("../../../bin/gopls")
	testkit.Must(t, err)
	if _, err := os.Stat(compiled); err != nil {
		t.Skip("gopls is not compiled: make tools-gopls")
	}
	f := start(t)
	testkit.Must(t, os.Symlink(compiled, f.Gopls))
	testkit.Write(t, filepath.Join(filepath.Dir(f.code()), "go.mod"), "module x.test/work\n\ngo 1.26\n")
	testkit.Write(t, f.code(), goProgram)
	return f
}

// running returns the processes of the checkout's gopls.
func (f *fixture) running() []process.Identity {
	return process.Own(func(command string) bool { return strings.HasPrefix(command, f.Gopls) })
}

func TestGoplsCompletesNamesAndShowsTheirDocumentation(t *testing.T) {
	f := withGopls(t)
	ctx := f.editor(t)
	eventually(t, func() bool { return len(f.running()) == 1 })
	do(t, ctx, typeCode("\tclient"))
	eventually(t, func() (shown bool) { // gopls loads the packages first
		do(t, ctx, chromedp.KeyEvent(kb.F9), chromedp.Evaluate(`document.querySelector(".cm-lsp-hover-tooltip") !== null`, &shown))
		return shown
	})
	do(t, ctx, chromedp.KeyEvent("."))
	says(t, ctx, ".cm-tooltip-autocomplete", "Fetch")
	says(t, ctx, ".cm-completionInfo", "Fetch reads one object.")
	do(t, ctx, chromedp.Click(".cm-tooltip-autocomplete li"))
	says(t, ctx, codeText, "\tclient.Fetch()\tclient.Fetch()")
	do(t, ctx, chromedp.KeyEvent(kb.F9))
	says(t, ctx, ".cm-lsp-hover-tooltip", "Fetch reads one object.")
	do(t, ctx, chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent(".cm-lsp-hover-tooltip"))

	var at [2]float64 // the name Client in its declaration
	do(t, ctx, chromedp.Evaluate(`(() => {
		const line = [...document.querySelectorAll(".editor .cm-line")].find(line => line.textContent.startsWith("type Client"));
		line.scrollIntoView({ block: "center" });
		const box = line.querySelector(".tok-typeName").getBoundingClientRect();
		return [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
	})()`, &at))
	var rested time.Time
	eventually(t, func() (shown bool) { // a pointer that moves, and rests
		if time.Since(rested) > 2*time.Second {
			rested = time.Now()
			at[0]--
			do(t, ctx, chromedp.MouseEvent(input.MouseMoved, at[0], at[1]))
		}
		do(t, ctx, chromedp.Evaluate(`document.querySelector(".cm-lsp-hover-tooltip") !== null`, &shown))
		return shown
	})
	says(t, ctx, ".cm-lsp-hover-tooltip", "A Client talks to <b>the</b> cluster.")

	f.refuses.Store(true) // the browser loses its connection
	f.close(t)
	if left := f.running(); len(left) > 0 {
		t.Errorf("the window has ended, and these run: %v", left)
	}
}

func TestGoplsThatDiesDoesNotDisturb(t *testing.T) {
	f := withGopls(t)
	ctx := f.editor(t)
	for range goplsStarts {
		eventually(t, func() bool { return len(f.running()) == 1 })
		gone := f.running()[0]
		testkit.Must(t, gone.Signal(os.Kill))
		eventually(t, gone.IsGone)
		do(t, ctx, typeCode("// more\n"), ctrl("s"))
		says(t, ctx, codeStatus, "Saved.")
	}
	do(t, ctx, chromedp.Reload(), chromedp.WaitVisible(codeText), typeCode("// the last"), ctrl("s"))
	says(t, ctx, codeStatus, "Saved.")
	if left := f.running(); len(left) > 0 {
		t.Errorf("gopls is started again without end: %v", left)
	}
}

func TestGoplsEndsWithItsTab(t *testing.T) {
	f := withGopls(t)
	ctx := f.editor(t)
	eventually(t, func() bool { return len(f.running()) == 1 })
	first := f.running()[0]
	other := f.tab(t, ctx)
	do(t, other, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(codeText))
	do(t, ctx, chromedp.Navigate("about:blank"))
	eventually(t, first.IsGone)
	eventually(t, func() bool { return len(f.running()) == 1 }) // of the other tab
	do(t, other, chromedp.Navigate("about:blank"))
	eventually(t, func() bool { return len(f.running()) == 0 })
}

func TestADocumentationHasNoLinks(t *testing.T) {
	ctx := start(t).browser(t)
	for html, want := range map[string]string{
		`<h2 id="a">A</h2><p>b <em>c</em><br></p><ul><li>d</li></ul>`:                      `<h2>A</h2><p>b <em>c</em><br></p><ul><li>d</li></ul>`,
		`<pre><code class="go"><span id="a">x</span></code></pre>`:                         `<pre><code class="go"><span>x</span></code></pre>`,
		`<p><a href="//a.test"><strong title="b">c</strong></a></p>`:                       `<p><strong>c</strong></p>`,
		`<meta http-equiv="refresh" content="0;url=//a.test"><p>b<img src="//a.test"></p>`: `<p>b</p>`,
		`a<form><script>1 < 2</script><svg><title>b</title></svg></form>`:                  `a1 &lt; 2b`,
	} {
		var is string
		do(t, ctx, chromedp.Evaluate(fmt.Sprintf(`import("/web/gopls.js").then(gopls => gopls.sanitize(%q))`, html), &is,
			func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
		if is != want {
			t.Errorf("%s becomes %s", html, is)
		}
	}
}

func TestAGoplsThatCannotStartHasDied(t *testing.T) {
	var l languageServers
	l.open(Config{}, t.TempDir())
	if died := l.run(t.Context(), filepath.Join(t.TempDir(), "missing"), nil, nil); !died {
		t.Error("the window tries it again without end")
	}
}

// cat is a program that answers each message with the same message.
func TestTheEditorAsksOnlyAboutFilesOfItsFolder(t *testing.T) {
	for message, refused := range map[string]bool{
		`{"method": "initialize", "params": {"rootUri": null}}`:                                                 false,
		`{"method": "textDocument/hover", "params": {"textDocument": {"uri": "FOLDER/main.go"}}}`:               false,
		`{"method": "textDocument/hover", "params": {"textDocument": {"uri": "FOLDER/../.state.yaml"}}}`:        true,
		`{"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "FOLDERS/main.go"}}}`:            true,
		`{"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "file://host/main.go"}}}`:        true,
		`{"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "FOLDER/x?/../../a.go"}}}`:       true,
		`{"method": "textDocument/didOpen", "params": {"textDocument": {"uri": "FOLDER/x#/../../a.go"}}}`:       true,
		`{"method": "initialize", "params": {"rootUri": "file:///etc"}}`:                                        true,
		`{"method": "initialize", "params": {"workspaceFolders": [{"uri": "FOLDER"}]}}`:                         false,
		`{"method": "initialize", "params": {"workspaceFolders": [{"uri": "FOLDER"}, {"uri": "file:///etc"}]}}`: true,
		`{"method": "initialize", "params": {"initializationOptions": {"linksInHover": false}}}`:                false,
		`{"method": "initialize", "params": {"initializationOptions": {"buildFlags": ["-toolexec=x"]}}}`:        true,
		`{"id": 1, "error": {"code": -32601}}`:                                                                  false,
		`{"id": 1, "result": [{"env": {"GOFLAGS": "x"}}]}`:                                                      true,
		`{"method": "workspace/executeCommand", "params": {"command": "gopls.go_get_package"}}`:                 true,
		`nothing`: true,
	} {
		f := start(t)
		testkit.Must(t, os.Symlink("/bin/cat", f.Gopls))
		connection := f.dialPath(t, "/exercises/04.1/gopls")
		if _, first, err := connection.Read(t.Context()); err != nil || string(first) != "{}" {
			t.Fatalf("it begins with %q: %v", first, err)
		}
		message = strings.ReplaceAll(message, "FOLDER", fileAddress(filepath.Dir(f.code())))
		testkit.Must(t, connection.Write(t.Context(), websocket.MessageText, []byte(message)))
		_, answer, err := connection.Read(t.Context())
		if is := websocket.CloseStatus(err) == websocket.StatusPolicyViolation; is != refused || !refused && string(answer) != message {
			t.Errorf("%s: %q, %v", message, answer, err)
		}
	}
}

func TestGoplsRunsWhereItMay(t *testing.T) {
	f := start(t)
	f.enter(t)
	for _, test := range []struct {
		what   string
		change func()
		want   bool
	}{
		{"without the program", func() {}, false},
		{"with the program", func() { testkit.Must(t, os.Symlink("/bin/false", f.Gopls)) }, true},
		{"with little memory", func() { f.languageServers.config.Memory = func() (uint64, error) { return goplsNeeds - 1, nil } }, false},
		{"with enough memory", func() { f.languageServers.config.Memory = func() (uint64, error) { return goplsNeeds, nil } }, true},
		{"after it has ended too often", func() {
			for range goplsStarts {
				connection, err := f.dialPath(t, "/exercises/04.1/gopls"), error(nil)
				for err == nil {
					_, _, err = connection.Read(t.Context())
				}
				if websocket.CloseStatus(err) != websocket.StatusInternalError {
					t.Error(err)
				}
			}
		}, false},
	} {
		test.change()
		var task Task
		f.getJSON(t, "/exercises/04.1", &task)
		if is := task.Files[0].Address == fileAddress(f.code()); is != test.want || !is && task.Files[0].Address != "" {
			t.Errorf("%s: the address is %q", test.what, task.Files[0].Address)
		}
	}
	outside := t.TempDir()
	testkit.Must(t, os.RemoveAll(filepath.Dir(f.code())))
	testkit.Must(t, os.Symlink(outside, filepath.Dir(f.code())))
	if code, body := f.get(t, "http://"+f.host()+"/exercises/04.1/gopls"); !strings.Contains(body, "is not in work/") {
		t.Errorf("a folder outside of work/: %d %s", code, body)
	}
}
