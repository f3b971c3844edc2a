package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// writeLedger makes a file of records of an operator that answers each of n events with a write.
func writeLedger(t *testing.T, path string, n int) {
	t.Helper()
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	file, err := loop.Create(path, loop.Limit)
	testkit.Must(t, err)
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	r := loop.Record{Version: "v1", Resource: "configmaps", Namespace: "default", Name: "myweb",
		By: loop.Client{Name: "3-own", PID: 7}}
	for i := range n {
		event, request := r, r
		event.Is, event.N, event.Kind, event.Type = loop.Event, 2*i+1, "ConfigMap", "DELETED"
		event.Time = begin.Add(time.Duration(i) * 3 * time.Second)
		request.Is, request.N, request.Verb, request.Code, request.Effect = loop.Request, 2*i+2, "create", 201, "moved"
		request.Time = event.Time.Add(4 * time.Millisecond)
		file.Write(event)
		file.Write(request)
	}
	file.Write(loop.Record{Is: loop.Request, N: 2*n + 1, Time: begin, Verb: "get", Code: 200})
	testkit.Must(t, file.Close())
}

// writeCheck leaves a ledger and a verdict as `make check` does.
func (f *fixture) writeCheck(t *testing.T, j loop.KeptVerdict, n int) {
	t.Helper()
	kept := loop.KeptOf(f.Course.Checks, j.Exercise)
	writeLedger(t, kept.Ledger(), n)
	records, err := loop.All(t.Context(), kept.Ledger())
	if err == nil {
		err = kept.Write(records, j)
	}
	testkit.Must(t, err)
}

// records reads messages until a message is the last wanted message.
func (f *fixture) records(t *testing.T, source string, isLast func(feedMessage, []Arrow) bool) []Arrow {
	t.Helper()
	connection := f.dialPath(t, "/loop/records/"+source)
	defer func() { _ = connection.CloseNow() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all []Arrow
	for {
		_, data, err := connection.Read(ctx)
		if err != nil {
			t.Fatalf("after %d records: %v", len(all), err)
		}
		var m feedMessage
		testkit.Must(t, json.Unmarshal(data, &m))
		all = append(all, m.Records...)
		if isLast(m, all) {
			return all
		}
	}
}

func TestTheLedgerOfACheckIsSentToItsEnd(t *testing.T) {
	f := start(t)
	f.enter(t)
	f.writeCheck(t, loop.KeptVerdict{Exercise: "04.1", Check: "05-deleted-configmap", Message: "it did not come back", At: 6}, 400)
	code, body := f.get(t, "http://"+f.host()+"/loop/sources")
	if code != http.StatusOK || !strings.Contains(body, `"message":"it did not come back"`) || !strings.Contains(body, `"at":6`) {
		t.Errorf("the sources are %d %s", code, body)
	}
	all := f.records(t, "04.1", func(m feedMessage, _ []Arrow) bool { return m.End })
	if len(all) != 800 || all[799].N != 800 {
		t.Errorf("%d records came, want 800 without the one of no resource", len(all))
	}
}

func TestTheLedgerOfTheClusterGoesOnUntilItIsRemoved(t *testing.T) {
	f := start(t)
	f.enter(t)
	writeLedger(t, f.Ledger, 1)
	writeLedger(t, f.Ledger, 2) // the first becomes the backup
	removed := false
	all := f.records(t, "cluster", func(m feedMessage, all []Arrow) bool {
		switch {
		case len(all) == 6:
			file, err := os.OpenFile(f.Ledger, os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = fmt.Fprintln(file, `{"is":"request","n":9,"time":"2026-01-02T13:00:00Z",`+
					`"resource":"pods","verb":"delete","effect":"moved"}`)
				err = errors.Join(err, file.Close())
			}
			if err != nil {
				t.Error(err)
			}
		case len(all) == 7 && !removed:
			removed = true
			_ = os.Remove(f.Ledger)
		}
		return strings.Contains(m.Away, "make up")
	})
	if len(all) != 7 || !strings.Contains(all[6].Sentence, "It deleted the object") {
		t.Errorf("%d records came, the last is %+v", len(all), all[len(all)-1])
	}
}

func TestAnEmptyLedgerIsNotAMissingOne(t *testing.T) {
	f := start(t)
	f.enter(t)
	ledger, err := loop.Create(f.Ledger, loop.Limit)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = ledger.Close() })
	f.records(t, "cluster", func(m feedMessage, _ []Arrow) bool { return m.Away == "" })
}

func TestACreateIsNotAChange(t *testing.T) {
	f := start(t)
	f.enter(t)
	writeLedger(t, f.Ledger, 1)
	all := f.records(t, "cluster", func(_ feedMessage, all []Arrow) bool { return len(all) == 2 })
	if !strings.Contains(all[1].Sentence, "It created the object.") {
		t.Errorf("the sentence is %q", all[1].Sentence)
	}
}

// TestACheckIsToldWithoutItsNamespace has what a user did, which fields changed, and an act without a request.
func TestACheckIsToldWithoutItsNamespace(t *testing.T) {
	f := start(t)
	f.enter(t)
	kept := loop.KeptOf(f.Course.Checks, "04.1")
	r := loop.Record{Resource: "configmaps", Kind: "ConfigMap", Namespace: "check-x7", Name: "web",
		Shown: loop.Shown{Fields: []string{"data.a", "data.b"}}}
	user, event := r, r
	user.N, user.Is, user.Verb, user.Code, user.Effect, user.By.Name = 1, loop.Request, "patch", 200, "moved", loop.User
	event.N, event.Is, event.Type, event.By.Name = 2, loop.Event, "MODIFIED", "work"
	note := loop.Record{Is: loop.Note, N: 3, Namespace: "check-x7", Note: "the operator was stopped and started again"}
	testkit.Must(t, kept.Write([]loop.Record{user, event, note}, loop.KeptVerdict{Exercise: "04.1", Namespace: "check-x7"}))
	all := f.records(t, "04.1", func(m feedMessage, _ []Arrow) bool { return m.End })
	var got []string
	for _, a := range all {
		got = append(got, a.Text, a.Sentence)
	}
	const fields = "These fields differ from the version before: data.a, data.b."
	want := []string{"patch configmaps web 200 moved",
		"a user sent patch configmaps web 200 moved. It changed the object. " + fields,
		"ConfigMap web MODIFIED", "ConfigMap web MODIFIED was delivered to work. " + fields, note.Note, note.Note}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutAClusterTheLoopSaysWhatToDo(t *testing.T) {
	f := start(t)
	f.enter(t)
	f.records(t, "cluster", func(m feedMessage, _ []Arrow) bool { return strings.Contains(m.Away, "make up") })
	var state LoopState
	if f.getJSON(t, "/loop/state", &state); state.Away != "no cluster runs" || len(state.Objects) > 0 {
		t.Errorf("the state is %+v", state)
	}
	for _, name := range []string{"04.9", "..%2f..", "..", "%2fetc"} {
		if code, _ := f.get(t, "http://"+f.host()+"/loop/records/"+name); code == http.StatusOK || code == http.StatusUpgradeRequired {
			t.Errorf("the ledger of %s: %d", name, code)
		}
	}
}

// answers has the responses of an API server, by path.
type answers map[string]string

func (a answers) Get(_ context.Context, path string) ([]byte, error) {
	if text, ok := a[path]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("404 for %s: %w", path, fs.ErrNotExist)
}

func (a answers) Lens() error { return nil }

func (a answers) Close() {}

// changing has responses that a test changes while the window reads them.
type changing struct {
	mu      sync.Mutex
	answers answers
	away    error // of the API server
	lens    error
}

func (c *changing) Get(ctx context.Context, path string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away != nil {
		return nil, c.away
	}
	return c.answers.Get(ctx, path)
}

func (c *changing) Lens() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lens
}

func (c *changing) Close() {}

func (c *changing) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// served has a MyWeb with a child, a child without an owner, a Secret, and objects that no operator made.
var served = answers{
	"/api/v1/configmaps": `{"kind":"ConfigMapList","items":[
		{"metadata":{"name":"myweb","namespace":"default","uid":"2","ownerReferences":[
			{"apiVersion":"example.com/v1","kind":"MyWeb","name":"myweb","uid":"1","controller":true}]}},
		{"metadata":{"name":"kube-root-ca.crt","namespace":"default","uid":"3"}}]}`,
	"/api/v1/services": `{"kind":"ServiceList","items":[{"metadata":{"name":"myweb","namespace":"default","uid":"4"}}]}`,
	"/apis/example.com/v1/mywebs": `{"kind":"MyWebList","items":[{"metadata":{"name":"myweb","namespace":"default","uid":"1",
		"generation":3},"status":{"observedGeneration":2,"conditions":[{"type":"Available","status":"False","reason":"NotReady"}]}}]}`,
	"/apis/example.com/v1/namespaces/default/mywebs/myweb": `{"apiVersion":"example.com/v1","kind":"MyWeb","metadata":{"name":"myweb",
		"labels":{"a":"b"},"finalizers":["x/y"],"managedFields":[
		{"manager":"kubectl","operation":"Update","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:a":{}}},"f:spec":{"f:page":{},"f:big":{}}}},
		{"manager":"3-own","operation":"Apply","subresource":"status","fieldsV1":{"f:metadata":{"f:finalizers":{"v:\"x/y\"":{}}},
		"f:spec":{"f:page":{},"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}}},"f:atomic":{}}}}]},
		"spec":{"page":"one\n\n  two\n","big":1000000,"ports":[{"port":80,"name":"web"},{"port":81}],"atomic":{"x":[1]},"none":{},"no":"no"}}`,
	"/api/v1/namespaces/default/secrets/key": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"key","annotations":{
		"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":\"aGVsbG8=\"}"}},"data":{"password":"aGVsbG8="},"stringData":{"x":"aGVsbG8="}}`,
}

func startServed(t *testing.T) *fixture {
	f := start(t)
	f.enter(t)
	f.Objects = func() (Reader, error) { return served, nil }
	return f
}

func (f *fixture) getJSON(t *testing.T, path string, value any) {
	t.Helper()
	code, body := f.get(t, "http://"+f.host()+path)
	if code != http.StatusOK {
		t.Fatalf("%s: %d %s", path, code, body)
	}
	testkit.Must(t, json.Unmarshal([]byte(body), value))
}

func TestObjectsThatBelongTogetherAreFound(t *testing.T) {
	f := startServed(t)
	var state LoopState
	f.getJSON(t, "/loop/state?resource=example.com/v1/mywebs&resource=gone.com/v1/things", &state)
	var got []string
	for _, o := range state.Objects {
		got = append(got, o.Kind+" "+o.Name+": "+strings.Join(o.Facts, "; "))
	}
	want := []string{"ConfigMap myweb: owner: MyWeb myweb (controller)", "Service myweb: no owner",
		"MyWeb myweb: generation 3, observedGeneration 2 (behind); Available=False (NotReady)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the objects differ (-want +got):\n%s", diff)
	}
	for _, resource := range []string{"../v1/x", "a/v1/b/c", "a/v1", "A/v1/x", "a/v1/x?watch=1"} {
		if code, _ := f.get(t, "http://"+f.host()+"/loop/state?resource="+url.QueryEscape(resource)); code != http.StatusBadRequest {
			t.Errorf("resource %s: %d", resource, code)
		}
	}
}

func TestEachFieldHasItsManagers(t *testing.T) {
	f := startServed(t)
	var object Managed
	f.getJSON(t, "/loop/object?resource=example.com/v1/mywebs&namespace=default&name=myweb", &object)
	var got strings.Builder
	for _, line := range object.Lines {
		fmt.Fprintf(&got, "%s", line.Text)
		for _, manager := range line.Managers {
			fmt.Fprintf(&got, " <%s", object.Managers[manager].Manager)
		}
		fmt.Fprintln(&got)
	}
	want := `apiVersion: example.com/v1
kind: MyWeb
metadata:
  finalizers:
  - x/y <3-own
  labels: <kubectl
    a: b <kubectl
  name: myweb
spec:
  atomic: <3-own
    x: <3-own
    - 1 <3-own
  big: 1000000 <kubectl
  "no": "no"
  none: {}
  page: | <kubectl <3-own
    one <kubectl <3-own
     <kubectl <3-own
      two <kubectl <3-own
  ports:
  - name: web <3-own
    port: 80 <3-own
  - port: 81
`
	want = strings.Replace(want, "- name: web <3-own", "- name: web", 1) // it manages the item and one field of it
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("the object differs (-want +got):\n%s", diff)
	}
}

func TestTheDataOfASecretIsNeverSent(t *testing.T) {
	f := startServed(t)
	list := `{"kind":"SecretList","metadata":{},"items":[{"data":{"password":"aGVsbG8="}}]}`
	tests := map[string]struct {
		query, answer string
		code          int
		want          string
	}{
		"by its name":                        {query: "namespace=default&name=key", code: http.StatusOK, want: "password: (not shown)"},
		"by its list":                        {query: "namespace=default&name=/", code: http.StatusBadRequest},
		"by an empty name":                   {query: "namespace=default&name=", code: http.StatusBadRequest},
		"above its list":                     {query: "namespace=default&name=..", code: http.StatusBadRequest},
		"the list itself":                    {query: "namespace=default&name=.", code: http.StatusBadRequest},
		"encoded twice":                      {query: "namespace=default&name=%252f", code: http.StatusBadRequest},
		"by a namespace":                     {query: "namespace=/&name=key", code: http.StatusBadRequest},
		"through two names in the namespace": {query: "namespace=default/secrets&name=key", code: http.StatusBadRequest},
		"as a list":                          {query: "namespace=default&name=key", answer: list, code: http.StatusOK},
		"of another kind":                    {query: "namespace=default&name=key", code: http.StatusOK, answer: `{"kind":"Hidden","data":{"a":"aGVsbG8="}}`},
		"of no kind":                         {query: "namespace=default&name=key", code: http.StatusOK, answer: `{"data":"aGVsbG8=","metadata":"x"}`},
		"in its annotations": {query: "namespace=default&name=key", code: http.StatusOK, want: "backup: (not shown)",
			answer: `{"kind":"Secret","metadata":{"name":"key","annotations":{"backup":"aGVsbG8="}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			secrets := "/api/v1/namespaces/default/secrets"
			all := answers{secrets: list, secrets + "/": list, secrets + "/%2F": list, "/api/v1/namespaces/%2F/secrets/key": list,
				secrets + "/key": served[secrets+"/key"]}
			if test.answer != "" {
				all[secrets+"/key"] = test.answer
			}
			f.Objects = func() (Reader, error) { return all, nil }
			code, body := f.get(t, "http://"+f.host()+"/loop/object?resource=/v1/secrets&"+test.query)
			if code != test.code || strings.Contains(body, "aGVsbG8") || !strings.Contains(body, test.want) {
				t.Errorf("%d %s", code, body)
			}
		})
	}
}

func TestARunningProgramIsListed(t *testing.T) {
	f := startServed(t)
	program := exec.CommandContext(t.Context(), "sh", "-c", "read x")
	input, err := program.StdinPipe()
	if err == nil {
		err = program.Start()
	}
	testkit.Must(t, err)
	defer func() { _ = input.Close(); _ = program.Wait() }()
	var state LoopState
	f.getJSON(t, fmt.Sprintf("/loop/state?pid=%d&pid=x&pid=1", program.Process.Pid), &state)
	if len(state.Programs) != 1 || state.Programs[0].PID != program.Process.Pid || state.Programs[0].Executable == "" {
		t.Errorf("the programs are %+v", state.Programs)
	}
}
