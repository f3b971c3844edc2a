package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/examine/loop"
	"example.com/operator-workshop/scripts/examine/wire"
)

// TestARecordShowsWhatChanged has a version that its event and the answer to its writer report, in both orders, and a
// Secret, of which no value is recorded.
func TestARecordShowsWhatChanged(t *testing.T) {
	const first = `{"kind":"Secret","metadata":{"name":"a","uid":"u","resourceVersion":"8","generation":1,
		"ownerReferences":[{"kind":"Web","name":"w","uid":"o","controller":true}]},"data":{"key":"b25l"}}`
	const second = `{"metadata":{"name":"a","uid":"u","resourceVersion":"9","generation":2,
		"ownerReferences":[{"kind":"Web","name":"w","uid":"o","controller":true}]},"data":{"key":"dHdv"},
		"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}`
	const third = `{"metadata":{"name":"a","uid":"u","resourceVersion":"10","managedFields":[{}]},"data":null}`
	var records []loop.Record
	l := New(nil)
	l.Copy(func(r loop.Record) { records = append(records, r) })
	watch := l.Begin("lab", wire.Request{Verb: wire.Watch, Resource: "secrets"}, nil)
	deliver := func(kind, version string) {
		l.Deliver(watch, []wire.Event{{Type: kind, Object: wire.Object{Kind: "Secret", Name: "a", UID: "u", ResourceVersion: version}}})
	}
	write := func(version string, effect Effect) {
		id := l.Begin("lab", wire.Request{Verb: wire.Update, Resource: "secrets", Name: "a"}, nil)
		l.Change(id, func(e *Entry) { e.Code, e.Effect, e.UID, e.ResourceVersion = 200, effect, "u", version })
		l.End(id)
	}
	for _, content := range []string{first, second, second, `{"kind":"Status"}`, "no JSON"} {
		l.Describe([]byte(content))
	}
	deliver("ADDED", "8")
	deliver("MODIFIED", "9")
	write("9", Moved)
	write("9", Same)
	deliver("MODIFIED", "7") // a version that did not pass
	if kept := l.described("u").state; len(kept) == 0 || strings.Contains(fmt.Sprint(kept), "dHdv") {
		t.Errorf("the ledger keeps no state, or a value of a Secret: %v", kept)
	}
	l.Describe([]byte(third))
	write("10", Moved)
	owners := []string{"o"}
	facts := []string{"generation 2, observedGeneration 1 (behind)", "owner: Web w (controller)", "Ready=True"}
	fields := []string{"data.key", "status.conditions[Ready].status", "status.conditions[Ready].type", "status.observedGeneration"}
	writes := l.Entries(Match{Verbs: wire.Writes})
	if got := l.Fields(writes[:2]...); !slices.Equal(got, fields) || len(l.Fields(writes[1])) > 0 {
		t.Errorf("the first write changed %q, the second %q", got, l.Fields(writes[1]))
	}
	values := func(text string) map[string]string {
		return map[string]string{"status.conditions[Ready].status": fmt.Sprintf(text, "True"),
			"status.conditions[Ready].type": fmt.Sprintf(text, "Ready"), "status.observedGeneration": fmt.Sprintf(text, "1")}
	}
	want := []loop.Shown{{Facts: []string{"generation 1", "owner: Web w (controller)"}, Owners: owners},
		{Facts: facts, Owners: owners, Fields: fields, Values: values("– → %s")},
		{Facts: facts, Owners: owners, Fields: fields, Values: values("– → %s")},
		{Facts: facts, Owners: owners}, {}, {Facts: []string{loop.NoOwner}, Fields: []string{"data.key", "metadata.ownerReferences[w]",
			"status.conditions[Ready].status", "status.conditions[Ready].type", "status.observedGeneration"}, Values: values("%s → –")}}
	var got []loop.Shown
	for _, r := range records {
		got = append(got, r.Shown)
	}
	if diff := cmp.Diff(want, got); diff != "" || records[0].Kind != "Secret" {
		t.Errorf("%s: %s", records[0].Kind, diff)
	}
	l.Describe([]byte(`{"metadata":{"uid":"u","resourceVersion":"11","managedFields":[{},{}]}}`))
	l.Describe([]byte(`{"metadata":{"uid":"u","resourceVersion":"12","managedFields":[{}]}}`))
	write("12", Moved)
	l.Describe([]byte(`{"metadata":{"uid":"u","resourceVersion":"13"},"data":"` + strings.Repeat("x", mostContent) + `"}`))
	write("13", Moved)
	if large := records[len(records)-1]; large.Fields != nil {
		t.Errorf("a large object is compared: %v", large.Fields)
	}
	records = records[:len(records)-1]
	if diff := cmp.Diff([]string{"metadata.managedFields"}, records[len(records)-1].Fields); diff != "" {
		t.Error(diff)
	}
}

func TestARecordShowsTheChangedValuesOfSpecAndStatus(t *testing.T) {
	l := New(nil)
	long := strings.Repeat("long ", 20)
	same := strings.Repeat("same ", 20)
	for version, content := range []string{`"spec":{"replicas":1,"page":"short","end":"` + same + `12:01 and more","env":[{"name":"A","value":"secret"}]},"data":{"a":"secret"}`,
		`"spec":{"replicas":3,"page":"` + long + `","end":"` + same + `12:02 and more","env":[{"name":"A","value":"changed"}]},"data":{"a":"changed"}`} {
		l.Describe(fmt.Appendf(nil, `{"kind":"Web","metadata":{"uid":"u","resourceVersion":"%d","annotations":{"copy":"%d secret"}},%s}`,
			version+1, version, content))
	}
	kept := l.described("u")
	want := map[string]string{"spec.replicas": "1 → 3", "spec.page": "short → " + long[:39] + "…",
		"spec.end": "…ame 12:01 and more → …ame 12:02 and more"}
	if diff := cmp.Diff(want, kept.versions[1].Values); diff != "" {
		t.Error(diff)
	}
	if text := fmt.Sprint(kept); strings.Contains(text, "secret") || strings.Contains(text, "changed") {
		t.Errorf("the ledger keeps a value that it may not show: %s", text)
	}
}
