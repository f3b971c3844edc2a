package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/examine/output"
	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// fence begins and ends a block.
const fence = "```"

// pageOfTest has a block of each kind that a terminal treats differently.
const pageOfTest = `# A page

See [the source](code/main.go), [below](#below) and [outside](../secret.txt).
Write it yourself: [exercise 04.2](README.md#write-it-yourself).

<script>document.title = "attacked"</script>

` + fence + `sh
x=1
echo one; echo "two $x"
` + fence + `
Output:
` + fence + `console
one
two 1
` + fence + `
` + fence + `sh
echo other
` + fence + `
` + fence + `console
something
` + fence + `
` + fence + `sh background=server until=ready
echo "ready with $x"; sleep 1000
` + fence + `
` + fence + `sh stop=server
false || echo stopping
` + fence + `
` + fence + `sh fails
false
` + fence + `
` + fence + `sh within=30s
echo x >>count; wc -l <count
` + fence + `
` + fence + `console
3
` + fence + `
` + fence + `sh
echo begin; read -r line; echo "got $line"
` + fence + `
` + fence + `mermaid skip="a picture"
flowchart LR
  a[users<br/>of it] --> b[operator]
` + fence + `

<details><summary>The answer &amp; more</summary>

It was *hidden*.

` + fence + `sh
echo folded
` + fence + `
</details>

<details open onclick="x()"><summary>Not a fold of a page</summary></details>

` + fence + `sh skip="it writes to your folder"
echo one of the menu
echo another of the menu
` + fence + `
` + fence + `sh skip="what it prints depends on your machine"
echo a long \
  command
` + fence + `

` + fence + `sh
v=kept; cd code; (exit 7)
echo "not $((1+1)) reached"
while true; do sleep 1; done
` + fence + `
` + fence + `sh fails
echo shown | while read -r line; do echo "$line"; false; echo hidden; done
echo hidden
` + fence + `
` + fence + `console
shown
` + fence + `

` + fence + `sh background=lost until=ready
./no-such-program
` + fence + `
` + fence + `sh stop=lost
true
` + fence + `
` + fence + `sh background=missing
./no-such-program
` + fence + `
` + fence + `sh stop=missing
true
` + fence + `

## Below
`

// fixture serves a small checkout, whose make target check passes when a file in work/04 is right.
type fixture struct {
	*Server
	client *http.Client
	root   string
	// printed is what the window has printed.
	printed *output.Buffer
	end     context.CancelFunc
	ended   chan error
	// refuses means that the browser may report errors of its connection.
	refuses atomic.Bool
}

func start(t *testing.T) *fixture {
	t.Helper()
	top := t.TempDir()
	root := filepath.Join(top, "checkout")
	files := map[string]string{"README.md": pageOfTest, "code/main.go": "package main\n", "unlinked.txt": "nobody links it\n",
		"Makefile":               "check:\n\t@grep -q right work/04-x/main.go && echo passed\n",
		"04-x/README.md":         "# Chapter four\n",
		"04-x/stages/1/main.go":  "package main // wrong\n",
		"04-x/stages/2/main.go":  "package main // right\n",
		"work/04-x/main.go":      "package main // wrong\n",
		"work/.state.yaml":       "current: \"04.1\"\nexercise: \"04.1\"\nbegun: {04-x: \"04.1\"}\n",
		"../secret.txt":          "a secret\n",
		"scripts/tools/.gitkeep": ""}
	for name, text := range files {
		testkit.Write(t, filepath.Join(root, name), text)
	}
	return startAt(t, root, 0)
}

// startAt serves a checkout at a port.
func startAt(t *testing.T, root string, port int) *fixture {
	t.Helper()
	state := filepath.Join(root, ".workshop")
	course := exercise.Course{Checks: filepath.Join(state, "checks"),
		Workspace: exercise.Workspace{Root: root, Work: filepath.Join(root, "work"), Now: time.Now},
		All: []exercise.Exercise{{ID: "04.1", Title: "Say right", Minutes: 5, Story: "The file says wrong.", Chapter: "04-x",
			Starter: "stages/1", Solution: "stages/2", File: "main.go"}}}
	server, err := New(Config{Root: root, State: state, Env: os.Environ(), Course: course, Grace: 5 * time.Second, Port: port,
		Ledger: filepath.Join(state, "ledger.jsonl"),
		Gopls:  filepath.Join(root, "gopls"), Memory: func() (uint64, error) { return 4 << 30, nil },
		Objects: func() (Reader, error) { return nil, errors.New("no cluster runs") }})
	testkit.Must(t, err)
	ctx, end := context.WithCancel(context.Background()) // it outlives the browser, which ends at the cleanup
	f := &fixture{Server: server, root: root, printed: &output.Buffer{}, end: end, ended: make(chan error, 1)}
	go func() { f.ended <- server.Serve(ctx, f.printed) }()
	jar, _ := cookiejar.New(nil)
	f.client = &http.Client{Jar: jar, Transport: pageOf{f}}
	t.Cleanup(func() { f.close(t) })
	return f
}

// pageOf sends the second secret with each request, as a page of the window does.
type pageOf struct{ *fixture }

func (p pageOf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+p.secret)
	return http.DefaultTransport.RoundTrip(r)
}

// close ends the window as Ctrl-C does.
func (f *fixture) close(t *testing.T) {
	t.Helper()
	f.end()
	select {
	case err := <-f.ended:
		if err != nil {
			t.Error(err)
		}
		f.ended <- nil
	case <-time.After(time.Minute):
		t.Fatal("the window did not end")
	}
}

func (f *fixture) enter(t *testing.T) {
	t.Helper()
	if code, body := f.get(t, f.Address()); code != http.StatusOK {
		t.Fatalf("the first address: %d %s", code, body)
	}
}

func (f *fixture) get(t *testing.T, address string) (int, string) {
	t.Helper()
	response, err := f.client.Get(address)
	testkit.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return response.StatusCode, string(body)
}

func TestOnlyTheReadersBrowserIsAnswered(t *testing.T) {
	f := start(t)
	f.enter(t)
	if code, _ := f.get(t, "http://"+f.host()+"/page/README.md"); code != http.StatusOK {
		t.Fatalf("the reader gets %d", code)
	}
	cookie := f.cookieName() + "=" + f.cookie
	tests := map[string]struct {
		method, path, host, origin, cookie string
		upgrade                            bool
	}{
		"no cookie":                      {path: "/page/README.md"},
		"the cookie of another window":   {path: "/page/README.md", cookie: f.cookieName() + "=AAAA"},
		"an asset without a cookie":      {path: "/web/main.js"},
		"a wrong key":                    {path: "/enter?key=AAAA"},
		"no key":                         {path: "/enter"},
		"a name that leads to 127.0.0.1": {path: "/page/README.md", host: "attacker.example", cookie: cookie},
		"such a name with the key":       {path: "/enter?key=" + f.key, host: "attacker.example:80"},
		"a page of another site":         {path: "/exercises", origin: "https://attacker.example", cookie: cookie},
		"another port of this machine":   {path: "/exercises", origin: "http://127.0.0.1:1", cookie: cookie},
		"an opaque origin":               {path: "/exercises", origin: "null", cookie: cookie},
		"a change without an origin":     {method: "POST", path: "/exercises/04.1/open", cookie: cookie},
		"a change by another site":       {method: "POST", path: "/exercises/04.1/open", cookie: cookie, origin: "http://attacker.example"},
		"a terminal without a cookie":    {path: "/terminal?name=commands&page=", origin: "http://" + f.host(), upgrade: true},
		"a terminal without an origin":   {path: "/terminal?name=commands&page=", cookie: cookie, upgrade: true},
		"a terminal for another site":    {path: "/terminal?name=commands&page=", cookie: cookie, origin: "http://attacker.example", upgrade: true},
		"a terminal by DNS rebinding":    {path: "/terminal?name=commands&page=", cookie: cookie, host: "attacker.example", origin: "http://attacker.example", upgrade: true},
		"records without a cookie":       {path: "/loop/records/cluster", origin: "http://" + f.host(), upgrade: true},
		"records for another site":       {path: "/loop/records/cluster", cookie: cookie, origin: "http://attacker.example", upgrade: true},
		"objects without a cookie":       {path: "/loop/state"},
		"an object for another site":     {path: "/loop/object?resource=/v1/secrets&name=a", cookie: cookie, origin: "http://attacker.example"},
		"exercises without the secret":   {path: "/exercises", cookie: cookie},
		"an exercise without the secret": {path: "/exercises/04.1", cookie: cookie},
		"an editor without the secret":   {method: "POST", path: "/exercises/04.1/open", cookie: cookie, origin: "http://" + f.host()},
		"a text without the secret":      {path: "/exercises/04.1/file", cookie: cookie},
		"a text for another site":        {path: "/exercises/04.1/file", cookie: cookie, origin: "http://attacker.example"},
		"a write without the secret":     {method: "PUT", path: "/exercises/04.1/file", cookie: cookie, origin: "http://" + f.host()},
		"a write without an origin":      {method: "PUT", path: "/exercises/04.1/file", cookie: cookie},
		"a write by another site":        {method: "PUT", path: "/exercises/04.1/file", cookie: cookie, origin: "http://attacker.example"},
		"a comparison without a secret":  {method: "POST", path: "/exercises/04.1/file/difference", cookie: cookie, origin: "http://" + f.host()},
		"a source without the secret":    {path: "/source/code/main.go", cookie: cookie},
		"sources without the secret":     {path: "/loop/sources", cookie: cookie},
		"objects without the secret":     {path: "/loop/state", cookie: cookie},
		"an object without the secret":   {path: "/loop/object?resource=/v1/pods&name=a", cookie: cookie},
		"objects by DNS rebinding":       {path: "/loop/state", cookie: cookie, host: "attacker.example"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequest(test.method, "http://"+f.host()+test.path, nil)
			testkit.Must(t, err)
			if test.host != "" {
				request.Host = test.host
			}
			for key, value := range map[string]string{"Origin": test.origin, "Cookie": test.cookie} {
				if value != "" {
					request.Header.Set(key, value)
				}
			}
			if test.upgrade {
				for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
					"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="} {
					request.Header.Set(key, value)
				}
			}
			response, err := http.DefaultTransport.RoundTrip(request)
			testkit.Must(t, err)
			defer response.Body.Close()
			if response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusMisdirectedRequest {
				t.Errorf("got %s", response.Status)
			}
		})
	}
}

// TestTheCookieAloneOpensNoSocket shows that a server on another port, which gets the cookie, gets no shell.
func TestTheCookieAloneOpensNoSocket(t *testing.T) {
	f := start(t)
	f.enter(t)
	for _, path := range []string{"/terminal?name=page&page=README.md", "/loop/records/cluster"} {
		for name, first := range map[string]string{"no secret": "", "a wrong secret": "AAAA", "the cookie": f.cookie, "the key": f.key,
			"a command": `{"command":"touch came"}`} {
			connection, _, err := websocket.Dial(t.Context(), "ws://"+f.host()+path, &websocket.DialOptions{HTTPClient: f.client,
				HTTPHeader: http.Header{"Origin": {"http://" + f.host()}}})
			testkit.Must(t, err)
			err = connection.Write(t.Context(), websocket.MessageText, []byte(first))
			if err == nil {
				_, _, err = connection.Read(t.Context())
			}
			if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
				t.Errorf("%s with %s: %v", path, name, err)
			}
		}
	}
	if len(f.terminals.all) > 0 {
		t.Errorf("%d terminals were made", len(f.terminals.all))
	}
}

func TestTheKeyIsUsedOnce(t *testing.T) {
	f := start(t)
	first := f.Address()
	f.enter(t)
	if code, body := f.get(t, first); code != http.StatusOK || strings.Contains(body, f.secret) {
		t.Errorf("the same browser with the used key: %d %s", code, body)
	}
	other, err := http.Get(first)
	testkit.Must(t, err)
	defer other.Body.Close()
	if other.StatusCode != http.StatusForbidden || len(other.Cookies()) > 0 {
		t.Errorf("another browser with the used key: %s, %v", other.Status, other.Cookies())
	}
	if printed := f.printed.String(); f.Address() == first || !strings.Contains(printed, f.Address()) {
		t.Errorf("the window printed %q", printed)
	}
	other, err = http.Get(f.Address())
	testkit.Must(t, err)
	defer other.Body.Close()
	if other.StatusCode != http.StatusOK || len(other.Cookies()) != 1 {
		t.Errorf("another browser with the new key: %s", other.Status)
	}
}

func TestTheSameTerminalRequestIsAcceptedFromTheWindow(t *testing.T) {
	f := start(t)
	connection := f.dial(t, "commands", "")
	_ = connection.CloseNow()
}

func (f *fixture) dial(t *testing.T, name, page string) *websocket.Conn {
	t.Helper()
	return f.dialPath(t, "/terminal?"+url.Values{"name": {name}, "page": {page}}.Encode())
}

func (f *fixture) dialPath(t *testing.T, path string) *websocket.Conn {
	t.Helper()
	f.enter(t)
	connection, _, err := websocket.Dial(t.Context(), "ws://"+f.host()+path, &websocket.DialOptions{HTTPClient: f.client,
		HTTPHeader: http.Header{"Origin": {"http://" + f.host()}}})
	testkit.Must(t, err)
	connection.SetReadLimit(1 << 20)
	testkit.Must(t, connection.Write(t.Context(), websocket.MessageText, []byte(f.secret)))
	return connection
}

func TestNoOtherFileOfTheMachineIsServed(t *testing.T) {
	f := start(t)
	f.enter(t)
	for _, path := range []string{"/page/../secret.txt", "/page/..%2fsecret.txt", "/file/..%2f..%2fsecret.txt", "/file/unlinked.txt",
		"/page/unlinked.txt", "/file//etc/passwd", "/page/%2fetc%2fpasswd", "/web/../window.go", "/web/..%2fwindow.go", "/file/",
		"/file/../secret.txt", "/source/unlinked.txt", "/source/..%2fsecret.txt", "/source//etc/passwd",
		"/exercises/..%2f..%2fsecret.txt/file", "/web/", "/web/vendor", "/web/vendor/", "/web/vendor/xterm/", "/web/.", "/web//vendor/"} {
		code, body := f.get(t, "http://"+f.host()+path)
		if code == http.StatusOK || strings.Contains(body, "a secret") || strings.Contains(body, "nobody links") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := f.get(t, "http://"+f.host()+"/file/code/main.go"); code != http.StatusOK || !strings.Contains(body, "package") {
		t.Errorf("a linked file: %d", code)
	}
}

func TestAPageHasNoInlineScriptOrStyle(t *testing.T) {
	f := start(t)
	f.enter(t)
	response, err := f.client.Get("http://" + f.host() + "/page/README.md")
	testkit.Must(t, err)
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	policy := response.Header.Get("Content-Security-Policy")
	if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %s", policy)
	}
	for _, inline := range []string{"<style", " style=", "onclick", "Not a fold", `"attacked"`, "<p>Output:"} { // blocks have labels
		if strings.Contains(string(body), inline) {
			t.Errorf("the page has %s", inline)
		}
	}
}

// TestTheFolderOfAKilledServerIsRemoved looks at folders, because they have the reader's variables.
func TestTheFolderOfAKilledServerIsRemoved(t *testing.T) {
	f := start(t)
	killed := exec.Command("sleep", "1000")
	testkit.Must(t, killed.Start())
	server, err := process.Of(killed.Process.Pid)
	testkit.Must(t, err)
	record, err := json.Marshal(server)
	testkit.Must(t, err)
	left := filepath.Join(f.root, ".workshop", "window-left")
	testkit.Must(t, os.Mkdir(left, 0o700))
	testkit.Must(t, os.WriteFile(filepath.Join(left, serverFile), record, 0o600))
	startAt(t, f.root, 0)
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the folder of a server that runs: %v", err)
	}
	testkit.Must(t, killed.Process.Kill())
	_ = killed.Wait()
	startAt(t, f.root, 0)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the folder of the killed server: %v", err)
	}
	if _, err := os.Stat(f.terminals.state); err != nil {
		t.Errorf("the folder of the first window: %v", err)
	}
}

func TestNoProcessStaysWhenTheWindowEnds(t *testing.T) {
	f := start(t)
	connection := f.dial(t, "page", "README.md")
	defer func() { _ = connection.CloseNow() }()
	const stubborn = `bash -c 'trap "" HUP INT TERM; echo $$ >pid; while :; do read -t 1000 </dev/zero; sleep 1000; done' & sleep 1000`
	err := connection.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"id":"x","command":%q}`, stubborn))
	testkit.Must(t, err)
	pid := filepath.Join(f.root, "pid")
	eventually(t, func() bool { data, err := os.ReadFile(pid); return err == nil && len(data) > 0 })
	data, _ := os.ReadFile(pid)
	var number int
	if _, err := fmt.Sscan(string(data), &number); err != nil {
		t.Fatal(err)
	}
	f.close(t)
	if _, err := process.Of(number); err == nil {
		t.Errorf("process %d runs when the window has ended", number)
	}
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not come in a minute")
		}
	}
}

func TestAMenuOfCommandsIsNotRunOnRequest(t *testing.T) {
	f := start(t)
	all, err := f.parsed("README.md")
	testkit.Must(t, err)
	menu := slices.IndexFunc(all, func(b *page.Block) bool { return strings.Contains(b.Text, "of the menu") })
	connection := f.dial(t, "page", "README.md")
	defer func() { _ = connection.CloseNow() }()
	testkit.Must(t, connection.Write(t.Context(), websocket.MessageText, fmt.Appendf(nil, `{"block":%d}`, menu)))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for err == nil {
		_, _, err = connection.Read(ctx)
	}
	if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Error(err)
	}
}

// TestEveryFoldOfThePagesIsFolded counts the folds of all pages, because a fold that the window does not know is open.
func TestEveryFoldOfThePagesIsFolded(t *testing.T) {
	f := withSlides(t)
	folds := 0
	for _, name := range f.pages.names {
		source := testkit.Read(t, f.below(name))
		html, _, err := f.render(name, f.spoken[0])
		testkit.Must(t, err)
		want := strings.Count(source, "\n<details>")
		for _, part := range []string{"<details>", "<summary>", "</summary>", "</details>"} {
			if got := strings.Count(string(html), part); got != want {
				t.Errorf("%s has %d folds, and the window %d %s", name, want, got, part)
			}
		}
		folds += want
	}
	if folds < 20 {
		t.Errorf("the pages have %d folds", folds)
	}
}

// TestTheCardOfTheLastCheck: the window shows what the terminal has printed, of the current exercise.
func TestTheCardOfTheLastCheck(t *testing.T) {
	f := start(t)
	f.enter(t)
	s, err := f.Course.State()
	testkit.Must(t, err)
	r := exercise.Judgement{Own: []exercise.Result{{ID: "a", Verdict: "failed", What: "expected that it is back; but it is not"}}}
	testkit.Must(t, f.Course.Judged(f.Course.All[0], s, "", r))
	if _, body := f.get(t, "http://"+f.host()+"/exercises/04.1"); !strings.Contains(body, `{"label":"Expected","text":"it is back"}`) {
		t.Error(body)
	}
}
