package backup

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	at := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for name, test := range map[string]struct{ zone, last, now, due, next string }{
		"before the slot": {"UTC", "2030-01-10T02:00:00Z", "2030-01-10T12:00:00Z", "", "2030-01-11T02:00:00Z"},
		"at the slot": {"UTC", "2030-01-10T02:00:00Z", "2030-01-11T02:00:00Z", "2030-01-11T02:00:00Z",
			"2030-01-12T02:00:00Z"},
		"an hour after the slot": {"UTC", "2030-01-10T02:00:00Z", "2030-01-11T03:00:00Z", "2030-01-11T02:00:00Z",
			"2030-01-12T02:00:00Z"},
		"after three days without the operator": {"UTC", "2030-01-10T02:00:00Z", "2030-01-13T09:00:00Z",
			"2030-01-13T02:00:00Z", "2030-01-14T02:00:00Z"},
		"in Tokyo, where it is two o'clock at 17:00 UTC": {"Asia/Tokyo", "2030-01-10T17:00:00Z", "2030-01-11T12:00:00Z",
			"", "2030-01-11T17:00:00Z"},
		"in Berlin, in summer": {"Europe/Berlin", "2030-07-10T00:00:00Z", "2030-07-11T00:30:00Z", "2030-07-11T00:00:00Z",
			"2030-07-12T00:00:00Z"},
	} {
		due, next, err := Next("0 2 * * *", test.zone, at(test.last), at(test.now))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !due.Equal(at(test.due)) {
			t.Errorf("%s: due is %s, want %s", name, said(due), said(at(test.due)))
		}
		if !next.Equal(at(test.next)) {
			t.Errorf("%s: next is %s, want %s", name, said(next), said(at(test.next)))
		}
	}
	when := at("2030-01-10T02:00:00Z")
	if _, _, err := Next("0 2 * * *", "Atlantis/Capital", when, when); err == nil {
		t.Error("a time zone that does not exist is taken")
	}
}

func said(moment time.Time) string {
	if moment.IsZero() {
		return "none"
	}
	return moment.UTC().Format(time.RFC3339)
}
