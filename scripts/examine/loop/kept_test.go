package loop

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestWhatACheckKeepsIsReadInOrder(t *testing.T) {
	k := KeptOf(t.TempDir(), "04.3")
	if _, _, err := k.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing was kept: %v", err)
	}
	for _, passed := range []bool{false, true} {
		j := KeptVerdict{Exercise: "04.3", Passed: passed, Check: "behaviour/05-deleted-configmap", Message: "it differs", At: 7}
		if err := k.Write([]Record{{N: 7, Is: Event}, {N: 2, Is: Request}}, j); err != nil {
			t.Fatal(err)
		}
		records, is, err := k.Read(t.Context())
		if err != nil || is != j || len(records) != 2 || records[0].N != 2 {
			t.Errorf("%v, %+v, %v", records, is, err)
		}
	}
}

// TestTheEssenceIsTheAnswerToAnAct has other events and writes of the same time, which have other causes.
func TestTheEssenceIsTheAnswerToAnAct(t *testing.T) {
	event := func(n int, kind, text string) Record {
		return Record{Is: Event, N: n, Resource: kind, Name: "web", Type: text}
	}
	request := func(n int, verb, resource string, code int) Record {
		return Record{Is: Request, N: n, Verb: verb, Resource: resource, Name: "web", Code: code}
	}
	byUser := func(n int, verb, resource string) Record {
		r := request(n, verb, resource, 200)
		r.By.Name = User
		return r
	}
	noise := []Record{request(1, "list", "configmaps", 200), event(2, "deployments", "ADDED"), request(3, "create", "services", 201),
		event(4, "services", "ADDED"), request(5, "update", "samples", 200)}
	deleted := []Record{event(7, "configmaps", "DELETED"), request(8, "get", "configmaps", 404), request(9, "create", "configmaps", 409),
		request(10, "create", "configmaps", 201), event(11, "configmaps", "ADDED"), request(12, "update", "samples", 200)}
	for name, test := range map[string]struct {
		records []Record
		want    []int
	}{
		"a deleted child":            {slices.Concat(noise, []Record{byUser(6, "delete", "configmaps")}, deleted), []int{7, 10}},
		"the end without its author": {slices.Concat(noise, deleted), []int{7, 10}},
		"a changed page": {[]Record{byUser(1, "patch", "samples"), event(2, "services", "ADDED"), event(3, "samples", "MODIFIED"),
			request(4, "update", "configmaps", 200), request(5, "update", "deployments", 200)}, []int{3, 4}},
		"an act without an answer after one": {[]Record{byUser(1, "create", "samples"), event(2, "samples", "ADDED"),
			request(3, "create", "configmaps", 201), byUser(4, "patch", "services"), event(5, "services", "MODIFIED")}, []int{2, 3}},
		"a program that only watches": {[]Record{event(1, "a", "ADDED"), request(2, "list", "a", 200), event(3, "a", "MODIFIED"),
			event(4, "a", "DELETED")}, []int{3, 4}},
		"writes without an act": {noise, []int{2, 4}},
		"nothing":               {nil, nil},
	} {
		some, got := Essence(test.records), []int(nil)
		for _, r := range some {
			got = append(got, r.N)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
		var out strings.Builder
		p := Printer{W: &out}
		for _, r := range some {
			if err := p.Print(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil || strings.Count(out.String(), "\n") > mostEvents {
			t.Errorf("%s: too many lines: %v\n%s", name, err, &out)
		}
	}
}
