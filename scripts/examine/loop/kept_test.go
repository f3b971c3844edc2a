package loop

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestWhatACheckKeepsIsReadInOrder(t *testing.T) {
	k := KeptOf(t.TempDir(), "04.3")
	if _, _, err := k.Read(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing was kept: %v", err)
	}
	for _, passed := range []bool{false, true} {
		j := Judgement{Exercise: "04.3", Passed: passed, Check: "behaviour/05-deleted-configmap", Message: "it differs", At: 7}
		if err := k.Write([]Record{{N: 7, Is: Event}, {N: 2, Is: Request}}, j); err != nil {
			t.Fatal(err)
		}
		records, is, err := k.Read(t.Context())
		if err != nil || is != j || len(records) != 2 || records[0].N != 2 {
			t.Errorf("%v, %+v, %v", records, is, err)
		}
	}
}

func TestTheEssenceIsWhatAProgramChanged(t *testing.T) {
	event := func(n int) Record { return Record{Is: Event, N: n, Resource: "configmaps"} }
	request := func(n int, verb, resource string) Record {
		return Record{Is: Request, N: n, Verb: verb, Resource: resource, Code: 200}
	}
	byUser := func(n int) Record {
		r := request(n, "delete", "configmaps")
		r.By.Name = User
		return r
	}
	all := []Record{request(1, "list", "configmaps"), event(2), event(3), request(4, "create", "configmaps"),
		request(5, "create", "services"), request(6, "update", "leases"), event(7), request(8, "get", "configmaps"),
		request(9, "create", "deployments"), event(10)}
	numbers := func(records []Record) (all []int) {
		for _, r := range records {
			all = append(all, r.N)
		}
		return all
	}
	for name, test := range map[string]struct {
		records []Record
		n       int
		want    []int
	}{
		"requests and the event before each": {all, 7, []int{3, 4, 5, 7, 9}},
		"the last of many":                   {all, 2, []int{5, 7, 9}},
		"a program that only watches":        {[]Record{event(1), request(2, "list", "configmaps"), event(3)}, 7, []int{1, 3}},
		"nothing":                            {nil, 7, nil},
		"what a user did":                    {append([]Record{byUser(0)}, all[:4]...), 7, []int{0, 3, 4}},
		"a program that only reads":          {[]Record{byUser(0), event(1), request(2, "list", "configmaps")}, 7, []int{0, 1}},
	} {
		some := Essence(test.records, test.n)
		if diff := cmp.Diff(test.want, numbers(some), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		var out strings.Builder
		p := Printer{W: &out}
		for _, r := range some {
			if err := p.Print(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Close(); err != nil || strings.Count(out.String(), "\n") > test.n {
			t.Errorf("%s: more than %d lines: %v\n%s", name, test.n, err, &out)
		}
	}
}
