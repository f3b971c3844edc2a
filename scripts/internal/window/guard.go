package window

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"example.com/operator-workshop/scripts/internal/translation"
)

// policy is the content security policy of a page. Scripts and styles come from files only; the nonce is for the style
// sheets that the terminal adds while it runs.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' data:; " +
	"connect-src 'self' ws://%s; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// picturePolicy is the policy of the frame that draws pictures: Mermaid measures with its own styles. The frame has no
// data except the text of a picture, cannot connect, and can be shown by the window only.
const picturePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// guard answers only a browser that has opened the first address, on a page of this server. It compares Host and Origin
// on each request: a foreign web page has another Origin, and a foreign name that resolves to 127.0.0.1 is another
// Host. A cookie is not enough for what belongs to the reader: see private and accept.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", fmt.Sprintf(policy, rand.Text(), s.host()))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		origin := r.Header.Get("Origin")
		changes := r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != ""
		switch {
		case r.Context().Value(isStranger{}) == true:
			http.Error(w, "This connection belongs to another user of this machine.", http.StatusForbidden)
		case r.Host != s.host():
			http.Error(w, "This server answers only at 127.0.0.1.", http.StatusMisdirectedRequest)
		case origin != "" && origin != "http://"+s.host(), origin == "" && changes:
			http.Error(w, "This request comes from another web page.", http.StatusForbidden)
		case r.URL.Path == "/enter":
			s.enter(w, r)
		case !s.isKnown(r):
			http.Error(w, "Open the address that `make open` printed: it has the key.", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// cookieName contains the port, because browsers send cookies to all ports of a host.
func (s *Server) cookieName() string {
	_, port, _ := net.SplitHostPort(s.host())
	return "workshop-" + port
}

func (s *Server) isKnown(r *http.Request) bool {
	cookie, err := r.Cookie(s.cookieName())
	return err == nil && equal(cookie.Value, s.cookie)
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// isStranger is the key of a connection's context for whether another user opened it.
type isStranger struct{}

var noSecret = translation.Mark("This tab has no secret of this window: open the newest address that `make open` printed.")

// private answers only a page with the second secret. A browser sends the cookie to each port of 127.0.0.1, but only
// pages of this server have the second secret.
func (s *Server) private(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if secret, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); !ok || !equal(secret, s.secret) {
			http.Error(w, noSecret, http.StatusForbidden)
			return
		}
		handler(w, r)
	}
}

// accept accepts a WebSocket, whose first message must be the second secret. Without it, accept returns nil.
func (s *Server) accept(w http.ResponseWriter, r *http.Request) *websocket.Conn {
	connection, err := websocket.Accept(w, r, nil)
	if err != nil {
		return nil // Accept has answered the request
	}
	ctx, cancel := context.WithTimeout(r.Context(), 10*time.Second)
	defer cancel()
	_, first, err := connection.Read(ctx)
	if err != nil || !equal(string(first), s.secret) {
		_ = connection.Close(websocket.StatusPolicyViolation, noSecret)
		return nil
	}
	return connection
}

var enterPage = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><title>Operator workshop</title>` +
	`<link rel="icon" href="/web/icon.svg"><script type="module" src="/web/enter.js"></script>` +
	`<meta http-equiv="refresh" content="0; url=/">` + // after the script
	`<body data-secret="{{.}}"><p><a href="/">Open the workshop</a></p>`))

// enter gives the cookie and the second secret for the key, once. A page leads on instead of a redirection: with
// SameSite=Strict a browser that followed a link of another site would not send the cookie after a redirection.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	secret := ""
	switch {
	case s.useKey(r.URL.Query().Get("key")):
		secret = s.secret
		http.SetCookie(w, &http.Cookie{Name: s.cookieName(), Value: s.cookie, Path: "/", HttpOnly: true,
			SameSite: http.SameSiteStrictMode})
		fmt.Fprintf(s.out, "The address is used. Another browser needs another one:\n\n  %s\n\n", s.Address())
	case !s.isKnown(r):
		http.Error(w, "This key is used, or that of another window: open the newest address that `make open` printed.",
			http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = enterPage.Execute(w, secret)
}

// useKey replaces the key when it is the right one.
func (s *Server) useKey(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !equal(key, s.key) {
		return false
	}
	s.key = rand.Text()
	return true
}

// nonce returns the nonce of the response's policy.
func nonce(w http.ResponseWriter) string {
	_, after, _ := strings.Cut(w.Header().Get("Content-Security-Policy"), "'nonce-")
	value, _, _ := strings.Cut(after, "'")
	return value
}
