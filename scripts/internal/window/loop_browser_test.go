package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/process"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// demo has the records of a run of the demo, which a lens has written, and the objects of its cluster in the middle of
// the run.
const (
	demoLedger  = "testdata/demo.jsonl"
	demoObjects = "testdata/demo-objects.json"
)

// startDemo serves the demo's ledger and objects.
func startDemo(t *testing.T) *fixture {
	f, _ := startChanging(t)
	return f
}

// startChanging serves the demo, with objects that change.
func startChanging(t *testing.T) (*fixture, *changing) {
	t.Helper()
	f := start(t)
	testkit.Write(t, f.Ledger, testkit.Read(t, demoLedger))
	var objects answers
	testkit.Must(t, json.Unmarshal([]byte(testkit.Read(t, demoObjects)), &objects))
	c := &changing{answers: objects}
	f.Objects = func() (Reader, error) { return c, nil }
	return f, c
}

// add makes the lens deliver one more event.
func (f *fixture) add(t *testing.T, name string) {
	t.Helper()
	f.append(t, loop.Record{Is: loop.Event, N: 100000, Time: time.Now(), Version: "v1",
		Resource: "services", Kind: "Service", Type: "MODIFIED", Namespace: "default", Name: name,
		By: loop.Client{Name: "myweb-operator", PID: 1}})
}

// append makes the lens write records.
func (f *fixture) append(t *testing.T, records ...loop.Record) {
	t.Helper()
	file, err := os.OpenFile(f.Ledger, os.O_APPEND|os.O_WRONLY, 0)
	for _, r := range records {
		if err == nil {
			err = json.NewEncoder(file).Encode(r)
		}
	}
	if err == nil {
		err = file.Close()
	}
	testkit.Must(t, err)
}

// openLoop shows the loop, and waits for its records.
func (f *fixture) openLoop(t *testing.T) context.Context {
	t.Helper()
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click("#tab-loop"))
	says(t, ctx, ".loop-status", "live at")
	return ctx
}

const now = `.arrows [aria-selected="true"]`

func TestTheLoopOfTheDemoIsDrawn(t *testing.T) {
	f := startDemo(t)
	ctx := f.openLoop(t)
	for _, want := range []string{"users and tools", "API server", "myweb-operator"} {
		says(t, ctx, ".heads", want)
	}
	for _, want := range []string{"create mywebs myweb 201 moved", "MyWeb myweb ADDED", "apply deployments myweb 201 moved",
		"delete deployments myweb", "Deployment myweb DELETED", "update mywebs/status myweb 200 moved"} {
		says(t, ctx, ".arrows", want)
	}
	says(t, ctx, ".loop-status", "reads folded")
	var folded, unfolded, reads int
	do(t, ctx, chromedp.Evaluate(`document.querySelectorAll(".arrow").length`, &folded),
		chromedp.Click(`//label[text()="Reads"]`), chromedp.WaitVisible(".arrow.read"),
		chromedp.Evaluate(`document.querySelectorAll(".arrow").length`, &unfolded),
		chromedp.Evaluate(`document.querySelectorAll(".arrow.read").length`, &reads))
	if reads == 0 || unfolded < folded {
		t.Errorf("%d arrows with reads, %d without, %d reads", unfolded, folded, reads)
	}
	f.add(t, "newest")
	says(t, ctx, ".arrows", "Service newest MODIFIED")
}

func TestTheLoopStandsStepsAndPlays(t *testing.T) {
	f := startDemo(t)
	ctx := f.openLoop(t)
	button := func(text string) chromedp.Action {
		return chromedp.Click(fmt.Sprintf(`//div[@class="loop-bar"]/button[contains(text(), %q)]`, text))
	}
	var last, back string
	do(t, ctx, button("Pause"), chromedp.WaitVisible(now), chromedp.Text(now, &last))
	f.add(t, "newest")
	says(t, ctx, ".loop-status", "paused at")
	says(t, ctx, ".arrow.later", "Service newest MODIFIED")
	do(t, ctx, button("Step back"), chromedp.Text(now, &back))
	if back == last {
		t.Errorf("a step back stays at %q", last)
	}
	do(t, ctx, button("Step forward"))
	says(t, ctx, now, strings.Split(last, "\n")[0])
	do(t, ctx, chromedp.Focus(".arrows"), chromedp.KeyEvent(kb.Home))
	says(t, ctx, ".loop-status", "paused at 1 of")
	do(t, ctx, button("Go live"), chromedp.WaitNotPresent(now))
	says(t, ctx, ".loop-status", "live at")
	newestInSight(t, ctx)
	do(t, ctx, chromedp.Click("#projector"), chromedp.WaitVisible("#switch"), chromedp.Click("#switch"))
	newestInSight(t, ctx)
	do(t, ctx, chromedp.Focus(".arrows"), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.ArrowLeft), button("Replay"))
	says(t, ctx, now, "Service newest MODIFIED")
	says(t, ctx, ".loop-status", "paused at")
}

// newestInSight waits until the list of arrows shows its end.
func newestInSight(t *testing.T, ctx context.Context) {
	t.Helper()
	const below = `(() => { const s = document.querySelector(".scroller");
		return s.clientHeight > 0 && s.scrollHeight > s.clientHeight && s.scrollHeight - s.scrollTop - s.clientHeight < 2; })()`
	short, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := chromedp.Run(short, chromedp.Poll(below, nil)); err != nil {
		t.Fatalf("the newest arrow is out of sight: %v", err)
	}
}

func TestTheYAMLIsThatOfNow(t *testing.T) {
	f, c := startChanging(t)
	ctx := f.openLoop(t)
	const path = "/api/v1/namespaces/default/configmaps/myweb"
	set := func(uid, version string) {
		c.change(func() {
			c.answers[path] = fmt.Sprintf(`{"kind":"ConfigMap","metadata":{"name":"myweb","uid":%q,"resourceVersion":%q}}`, uid, version)
		})
	}
	set("u1", "10")
	child := `//div[@class="tree"]//button[contains(., "ConfigMap myweb")]`
	do(t, ctx, chromedp.WaitVisible(child), chromedp.Click(child))
	says(t, ctx, ".yaml pre", `resourceVersion: "10"`)
	says(t, ctx, ".yaml h2", "configmaps myweb, now")
	set("u1", "11")
	says(t, ctx, ".yaml pre", `resourceVersion: "11"`)
	c.change(func() { delete(c.answers, path) })
	says(t, ctx, ".yaml h2", "configmaps myweb, deleted")
	says(t, ctx, ".yaml pre", `resourceVersion: "11"`)
	set("u2", "12")
	says(t, ctx, ".yaml h2", "configmaps myweb, now: another object, with the UID u2")
	says(t, ctx, ".yaml pre", `resourceVersion: "12"`)
	f.append(t, loop.Record{Is: loop.Event, N: 100000, Time: time.Now(), Version: "v1", Resource: "configmaps", Kind: "ConfigMap",
		Type: "DELETED", Namespace: "default", Name: "myweb", UID: "u1", By: loop.Client{Name: "myweb-operator", PID: 1}})
	says(t, ctx, ".arrow:last-child", "ConfigMap myweb DELETED")
	do(t, ctx, chromedp.Click(".yaml header button"), chromedp.WaitVisible(child), chromedp.Click(child))
	const chosen = `document.querySelector(".yaml h2").textContent === "configmaps myweb, now"`
	do(t, ctx, chromedp.Poll(chosen, nil), chromedp.Click(".arrow:last-child", chromedp.ByQuery),
		chromedp.WaitVisible(".loop-detail button"), chromedp.Click(".loop-detail button"))
	says(t, ctx, ".yaml h2", "configmaps myweb, now: another object, with the UID u2")
	c.change(func() { c.away = errors.New("the API server does not answer") })
	says(t, ctx, ".yaml h2", "configmaps myweb, as it was before")
}

func TestTheLoopOfANewClusterBeginsAnew(t *testing.T) {
	f, c := startChanging(t)
	identify := func(uid string) {
		c.change(func() { c.answers["/api/v1/namespaces/kube-system"] = fmt.Sprintf(`{"metadata":{"uid":%q}}`, uid) })
	}
	identify("one")
	ctx := f.openLoop(t)
	says(t, ctx, ".arrows", "create mywebs myweb")
	testkit.Must(t, os.Remove(f.Ledger))
	says(t, ctx, ".loop-status", "No local cluster with the lens runs")
	identify("two")
	ledger, err := loop.Create(f.Ledger, loop.Limit)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = ledger.Close() })
	says(t, ctx, ".loop-status", "a new cluster, since")
	says(t, ctx, ".loop-status", "nothing has passed yet")
	var status, arrows string
	do(t, ctx, chromedp.Text(".loop-status", &status), chromedp.Evaluate(`document.querySelector(".arrows").textContent`, &arrows))
	if strings.Contains(status, "No local cluster") || arrows != "" {
		t.Errorf("the status is %q, the arrows are %q", status, arrows)
	}
	f.add(t, "newest")
	says(t, ctx, ".arrows", "Service newest MODIFIED")
}

func TestABrokenControlPlaneIsNotLive(t *testing.T) {
	f, c := startChanging(t)
	ctx := f.openLoop(t)
	c.change(func() { c.away = errors.New("the API server does not answer: `make up` repairs it") })
	says(t, ctx, ".loop-status", "the API server does not answer: make up repairs it · stopped at")
	r := loop.Record{Is: loop.Request, N: 100000, Time: time.Now(), Version: "v1", Resource: "services", Verb: "watch",
		By: loop.Client{Name: "myweb-operator", PID: 1}}
	f.append(t, r)
	says(t, ctx, ".arrows", "watch services no answer")
	r.N, r.Verb, r.Code = r.N+1, "list", 503
	f.append(t, r)
	says(t, ctx, ".arrows", "list services 503")
	c.change(func() { c.away = nil })
	says(t, ctx, ".loop-status", "live at")
	c.change(func() { c.lens = errors.New("the lens does not run") })
	says(t, ctx, ".loop-status", "the lens does not run · stopped at")
}

func TestLeasesAreFolded(t *testing.T) {
	f := startDemo(t)
	ctx := f.openLoop(t)
	r := loop.Record{Is: loop.Request, N: 100000, Time: time.Now(), Group: "coordination.k8s.io", Version: "v1",
		Resource: "leases", Namespace: "default", Name: "myweb-operator", Verb: "update", Code: 200, Effect: "moved",
		By: loop.Client{Name: "myweb-operator", PID: 1}}
	f.append(t, r)
	says(t, ctx, ".loop-status", "1 records of leases folded")
	do(t, ctx, chromedp.Click(`//label[text()="Leases"]`))
	says(t, ctx, ".arrows", "update leases myweb-operator 200 moved")
	do(t, ctx, chromedp.Click(`//label[text()="Leases"]`))
	says(t, ctx, ".loop-status", "1 records of leases folded")
	r.N, r.Code, r.Effect = r.N+1, 0, ""
	f.append(t, r)
	says(t, ctx, ".arrows", "update leases myweb-operator no answer")
}

// A program that was restarted keeps its column. Two programs that run at the same time have two columns.
func TestProgramsOfOneNameHaveTheirOwnColumns(t *testing.T) {
	f := start(t)
	f.Objects = func() (Reader, error) { return served, nil }
	writeLedger(t, f.Ledger, 1) // of 3-own, process 7
	ctx := f.openLoop(t)
	r := loop.Record{Is: loop.Event, N: 100000, Version: "v1", Resource: "services", Kind: "Service", Type: "ADDED", Name: "a"}
	write := func(pid int) {
		r.N, r.Time, r.By = r.N+1, time.Now(), loop.Client{Name: "3-own", PID: pid}
		f.append(t, r)
	}
	write(8)
	says(t, ctx, ".loop-status", "live at 3 of 3")
	var heads string
	do(t, ctx, chromedp.Text(".heads", &heads))
	if !strings.HasSuffix(strings.TrimSpace(heads), "3-own") {
		t.Errorf("after a restart the columns are %q", heads)
	}
	write(7)
	says(t, ctx, ".heads", "3-own[7]")
	says(t, ctx, ".heads", "3-own[8]")
}

// TestTheColumnOfAnEndedProgramGoes: a minute after its last record, while another program runs. A box brings it back. An
// ended program cannot be stopped.
func TestTheColumnOfAnEndedProgramGoes(t *testing.T) {
	f := start(t)
	f.Objects = func() (Reader, error) { return served, nil }
	program := exec.CommandContext(t.Context(), "sh", "-c", "read x")
	input, err := program.StdinPipe()
	if err == nil {
		err = program.Start()
	}
	testkit.Must(t, err)
	id, err := process.Of(program.Process.Pid)
	testkit.Must(t, err)
	r := loop.Record{Is: loop.Event, Version: "v1", Resource: "services", Kind: "Service", Type: "ADDED", Namespace: "default", Name: "a"}
	testkit.Write(t, f.Ledger, "")
	for n, by := range []loop.Client{{Name: "first", PID: 1 << 22}, {Name: "second", PID: id.PID, Executable: id.Executable}} {
		r.N, r.By, r.Time = n+1, by, time.Now().Add(time.Duration(n-1)*time.Hour)
		f.append(t, r)
	}
	ctx := f.openLoop(t)
	says(t, ctx, ".loop-status", "1 ended programs folded")
	says(t, ctx, ".acts", "Stop second")
	var heads string
	do(t, ctx, chromedp.Text(".heads", &heads))
	if strings.Contains(heads, "first") {
		t.Errorf("the columns are %q", heads)
	}
	do(t, ctx, chromedp.Click(`//label[text()="Ended programs"]`))
	says(t, ctx, ".heads", "first")
	_ = input.Close()
	_ = program.Wait()
	eventually(t, func() (gone bool) {
		do(t, ctx, chromedp.Evaluate(`!document.querySelector(".acts").textContent.includes("Stop ")`, &gone))
		return gone
	})
}

func TestACheckIsReplayedAtTheMomentThatDiffered(t *testing.T) {
	f := start(t)
	f.writeCheck(t, loop.KeptVerdict{Exercise: "04.1", Check: "05-deleted-configmap", Message: "it was made twice", At: 6}, 20)
	ctx := f.browser(t)
	replay := `//button[contains(text(), "step by step")]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(replay), chromedp.Click(replay))
	says(t, ctx, ".loop select option:checked", "Last check of 04.1: failed")
	says(t, ctx, now, "create configmaps myweb 201 moved")
	says(t, ctx, now+" .mark", "✗ here it differed: it was made twice")
	says(t, ctx, ".loop-status", "paused at 6 of 40")
	do(t, ctx, chromedp.KeyEvent(kb.ArrowLeft))
	says(t, ctx, ".loop-status", "paused at 5 of 40")
	do(t, ctx, chromedp.Reload())
	says(t, ctx, ".loop select option:checked", "Last check of 04.1: failed")
	says(t, ctx, now+" .mark", "it was made twice")
	f.writeCheck(t, loop.KeptVerdict{Exercise: "04.1", Passed: true, Check: "05-deleted-configmap"}, 10)
	do(t, ctx, chromedp.Click("#tab-exercises"))
	says(t, ctx, "#panel-exercises", "✓ passed 05-deleted-configmap")
	do(t, ctx, chromedp.Click(replay))
	says(t, ctx, now+" .mark", "✓ passed 05-deleted-configmap")
	says(t, ctx, ".loop-status", "paused at 20 of 20")
}

// writeReplay leaves the loop of a check in which a user deletes the ConfigMap of a MyWeb, and the program does not react.
func (f *fixture) writeReplay(t *testing.T) {
	t.Helper()
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	program, user := loop.Client{Name: "operator", PID: 7}, loop.Client{Name: loop.User}
	web := loop.Record{Group: "example.com", Version: "v1", Resource: "mywebs", Kind: "MyWeb", UID: "w"}
	child := loop.Record{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", UID: "c",
		Shown: loop.Shown{Owners: []string{"w"}, Facts: []string{"owner: MyWeb web (controller)"}}}
	gone := child
	gone.UID, gone.Shown = "", loop.Shown{}
	request := func(r loop.Record, by loop.Client, verb string, code int) loop.Record {
		r.Is, r.By, r.Verb, r.Code, r.Effect = loop.Request, by, verb, code, "moved"
		return r
	}
	event := func(r loop.Record, kind string) loop.Record {
		r.Is, r.By, r.Type = loop.Event, program, kind
		return r
	}
	unknown := loop.Record{Version: "v1", Resource: "services", Kind: "Service", UID: "s"}
	served := web
	served.Subresource, served.Shown = "status", loop.Shown{Facts: []string{"generation 1, observedGeneration 1", "Available=True"},
		Fields: []string{"status.a", "status.b", "status.c", "status.d"}, Values: map[string]string{"status.a": "1 → 3"}}
	records := []loop.Record{request(web, user, "create", 201), event(web, "ADDED"), request(child, program, "create", 201),
		request(served, program, "update", 200), request(gone, user, "delete", 200),
		{Is: loop.Note, By: loop.Client{Name: "the lab"}, Note: "the operator was stopped and started again"},
		event(served, "MODIFIED"), event(unknown, "ADDED")}
	for i := range records {
		r := &records[i]
		r.N, r.Time, r.Namespace, r.Name = i+1, begin.Add(time.Duration(i)*time.Second), "behaviour-05-6mgdx", "web"
	}
	testkit.Must(t, loop.KeptOf(f.Course.Checks, "04.1").Write(records, loop.KeptVerdict{Exercise: "04.1",
		Check: "behaviour/05-deleted-configmap", Message: "it is not back", At: 5, Namespace: "behaviour-05-6mgdx"}))
}

// Of several custom resources, the reader chooses one: the arrows of it and of its children stay, in their order.
func TestAReplayShowsOneObject(t *testing.T) {
	f := start(t)
	program := loop.Client{Name: "operator", PID: 7}
	var records []loop.Record
	add := func(r loop.Record) {
		r.N, r.Namespace, r.By = len(records)+1, "a", program
		r.Time = time.Date(2026, 1, 2, 12, 0, len(records), 0, time.UTC)
		records = append(records, r)
	}
	webs := []string{"one", "two", "three"}
	web := func(name string) loop.Record {
		return loop.Record{Is: loop.Event, Type: "ADDED", Group: "example.com", Version: "v1", Resource: "mywebs", Kind: "MyWeb", UID: name, Name: name}
	}
	child := func(name string) loop.Record {
		return loop.Record{Is: loop.Request, Verb: "create", Code: 201, Effect: "moved", Group: "apps", Version: "v1", Resource: "deployments",
			Kind: "Deployment", UID: "child of " + name, Name: "child-" + name, Shown: loop.Shown{Owners: []string{name}}}
	}
	pod := func(name string) loop.Record {
		return loop.Record{Is: loop.Event, Type: "ADDED", Version: "v1", Resource: "pods", Kind: "Pod", UID: "pod of " + name, Name: "pod-" + name,
			Shown: loop.Shown{Owners: []string{"child of " + name}}}
	}
	gone := func(name string) loop.Record {
		return loop.Record{Is: loop.Request, Verb: "delete", Code: 200, Effect: "moved", Group: "apps", Version: "v1", Resource: "deployments",
			Name: "child-" + name}
	}
	for _, make := range []func(string) loop.Record{web, child, pod, gone} {
		for _, name := range webs {
			add(make(name))
		}
	}
	testkit.Must(t, loop.KeptOf(f.Course.Checks, "04.1").Write(records, loop.KeptVerdict{Exercise: "04.1", Check: "a", Message: "no", Namespace: "a"}))
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.Click(`//button[contains(text(), "step by step")]`))
	says(t, ctx, ".loop-status", "paused at 12 of 12")
	do(t, ctx, chromedp.SetValue(".loop .only", "example.com/v1/mywebs a/two"), chromedp.Evaluate(
		`document.querySelector(".loop .only").dispatchEvent(new Event("change")); 0`, nil))
	says(t, ctx, ".loop-status", "paused at 4 of 4 · 8 records of other objects folded")
	var shown []string
	do(t, ctx, chromedp.Evaluate(`[...document.querySelectorAll(".arrow .label")].map(label => label.firstChild.textContent)`, &shown))
	want := []string{"MyWeb two ADDED", "create deployments child-two 201 moved", "Pod pod-two ADDED", "delete deployments child-two 200 moved"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Error(diff)
	}
}

func TestTheReplayBeginsAtTheCause(t *testing.T) {
	f := start(t)
	f.writeReplay(t)
	ctx := f.browser(t)
	replay := `//button[contains(text(), "step by step")]`
	do(t, ctx, chromedp.Click("#tab-exercises"), chromedp.WaitVisible(replay), chromedp.Click(replay))
	says(t, ctx, now, "delete configmaps web 200 moveda user")
	says(t, ctx, now+" .mark", "✗ here it differed: it is not back")
	says(t, ctx, ".loop-status", "paused at 5 of 8")
	says(t, ctx, ".loop-status", "in the namespace behaviour-05-6mgdx")
	tree := func() (text string) {
		do(t, ctx, chromedp.Evaluate(`document.querySelector(".side").textContent`, &text))
		return text
	}
	const heading = "Objects after this arrow, as events and answers showed them"
	const ready = "MyWeb webgeneration 1, observedGeneration 1Available=True"
	if got := tree(); !strings.HasPrefix(got, heading+ready+"Act") || isVisible(t, ctx, ".acts") {
		t.Errorf("after the deletion the tree is %q", got)
	}
	do(t, ctx, chromedp.Focus(".arrows"), chromedp.KeyEvent(kb.ArrowLeft))
	says(t, ctx, now, "update mywebs/status web 200 moved")
	says(t, ctx, now+" .fields", "changed status.a (1 → 3), status.b, status.c and 1 more")
	says(t, ctx, ".loop-detail", "These fields differ from the version before: status.a (1 → 3), status.b, status.c, status.d.")
	if got := tree(); !strings.HasPrefix(got, heading+ready+"ConfigMap webowner: MyWeb web (controller)") {
		t.Errorf("before the deletion the tree is %q", got)
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	says(t, ctx, ".tree [aria-current]", "MyWeb web")
	do(t, ctx, chromedp.KeyEvent(kb.Home))
	says(t, ctx, ".loop-status", "paused at 1 of 8")
	if got := tree(); !strings.HasPrefix(got, heading+"MyWeb webAct") {
		t.Errorf("at the beginning the tree is %q", got)
	}
	do(t, ctx, chromedp.KeyEvent(kb.End))
	says(t, ctx, now, "Service web ADDED")
	if got := tree(); !strings.HasPrefix(got, heading+ready+"Service webAct") {
		t.Errorf("the owners of the Service are unknown, and the tree is %q", got)
	}
	var arrows string
	do(t, ctx, chromedp.Evaluate(`document.querySelector(".loop-lanes").textContent`, &arrows))
	if strings.Contains(arrows, "6mgdx") || !strings.Contains(arrows, "the operator was stopped and started againthe lab") {
		t.Errorf("the arrows are %q", arrows)
	}
}

// writeSolutionRun keeps a run of the solution, which got the deletion that the run of writeReplay did not get.
func (f *fixture) writeSolutionRun(t *testing.T) {
	t.Helper()
	mine := loop.KeptOf(f.Course.Checks, "04.1")
	records, j, err := mine.Read(t.Context())
	testkit.Must(t, err)
	j.Namespace, j.Passed, j.At = "behaviour-05-other", true, 0
	event := records[2]
	event.Is, event.Type, event.Verb, event.Code, event.Effect, event.N = loop.Event, "DELETED", "", 0, "", 66
	records = records[:5]
	for n := range 60 {
		change := event
		change.Type, change.N = "MODIFIED", n+6
		records = append(records, change)
	}
	records = append(records, event)
	for i := range records {
		records[i].Namespace = j.Namespace
	}
	testkit.Must(t, loop.KeptOf(f.Course.Checks, "solutions/04.1").Write(records, j))
}

// TestARunIsComparedWithTheSolution: the button runs the command that records the solution's run, once for each check.
func TestARunIsComparedWithTheSolution(t *testing.T) {
	f := start(t)
	f.writeReplay(t)
	ctx := f.browser(t)
	do(t, ctx, chromedp.Click("#tab-loop"))
	says(t, ctx, ".loop select", "Last check of 04.1")
	const compare = `//div[@class="loop-bar"]/button[contains(text(), "Compare")]`
	if isVisible(t, ctx, `.loop-bar button[title^="C "]`) {
		t.Error("the local cluster has no solution, and a button to compare")
	}
	do(t, ctx, chromedp.SetValue(".loop select", "04.1"), chromedp.Evaluate(
		`document.querySelector(".loop select").dispatchEvent(new Event("change"))`, nil), chromedp.WaitVisible(compare), chromedp.Click(compare))
	says(t, ctx, ".loop-comparison .verdict", "make watch EX=04.1 SOLUTION=1")
	f.writeSolutionRun(t)
	do(t, ctx, chromedp.Click(".loop-comparison header button"), chromedp.WaitVisible(".loop-lanes"), chromedp.KeyEvent("c"))
	says(t, ctx, ".loop-comparison .bad .mark", "The first difference: Your run lacks this.")
	says(t, ctx, ".loop-comparison .bad", "ConfigMap web DELETED")
	var inSight bool
	do(t, ctx, chromedp.Evaluate(`document.elementsFromPoint(...(({left, top}) => [left + 5, top + 5])(
		document.querySelector(".loop-comparison .mark").getBoundingClientRect())).some((e) => e.matches(".mark"))`, &inSight))
	if !inSight {
		t.Error("the first difference is out of sight")
	}
	var runs, status string
	do(t, ctx, chromedp.Evaluate(`document.querySelector(".loop-comparison").textContent`, &runs),
		chromedp.Evaluate(`document.activeElement.className`, &status))
	if !strings.Contains(runs, "after: delete configmaps web 200 moved") || strings.Contains(runs, "behaviour-05-") ||
		strings.Index(runs, "Your run+0 ms") > strings.Index(runs, "The solution's run+0 ms") || status != "loop-comparison" {
		t.Errorf("the focus is on %q, the runs are %s", status, runs)
	}
	do(t, ctx, chromedp.EmulateViewport(640, 400, chromedp.EmulateScale(2))) // 200 % zoom
	fits(t, ctx)
	do(t, ctx, chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible(".loop-comparison"))
	says(t, ctx, ".loop-status", "paused at 5 of 8")
	fits(t, ctx)
	mine := loop.KeptOf(f.Course.Checks, "04.1")
	records, j, err := mine.Read(t.Context())
	testkit.Must(t, err)
	testkit.Must(t, mine.Write(records[:5], loop.KeptVerdict{Exercise: "04.1", Passed: true, Check: j.Check, Namespace: j.Namespace}))
	do(t, ctx, chromedp.EmulateViewport(2000, 700), chromedp.Click("#wide"), chromedp.Focus(".loop-lanes .arrows"), chromedp.KeyEvent("c"))
	says(t, ctx, ".loop-comparison .verdict", "Both programs passed the check: this difference is not a mistake.")
	says(t, ctx, ".loop-comparison .arrow:not(.bad) .mark", "Only the solution's run has this.")
	var columns bool
	do(t, ctx, chromedp.Evaluate(`(([one, other]) => one.top === other.top && one.right <= other.left)(
		[...document.querySelectorAll(".runs section")].map((run) => run.getBoundingClientRect()))`, &columns))
	if !columns {
		t.Error("two runs that passed are below each other")
	}
}

func TestTheLoopByKeyboardAlone(t *testing.T) {
	f := startDemo(t)
	ctx := f.browser(t)
	alt := chromedp.KeyModifiers(1)
	do(t, ctx, chromedp.KeyEvent("l", alt))
	says(t, ctx, ".loop-status", "live at")
	do(t, ctx, chromedp.KeyEvent(" "))
	says(t, ctx, ".loop-status", "paused at")
	do(t, ctx, chromedp.KeyEvent(kb.Home))
	says(t, ctx, ".loop-status", "paused at 1 of")
	do(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	says(t, ctx, ".loop-status", "paused at 2 of")
	says(t, ctx, "#announce", "was delivered to kubectl")
	const named = `document.querySelector(".arrows [aria-selected=true]").textContent.includes("create mywebs myweb")`
	for found := false; !found; {
		do(t, ctx, chromedp.KeyEvent(kb.ArrowDown), chromedp.Evaluate(named, &found))
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	says(t, ctx, ".yaml h2", "mywebs myweb, now")
	var focused string
	do(t, ctx, chromedp.KeyEvent(kb.Escape), chromedp.WaitNotVisible(".yaml"), chromedp.KeyEvent("w", alt),
		chromedp.Evaluate(`document.activeElement.id`, &focused))
	if focused != "page" {
		t.Errorf("Alt W leads to %q", focused)
	}
}

// The tab keeps a limited number of records: the newest.
func TestALongLedgerIsBounded(t *testing.T) {
	f := start(t)
	f.Objects = func() (Reader, error) { return served, nil }
	writeLedger(t, f.Ledger, 5000)
	ctx := f.openLoop(t)
	says(t, ctx, ".loop-status", "live at 6000 of 6000")
	var drawn int
	do(t, ctx, chromedp.Evaluate(`document.querySelectorAll(".arrow").length`, &drawn))
	if drawn > 400 {
		t.Errorf("%d arrows are drawn", drawn)
	}
	says(t, ctx, ".arrow:last-child", "create configmaps myweb")
}
