package bundle

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/operator-workshop/scripts/internal/testkit"
	"example.com/operator-workshop/scripts/internal/unbundle"
)

// planted makes a bundle whose from-bundle leaves the file ran.
func planted(t *testing.T, file string) []byte {
	t.Helper()
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, unbundle.Top, "Makefile"), "from-bundle:\n\t@touch ../ran\n")
	testkit.Run(t, dir, "tar", "-czf", file, unbundle.Top)
	data, err := os.ReadFile(file)
	testkit.Must(t, err)
	return data
}

// A terminal keeps the output of a command, and may be read meanwhile.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
	full chan struct{} // closed after the first text
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text.Len() == 0 {
		defer close(s.full)
	}
	return s.text.Write(p)
}

// lineIn returns the line to paste on Linux.
func lineIn(t *testing.T, text string) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "curl ") && strings.Contains(line, "linux-amd64") {
			return line
		}
	}
	t.Fatalf("there is no line to paste in:\n%s", text)
	return ""
}

// TestALineRunsNothingWithoutTheCode pastes the lines of the web page and of the teacher's screen into a shell.
func TestALineRunsNothingWithoutTheCode(t *testing.T) {
	if _, err := exec.LookPath("sha256sum"); err != nil {
		t.Skip("the line is for Linux")
	}
	dir, name := t.TempDir(), unbundle.File("linux/amd64")
	data := planted(t, filepath.Join(dir, name))
	sums := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
	testkit.Write(t, filepath.Join(dir, unbundle.SumsFile), sums)
	screen := serve(t, dir, "127.0.0.1:0")
	base, _, _ := strings.Cut(strings.TrimPrefix(screen.text.String(), "Attendees open "), " in a browser")
	response, err := http.Get(base)
	testkit.Must(t, err)
	page, err := io.ReadAll(response.Body)
	testkit.Must(t, errors.Join(err, response.Body.Close()))

	code := unbundle.Code([]byte(sums))
	if strings.Contains(string(page), code) || !strings.Contains(screen.text.String(), "\n\n  "+code+"\n") {
		t.Errorf("the code %s must be on the screen alone; the page:\n%s\nthe screen:\n%s", code, page, &screen.text)
	}
	room, err := http.Get(regexp.MustCompile(regexp.QuoteMeta(base) + `/room/\S+`).FindString(screen.text.String()))
	testkit.Must(t, err)
	if testkit.Must(t, room.Body.Close()); room.StatusCode != http.StatusOK || strings.Contains(string(page), "/room/") {
		t.Errorf("the room's page answers %s, or its address is on the page of the room:\n%s", room.Status, page)
	}
	teacher, attendee := lineIn(t, screen.text.String()), lineIn(t, string(page))
	for what, test := range map[string]struct {
		line, typed string
		runs        bool
	}{
		"the line of the screen":          {teacher, "", true},
		"the right code":                  {attendee, code, true},
		"the right code, as it was heard": {attendee, strings.ToUpper(strings.ReplaceAll(code, "-", " ")), true},
		"no code":                         {attendee, "", false},
		"the code of another bundle":      {attendee, unbundle.Code([]byte("other")), false},
		"the beginning of the code":       {attendee, code[:4], false},
		"the line for another bundle":     {strings.Replace(teacher, code, unbundle.Code([]byte("other")), 1), "", false},
	} {
		t.Run(what, func(t *testing.T) {
			home := t.TempDir()
			shell := exec.Command("bash", "-c", test.line)
			shell.Dir, shell.Stdin = home, strings.NewReader(test.typed+"\n")
			out, _ := shell.CombinedOutput()
			_, ran := os.Stat(filepath.Join(home, "ran"))
			_, unpacked := os.Stat(filepath.Join(home, unbundle.Top))
			if (ran == nil) != test.runs || (unpacked == nil) != test.runs {
				t.Errorf("it ran: %v, it was unpacked: %v\n%s", ran == nil, unpacked == nil, out)
			}
			if !test.runs && !strings.Contains(string(out), "WRONG CODE: nothing was unpacked") {
				t.Errorf("it says:\n%s", out)
			}
		})
	}
}

// A client that begins a request and never ends it does not hold its connection.
func TestARequestThatNeverEndsIsEnded(t *testing.T) {
	dir := t.TempDir()
	testkit.Write(t, filepath.Join(dir, unbundle.SumsFile), "0  other")
	screen := serve(t, dir, "127.0.0.1:0")
	base, _, _ := strings.Cut(strings.TrimPrefix(screen.text.String(), "Attendees open "), " in a browser")
	host := strings.TrimPrefix(base, "http://")
	for _, path := range []string{"/room", "/"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", host)
			testkit.Must(t, err)
			defer connection.Close()
			_, err = fmt.Fprintf(connection, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
				"Content-Length: 900\r\n\r\n{", path, host)
			testkit.Must(t, errors.Join(err, connection.SetReadDeadline(time.Now().Add(4*readTimeout))))
			if _, err := io.Copy(io.Discard, connection); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the server still waits")
			}
		})
	}
}

// serve serves a folder, and returns the address and the teacher's screen.
func serve(t *testing.T, dir, address string) *terminal {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	screen, done := &terminal{full: make(chan struct{})}, make(chan error, 1)
	go func() { done <- Serve(ctx, dir, address, nil, screen) }()
	t.Cleanup(func() {
		cancel()
		testkit.Must(t, <-done)
	})
	<-screen.full
	return screen
}

func fetch(t *testing.T, address string) (code int, text string) {
	t.Helper()
	response, err := http.Get(address)
	testkit.Must(t, err)
	data, err := io.ReadAll(response.Body)
	testkit.Must(t, errors.Join(err, response.Body.Close()))
	return response.StatusCode, string(data)
}

// A room needs no bundle for its progress. A bundle that is made while the server runs takes the place of the old one.
func TestABundleIsMadeWhileTheServerRuns(t *testing.T) {
	dir, name := filepath.Join(t.TempDir(), "bundle"), unbundle.File("linux/amd64")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	base := "http://" + free.Addr().String()
	testkit.Must(t, free.Close())
	screen := serve(t, dir, strings.TrimPrefix(base, "http://"))
	said := func() string {
		screen.mu.Lock()
		defer screen.mu.Unlock()
		return screen.text.String()
	}
	if code, page := fetch(t, base); code != http.StatusOK || !strings.Contains(page, "no bundle here") || !strings.Contains(said(), "There is no bundle in "+dir) {
		t.Errorf("without a bundle: %d %s\n%s", code, page, said())
	}
	for _, data := range []string{"the first", "the second"} {
		testkit.Must(t, os.RemoveAll(dir))
		testkit.Write(t, filepath.Join(dir, name), data)
		sums := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(data)), name)
		testkit.Write(t, filepath.Join(dir, unbundle.SumsFile), sums)
		code, page := fetch(t, base)
		if _, file := fetch(t, base+"/"+name); code != http.StatusOK || !strings.Contains(page, "curl ") || file != data {
			t.Errorf("%s bundle: %d, the file %q, the page:\n%s", data, code, file, page)
		}
		if own := unbundle.Code([]byte(sums)); strings.Count(said(), "\n\n  "+own+"\n") != 1 {
			t.Errorf("the code %s of %s bundle is not once on the screen:\n%s", own, data, said())
		}
	}
}
