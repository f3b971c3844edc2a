package loop

import "testing"

// TestTheEventBeforeARequestIsOfTheSameOwner has the events of two objects, of which one has children.
func TestTheEventBeforeARequestIsOfTheSameOwner(t *testing.T) {
	event := func(n int, name, uid string, owners ...string) Record {
		return Record{Is: Event, N: n, Namespace: "a", Name: name, UID: uid, Shown: Shown{Owners: owners}}
	}
	request := func(n int, name, uid string, owners ...string) Record {
		r := event(n, name, uid, owners...)
		r.Is = Request
		return r
	}
	var o Order
	for _, r := range []Record{event(1, "x", "x"), event(2, "x-child", "c", "x"), event(3, "y", "y"), event(9, "x", "x")} {
		o.Note(r)
	}
	for name, test := range map[string]struct {
		request Record
		want    int
	}{
		"the owner":                 {request(4, "x", "x"), 2},
		"the owner, before a child": {request(2, "x", "x"), 1},
		"another child":             {request(4, "x-other", "d", "x"), 2},
		"a first child":             {request(2, "x-other", "d", "x"), 1},
		"a refused request":         {request(4, "x", ""), 1},
		"no object in common":       {request(4, "z", "z"), 3},
		"before all events":         {request(1, "x", "x"), 0},
	} {
		if got, ok := o.Before(test.request); got.N != test.want || ok != (test.want > 0) {
			t.Errorf("%s: %d, want %d", name, got.N, test.want)
		}
	}
}
