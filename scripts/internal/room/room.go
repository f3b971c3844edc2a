// Package room shows an instructor the progress of the attendees who want to take part. The server keeps the reports
// that they send with `make check ROOM=… NAME=…` in memory until it ends.
package room

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"example.com/operator-workshop/scripts/examine/output"
)

// Progress has all data that an attendee sends.
type Progress struct {
	// Name is the name that the attendee has chosen.
	Name string `json:"name"`
	// Exercise is the ID of the exercise.
	Exercise string `json:"exercise"`
	Passed   bool   `json:"passed"`
	// Check is the first failed check.
	Check string `json:"check,omitempty"`
	// Token belongs to the name: the first report under a name has any token, and later reports need the same.
	Token string `json:"token"`
}

var (
	names     = regexp.MustCompile(`^[\pL\pN][\pL\pN ._-]{0,29}$`)
	exercises = regexp.MustCompile(`^[a-z0-9./-]{1,60}$`)
	checks    = regexp.MustCompile(`^[\w ./|-]{0,80}$`)
	tokens    = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

func (r Progress) check() error {
	switch {
	case !names.MatchString(r.Name):
		return fmt.Errorf("NAME=%q: a name has 1 to 30 letters, digits, spaces, dots, - and _", r.Name)
	case !exercises.MatchString(r.Exercise):
		return fmt.Errorf("%q is not an exercise", r.Exercise)
	case !checks.MatchString(r.Check):
		return fmt.Errorf("%q is not the name of a check", r.Check)
	case !tokens.MatchString(r.Token):
		return errors.New("a report has the token of its name")
	}
	return nil
}

// An Attendee sends reports.
type Attendee struct{ address, name, token string }

// Join returns an attendee who sends reports to the address that an instructor gives. Without an address, no report is
// ever sent. The folder state keeps the attendee's secret.
func Join(address, name, state string) (Attendee, error) {
	if address == "" {
		if name != "" {
			return Attendee{}, fmt.Errorf("NAME=%s is not sent anywhere: add ROOM=http://…, your instructor's address", name)
		}
		return Attendee{}, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
		return Attendee{}, fmt.Errorf("ROOM=%s: it must be the address of your instructor, such as "+
			"http://192.168.1.5:8400", address)
	}
	if !names.MatchString(name) {
		return Attendee{}, fmt.Errorf("%w: choose the one that the instructor may see", Progress{Name: name}.check())
	}
	a := Attendee{address: "http://" + u.Host, name: name}
	a.token, err = a.makeToken(filepath.Join(state, "room"))
	return a, err
}

// Words returns the words after make check with which this attendee takes part; nothing when nothing is sent.
func (a Attendee) Words() string {
	if a.address == "" {
		return ""
	}
	return fmt.Sprintf(" ROOM='%s' NAME='%s'", strings.ReplaceAll(a.address, "'", ""), a.name)
}

// Unused returns a note for an attendee whose environment has a room that the command does not use: only a typed ROOM
// is used.
func Unused(address string) string {
	room := os.Getenv("ROOM")
	if room == "" || address != "" {
		return ""
	}
	return fmt.Sprintf("note: nothing is sent to ROOM=%s of your environment: type make check ROOM=… NAME=…\n", room)
}

// makeToken derives the token of this name in this room from a secret in a file. Another room does not learn it.
func (a Attendee) makeToken(file string) (string, error) {
	secret, err := os.ReadFile(file)
	if len(secret) == 0 {
		secret = []byte(rand.Text())
		err = errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, secret, 0o600))
	}
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, a.address+" "+a.name) // it never fails
	return hex.EncodeToString(mac.Sum(nil)), err
}

// patience is how much longer a check may take when a room does not answer.
const patience = time.Second

// Send sends a verdict and prints one line about it. When the room cannot be reached, the check is not affected.
func (a Attendee) Send(ctx context.Context, out io.Writer, exercise string, passed bool, failed string) {
	if a.address == "" {
		return
	}
	r := Progress{Name: a.name, Exercise: exercise, Passed: passed, Check: failed, Token: a.token}
	if err := a.post(ctx, r); err != nil {
		fmt.Fprintf(out, "note: nothing was sent to the room (%.60s); your check counts all the same\n", output.Line(err.Error()))
		return
	}
	verdict := "passed"
	if !passed {
		verdict = "failed " + failed
	}
	fmt.Fprintf(out, "sent to the room as %s: %s %s\n", a.name, exercise, verdict)
}

func (a Attendee) post(ctx context.Context, r Progress) error {
	if err := r.check(); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.address+"/room", bytes.NewReader(data))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	// No proxy, because the room is in this network. No redirection, because the name is for the given address.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			return wrapped.Err
		}
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNoContent {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 100))
		return fmt.Errorf("%s %s", answer.Status, bytes.TrimSpace(text))
	}
	return nil
}
