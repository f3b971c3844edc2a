package schedule

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func parse(t *testing.T, text, zone string) Schedule {
	t.Helper()
	s, err := Parse(text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatCannotBeASchedule(t *testing.T) {
	for name, test := range map[string]struct{ text, zone, says string }{
		"nothing":                      {"", "UTC", "cannot be read"},
		"a minute that no hour has":    {"60 * * * *", "UTC", "cannot be read: end of range (60) above maximum (59)"},
		"a weekday that no week has":   {"0 0 * * 7", "UTC", "above maximum (6)"},
		"a step of nothing":            {"*/0 * * * *", "UTC", "cannot be read"},
		"a range backwards":            {"5-1 * * * *", "UTC", "cannot be read"},
		"six fields":                   {"0 0 0 * * *", "UTC", "expected exactly 5 fields"},
		"words":                        {"every day at noon !", "UTC", "cannot be read"},
		"what panics the parser":       {"TZ=0", "UTC", "must not contain TZ="},
		"what panics it otherwise":     {"CRON_TZ=UTC", "UTC", "must not contain TZ="},
		"a zone inside":                {"TZ=UTC 0 0 * * *", "UTC", "name the zone in spec.timeZone"},
		"@every":                       {"@every 5m", "UTC", "has no fixed minutes"},
		"February 30":                  {"0 0 30 2 *", "UTC", "never comes"},
		"the 31st of short months":     {"0 0 31 2,4,6,9,11 *", "Europe/Berlin", "never comes"},
		"a zone that does not exist":   {"@daily", "Europe/Atlantis", `spec.timeZone "Europe/Atlantis" is not known`},
		"the zone of the pod":          {"@daily", "Local", "is not known"},
		"the zone of the pod, spelled": {"@daily", "LOCAL", "is not known"},
		"a file":                       {"@daily", "../../etc/passwd", "is not known"},
	} {
		if _, err := Parse(test.text, test.zone); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	for _, seed := range []string{"TZ=0", "CRON_TZ=", "* * * * *", "@every 1h", "0 0 30 2 *", "a-b/c,* ? L W #"} {
		f.Add(seed, "UTC")
	}
	f.Fuzz(func(_ *testing.T, text, zone string) { _, _ = Parse(text, zone) })
}

// slots returns the first n slots after a time, in the zone of the schedule.
func slots(s Schedule, after time.Time, n int) (all []string) {
	for range n {
		after = s.Next(after)
		all = append(all, after.In(s.cron.Location).Format(time.RFC3339))
	}
	return all
}

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		text, zone, after string
		want              []string
	}{
		"every five minutes": {"*/5 * * * *", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2026-01-01T00:05:00Z", "2026-01-01T00:10:00Z"}},
		"a fraction before": {"*/5 * * * *", "UTC", "2026-01-01T00:04:59.999Z", []string{"2026-01-01T00:05:00Z"}},
		"leap days": {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z",
			[]string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		"2100 has none": {"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		"a day of the month or of the week": {"0 0 13 * 5", "UTC", "2026-02-07T00:00:00Z",
			[]string{"2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
		"23 hours: the missing hour does not come": {"30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z",
			[]string{"2026-03-28T02:30:00+01:00", "2026-03-30T02:30:00+02:00"}},
		"23 hours: each hour that is there": {"0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z",
			[]string{"2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"}},
		"the first hour after a day of 23": {
			"30 0 30 3 *", "Europe/Berlin", "2026-03-27T00:00:00Z", []string{"2026-03-30T00:30:00+02:00"}},
		"25 hours: the repeated hour comes twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-26T02:30:00+01:00"}},
		"half an hour, forward: left out, as in a CronJob": {"0 4 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-05T04:00:00+11:00", "2026-10-06T04:00:00+11:00"}},
		"half an hour, back": {"45 1 * * *", "Australia/Lord_Howe", "2026-04-03T20:00:00Z",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-05T01:45:00+10:30", "2026-04-06T01:45:00+10:30"}},
		"the day without a midnight: left out, as in a CronJob": {"0 5 24 4 *", "Africa/Cairo", "2026-04-20T12:00:00Z",
			[]string{"2027-04-24T05:00:00+02:00"}},
	} {
		after := at(t, test.after)
		if diff := cmp.Diff(test.want, slots(parse(t, test.text, test.zone), after, len(test.want))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// These schedules and zones have few and many slots, and days of 23 and 25 hours.
var (
	texts = []string{"* * * * *", "30 2 * * *", "0 */5 * * *", "30 1 * * 0", "0 0 29 2 *", "0 0 13 * 5", "5 4 31 * *"}
	zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "Asia/Kathmandu"}
)

func TestLatestIsTheLastThatNextGives(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		s := parse(t, texts[random.IntN(len(texts))], zones[random.IntN(len(zones))])
		now := probe.Add(time.Duration(random.Int64N(int64(40 * 365 * 24 * time.Hour))))
		after := now.Add(-time.Duration(random.Int64N(int64([]time.Duration{
			time.Hour, 48 * time.Hour, 2000 * time.Hour}[random.IntN(3)]))))
		var want time.Time
		for slot := s.Next(after); !slot.IsZero() && !slot.After(now); slot = s.Next(slot) {
			want = slot
		}
		if got := s.Latest(after, now); !got.Equal(want) {
			t.Fatalf("%+v after %s until %s: got %s, want %s", s, after, now, got, want)
		}
	}
}

func TestDue(t *testing.T) {
	const every5 = "*/5 * * * *"
	for name, test := range map[string]struct {
		text, last, now string
		deadline        time.Duration
		want, next      string
		missed          bool
	}{
		"nothing yet": {every5, "2026-01-01T10:00:00Z", "2026-01-01T10:04:59Z", 0, "", "2026-01-01T10:05:00Z", false},
		"on the minute": {
			every5, "2026-01-01T10:00:00Z", "2026-01-01T10:05:00Z", 0, "2026-01-01T10:05:00Z", "2026-01-01T10:10:00Z", false},
		"once only": {every5, "2026-01-01T10:05:00Z", "2026-01-01T10:05:30Z", 0, "", "2026-01-01T10:10:00Z", false},
		"after downtime, the latest": {
			every5, "2026-01-01T10:00:00Z", "2026-01-03T07:13:00Z", 0, "2026-01-03T07:10:00Z", "2026-01-03T07:15:00Z", false},
		"and the last second inside": {every5, "2026-01-01T10:00:00Z", "2026-01-01T10:06:59Z", 2 * time.Minute,
			"2026-01-01T10:05:00Z", "2026-01-01T10:10:00Z", false},
		"and outside": {every5, "2026-01-01T10:00:00Z", "2026-01-01T10:07:00Z", 2 * time.Minute,
			"2026-01-01T10:05:00Z", "2026-01-01T10:10:00Z", true},
		"after years": {
			"@yearly", "2019-06-01T00:00:00Z", "2026-03-01T00:00:00Z", 0, "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z", false},
		"every minute, after years": {"* * * * *", "1990-01-01T00:00:00Z", "2026-03-01T00:00:30Z", 0,
			"2026-03-01T00:00:00Z", "2026-03-01T00:01:00Z", false},
		"the clock was put back": {
			every5, "2026-01-01T10:30:00Z", "2026-01-01T10:07:00Z", 0, "", "2026-01-01T10:35:00Z", false},
		"and has come to the last": {
			every5, "2026-01-01T10:30:00Z", "2026-01-01T10:30:00Z", 0, "", "2026-01-01T10:35:00Z", false},
		"the clock had been years ahead": {
			every5, "2099-01-01T00:00:00Z", "2026-01-01T10:07:00Z", 0, "", "2026-01-01T10:10:00Z", false},
		"the clock was put forward a year": {every5, "2026-01-01T10:00:00Z", "2027-01-01T10:01:00Z", time.Minute * 5,
			"2027-01-01T10:00:00Z", "2027-01-01T10:05:00Z", false},
	} {
		s := parse(t, test.text, "UTC")
		last, now := at(t, test.last), at(t, test.now)
		slot, err := s.Due(last, now, test.deadline)
		got := ""
		if !slot.IsZero() {
			got = slot.Format(time.RFC3339)
		}
		if got != test.want || errors.Is(err, ErrMissed) != test.missed {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if next := s.Coming(last, now).Format(time.RFC3339); next != test.next {
			t.Errorf("%s: next at %s, want %s", name, next, test.next)
		}
	}
}

func TestPeriod(t *testing.T) {
	for name, test := range map[string]struct {
		text, now string
		want      time.Duration
	}{
		"every five minutes":             {"*/5 * * * *", "2026-01-01T10:07:00Z", 5 * time.Minute},
		"every day":                      {"0 3 * * *", "2026-01-01T10:07:00Z", 24 * time.Hour},
		"working days, on a Wednesday":   {"0 3 * * 1-5", "2026-01-07T10:00:00Z", 24 * time.Hour},
		"working days, on a Sunday":      {"0 3 * * 1-5", "2026-01-11T10:00:00Z", 72 * time.Hour},
		"working days, Monday morning":   {"0 3 * * 1-5", "2026-01-12T03:00:00Z", 72 * time.Hour},
		"working days, on a Tuesday":     {"0 3 * * 1-5", "2026-01-13T03:00:00Z", 24 * time.Hour},
		"twice a day, not evenly":        {"0 3,5 * * *", "2026-01-13T04:00:00Z", 22 * time.Hour},
		"leap days":                      {"0 0 29 2 *", "2026-01-01T00:00:00Z", 4*365*24*time.Hour + 24*time.Hour},
		"leap days around the year 2100": {"0 0 29 2 *", "2101-01-01T00:00:00Z", 8*365*24*time.Hour + 24*time.Hour},
	} {
		if got := parse(t, test.text, "UTC").Period(at(t, test.now)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
