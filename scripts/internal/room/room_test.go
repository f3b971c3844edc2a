package room

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
)

func start(t *testing.T) (s *Server, base string) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	s = NewServer(server.Listener.Addr().String(), []string{"04.2", "04.3"})
	s.Routes(mux)
	return s, server.URL
}

func get(t *testing.T, address string) (int, string) {
	t.Helper()
	answer, err := http.Get(address)
	testkit.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	testkit.Must(t, err)
	return answer.StatusCode, string(text)
}

func TestTheInstructorSeesWhoPassedAndWhatFails(t *testing.T) {
	s, base := start(t)
	for _, name := range []string{"anna", "Jörg B."} {
		a, err := Join(base, name, t.TempDir())
		testkit.Must(t, err)
		var out bytes.Buffer
		a.Send(t.Context(), &out, "04.2", true, "")
		a.Send(t.Context(), &out, "04.3", false, "behaviour/05-deleted-configmap")
		want := "sent to the room as " + name + ": 04.2 passed\n" +
			"sent to the room as " + name + ": 04.3 failed behaviour/05-deleted-configmap\n"
		if out.String() != want {
			t.Errorf("got %q, want %q", &out, want)
		}
	}
	code, page := get(t, base+s.Screen())
	for _, want := range []string{"2 take part", "<th>04.2<td>2", "<th>04.3 behaviour/05-deleted-configmap<td>2",
		"<td>Jörg B.<td>04.3 failed behaviour/05-deleted-configmap\n<td>0 min<td><code>make solution</code><td>04.2"} {
		if code != http.StatusOK || !strings.Contains(page, want) {
			t.Errorf("%d, %q is not on the page:\n%s", code, want, page)
		}
	}
}

// The instructor goes to the attendee who has failed longest; a second failure at the same exercise does not make her younger.
func TestThoseWhoAreStuckComeFirst(t *testing.T) {
	s, _ := start(t)
	report := func(name, exercise string, passed bool, ago time.Duration) {
		t.Helper()
		if _, why := s.keep(Progress{Name: name, Exercise: exercise, Passed: passed, Token: token}, netip.Prefix{}); why != "" {
			t.Fatal(why)
		}
		if a := s.attendees[name]; time.Since(a.Since) < time.Minute {
			a.Since = a.Since.Add(-ago)
		}
	}
	report("quick", "04.3", true, 50*time.Minute)
	report("new", "04.3", false, 2*time.Minute)
	report("stuck", "04.2", false, 20*time.Minute)
	report("stuck", "04.2", false, 0)
	report("on", "04.2", false, 30*time.Minute)
	report("on", "04.3", false, 5*time.Minute)
	var is []string
	for _, a := range s.view().Attendees {
		is = append(is, fmt.Sprintf("%s %d %s", a.Name, a.Minutes(), a.Goto))
	}
	want := []string{"stuck 20 make goto EX=04.3", "on 5 make solution", "new 2 make solution", "quick 50 make solution"}
	if !slices.Equal(is, want) {
		t.Errorf("the rows are %q, want %q", is, want)
	}
}

// The attacks that a stranger in the room may try.
func TestAttacks(t *testing.T) {
	s, base := start(t)
	post := func(body, kind, host string) (int, string) {
		request, err := http.NewRequest(http.MethodPost, base+"/room", strings.NewReader(body))
		testkit.Must(t, err)
		request.Header.Set("Content-Type", kind)
		if host != "" {
			request.Host = host
		}
		answer, err := http.DefaultClient.Do(request)
		testkit.Must(t, err)
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text)
	}
	const good, json = `{"name":"anna","exercise":"04.2","passed":true,"token":"` + token + `"}`, "application/json"
	for what, test := range map[string]struct {
		body, kind, host string
		want             int
	}{
		"a form of another site":  {good, "text/plain", "", http.StatusForbidden},
		"a name that leads here":  {good, json, "evil.example:80", http.StatusForbidden},
		"a name with markup":      {`{"name":"<script>","exercise":"04.2"}`, json, "", http.StatusBadRequest},
		"an exercise with markup": {`{"name":"a","exercise":"<b>"}`, json, "", http.StatusBadRequest},
		"a check with markup":     {`{"name":"a","exercise":"04.2","check":"<b>"}`, json, "", http.StatusBadRequest},
		"a field of nobody":       {`{"name":"a","exercise":"04.2","source":"x"}`, json, "", http.StatusBadRequest},
		"too much":                {`{"name":"` + strings.Repeat("a", 2*mostBytes) + `"}`, json, "", http.StatusBadRequest},
		"no token":                {`{"name":"a","exercise":"04.2"}`, json, "", http.StatusBadRequest},
		"no report":               {`[]`, json, "", http.StatusBadRequest},
	} {
		if code, text := post(test.body, test.kind, test.host); code != test.want {
			t.Errorf("%s: %d %s, want %d", what, code, text, test.want)
		}
	}
	for _, path := range []string{"/room", "/room/", "/room/guessed"} {
		if code, text := get(t, base+path); code == http.StatusOK {
			t.Errorf("%s shows %s", path, text)
		}
	}
	if n := len(s.view().Attendees); n != 0 {
		t.Errorf("there are %d attendees", n)
	}
}

// token is a valid token.
const token = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// join returns a function that reports as an attendee on a machine, and returns the printed line.
func join(t *testing.T, base, name, machine string) (report func(exercise string) string) {
	t.Helper()
	a, err := Join(base, name, machine)
	testkit.Must(t, err)
	return func(exercise string) string {
		var out bytes.Buffer
		a.Send(t.Context(), &out, exercise, true, "")
		return out.String()
	}
}

// Names that one machine invents leave space for others, and the room for an exercise has no other exercise.
func TestOneMachineCannotFillTheRoom(t *testing.T) {
	s, base := start(t)
	for n := range mostNames + 1 {
		said := join(t, base, fmt.Sprintf("a%d", n), t.TempDir())("04.2")
		if sent := strings.HasPrefix(said, "sent"); sent != (n < mostNames) {
			t.Fatalf("name %d: %s", n, said)
		}
	}
	for n := range mostAttendees {
		from := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(n / 256), byte(n)}), 32)
		code, why := s.keep(Progress{Name: fmt.Sprintf("b%d", n), Exercise: "04.2", Token: token}, from)
		if (why == "") != (n < mostAttendees-mostNames) {
			t.Fatalf("attendee %d of other addresses: %d %s", n, code, why)
		}
	}
	for from, want := range map[string]string{"192.0.2.7:80": "192.0.2.7/32", "[::ffff:192.0.2.7]:80": "192.0.2.7/32",
		"[2001:db8:0:1:2:3:4:5]:80": "2001:db8:0:1::/64"} {
		if is := networkOf(&http.Request{RemoteAddr: from}).String(); is != want {
			t.Errorf("%s is of %s, want %s", from, is, want)
		}
	}
}

func TestTheRoomHasOnlyExercisesOfTheCourse(t *testing.T) {
	s, base := start(t)
	if said := join(t, base, "anna", t.TempDir())("04.99"); !strings.Contains(said, "not an exercise") {
		t.Error(said)
	}
	if v := s.view(); len(v.Attendees) > 0 {
		t.Errorf("%+v", v)
	}
}

// A name belongs to the machine that has sent it first, until the instructor removes its row.
func TestANameBelongsToItsFirstMachine(t *testing.T) {
	mine, other := t.TempDir(), t.TempDir()
	s, base := start(t)
	if said := join(t, base, "anna", mine)("04.2"); !strings.HasPrefix(said, "sent") {
		t.Fatal(said)
	}
	if said := join(t, base, "anna", other)("04.3"); !strings.Contains(said, "another machine uses this name") {
		t.Errorf("another machine: %s", said)
	}
	if said := join(t, base, "anna", mine)("04.3"); !strings.HasPrefix(said, "sent") {
		t.Errorf("the same machine, later: %s", said)
	}
	about, err := os.Stat(filepath.Join(mine, "room"))
	if err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the secret: %v, %v", about, err)
	}
	remove := func(path string) {
		answer, err := http.PostForm(base+path, url.Values{"name": {"anna"}})
		testkit.Must(t, err)
		_ = answer.Body.Close()
	}
	remove("/room/guessed")
	if a, err := Join("http://192.168.1.5:8400/", "Jörg B.", mine); err != nil || a.Words() != " ROOM='http://192.168.1.5:8400' NAME='Jörg B.'" {
		t.Errorf("the words of make check: %q, %v", a.Words(), err)
	}
	if _, page := get(t, base+s.Screen()); !strings.Contains(page, `value="anna"`) || strings.Contains(page, s.view().Attendees[0].token) {
		t.Errorf("the row is gone, or shows its token:\n%s", page)
	}
	remove(s.Screen())
	if _, page := get(t, base+s.Screen()); strings.Contains(page, "anna") {
		t.Errorf("the row is still there:\n%s", page)
	}
	if said := join(t, base, "anna", other)("04.3"); !strings.HasPrefix(said, "sent") {
		t.Errorf("the name is not free again: %s", said)
	}
	// A removed name no longer counts for its address.
	for n := range mostNames {
		if said := join(t, base, fmt.Sprintf("a%d", n), t.TempDir())("04.2"); strings.HasPrefix(said, "sent") == (n == mostNames-1) {
			t.Errorf("name %d beside the one that was removed and came back: %s", n, said)
		}
	}
}

// A check never fails because of the room, and takes at most a moment longer with it.
func TestARoomThatCannotBeReached(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and never answers
	testkit.Must(t, err)
	defer listener.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	nobody := closed.Addr().String()
	closed.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "\x1b[2J") }))
	defer other.Close()
	for _, host := range []string{listener.Addr().String(), nobody, other.Listener.Addr().String()} {
		a, err := Join("http://"+host, "anna", t.TempDir())
		testkit.Must(t, err)
		var out bytes.Buffer
		begin := time.Now()
		a.Send(context.Background(), &out, "04.2", true, "")
		if took := time.Since(begin); took > 2*patience {
			t.Errorf("it took %s", took)
		}
		text := out.String()
		if !strings.HasPrefix(text, "note: nothing was sent") || strings.Count(text, "\n") != 1 || len(text) > 140 ||
			strings.Contains(text, "\x1b") {
			t.Errorf("it says %q", text)
		}
	}
}

func TestNothingIsSentUnlessItIsAskedFor(t *testing.T) {
	a, err := Join("", "", t.TempDir())
	testkit.Must(t, err)
	var out bytes.Buffer
	a.Send(t.Context(), &out, "04.2", true, "")
	if out.Len() > 0 {
		t.Errorf("it says %q", &out)
	}
	t.Setenv("ROOM", "http://192.168.1.5:8400")
	if note := Unused(""); !strings.Contains(note, "nothing is sent to ROOM=http://192.168.1.5:8400") || a.Words() != "" {
		t.Errorf("a room of the environment alone: %q, %q", note, a.Words())
	}
	if note := Unused("http://192.168.1.6:8400"); note != "" {
		t.Errorf("a typed room: %q", note)
	}
	for _, test := range []struct{ address, name, want string }{
		{"", "anna", "is not sent anywhere"},
		{"http://127.0.0.1:8400", "", "a name has 1 to 30"},
		{"http://127.0.0.1:8400", "<b>", "a name has 1 to 30"},
		{"192.168.1.5:8400", "anna", "it must be the address"},
		{"https://192.168.1.5", "anna", "it must be the address"},
		{"http://192.168.1.5/other", "anna", "it must be the address"},
	} {
		if _, err := Join(test.address, test.name, t.TempDir()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("ROOM=%s NAME=%s: %v, want %q", test.address, test.name, err, test.want)
		}
	}
}
