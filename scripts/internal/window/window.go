// Package window shows the workshop in a browser: its pages, terminals into which the pages type commands, the
// exercises, and the control loop of programs. It uses the same packages and commands as the targets of make.
package window

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"example.com/operator-workshop/scripts/internal/exercise"
)

//go:embed web
var web embed.FS

// A Config describes a checkout to the window.
type Config struct {
	// Root is the checkout.
	Root string
	// State is a folder in which the window makes a folder for its shells.
	State string
	// Env has the variables of terminals, as in os.Environ. Its PATH leads to kubectl.
	Env []string
	// Ledger is the file of the local cluster's loop.
	Ledger string
	// Objects returns a reader of the local cluster in its present state. The error is the reason for which there is no
	// reader.
	Objects func() (Reader, error)
	// Gopls is the program of Go's language server. The editor works without the program.
	Gopls string
	// Memory returns how many bytes of memory are available.
	Memory func() (uint64, error)
	// Course are the exercises.
	Course exercise.Course
	// Port is the port on 127.0.0.1; 0 means any free port.
	Port int
	// Present shows large letters and one pane.
	Present bool
	// Grace is how long a program in a terminal may take to end when the window ends.
	Grace time.Duration
	// Room has the words with which make check sends the verdict to an instructor; without them nothing is sent.
	Room string
}

// A Server is one window.
type Server struct {
	Config
	listener net.Listener
	// cookie and secret are in the browser that has opened the first address: the browser sends the cookie, only pages of
	// this server can send the secret.
	cookie, secret string
	pages          *pages
	spoken         []spoken
	terminals      terminals
	// languageServers are those of programming languages.
	languageServers languageServers
	assets          fs.FS
	// out gets a new address when the last one is used.
	out io.Writer

	mu sync.Mutex
	// key is in the address, and is used once.
	key string
}

// New listens; Serve answers.
func New(c Config) (*Server, error) {
	s := &Server{Config: c, key: rand.Text(), cookie: rand.Text(), secret: rand.Text()}
	var err error
	if s.assets, err = fs.Sub(web, "web"); err != nil {
		return nil, err
	}
	if s.pages, err = findPages(c.Root); err != nil {
		return nil, err
	}
	if s.spoken, err = speakers(c.Root); err != nil {
		return nil, err
	}
	if err := s.terminals.open(c); err != nil {
		return nil, err
	}
	s.languageServers.open(c, s.terminals.state)
	s.listener, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", c.Port))
	if err != nil && c.Port != 0 { // another window uses it
		s.listener, err = net.Listen("tcp4", "127.0.0.1:0")
	}
	if err != nil {
		return nil, errors.Join(err, s.terminals.close(0))
	}
	return s, nil
}

// host returns the only Host that a browser may name.
func (s *Server) host() string { return s.listener.Addr().String() }

// Address returns the address that opens the window in one browser.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.host() + "/enter?key=" + s.key
}

// Serve answers until the context ends, and then ends every program that a terminal has started.
func (s *Server) Serve(ctx context.Context, out io.Writer) error {
	s.out = out
	connections, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	server := &http.Server{Handler: s.guard(s.routes()), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return connections },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, isStranger{}, isOfAnotherUser(c))
		}}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(s.listener) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		fmt.Fprintln(out, "ending what runs in the terminals")
	}
	cut()
	s.languageServers.close()
	return errors.Join(err, server.Close(), s.terminals.close(s.Grace))
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		to := "/page/README.md"
		if s.Present {
			to = "/slides"
		}
		http.Redirect(w, r, to, http.StatusSeeOther)
	})
	mux.HandleFunc("GET /slides", s.slides)
	mux.HandleFunc("GET /slides/presenter", s.slides)
	mux.HandleFunc("GET /slides/sheets", s.sheets)
	mux.HandleFunc("GET /page/{path...}", s.page)
	mux.HandleFunc("GET /file/{path...}", s.file)
	mux.HandleFunc("GET /web/{path...}", s.asset)
	mux.HandleFunc("GET /picture", s.pictureFrame)
	mux.HandleFunc("GET /terminal", s.terminal)
	mux.HandleFunc("GET /known", s.private(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	mux.HandleFunc("GET /exercises", s.private(s.exercises))
	mux.HandleFunc("GET /exercises/{id}", s.private(s.exercise))
	mux.HandleFunc("POST /exercises/{id}/open", s.private(s.openFile))
	mux.HandleFunc("GET /exercises/{id}/file", s.private(s.readText))
	mux.HandleFunc("PUT /exercises/{id}/file", s.private(s.writeText))
	mux.HandleFunc("POST /exercises/{id}/file/difference", s.private(s.compareText))
	mux.HandleFunc("GET /exercises/{id}/gopls", s.gopls)
	mux.HandleFunc("GET /source/{path...}", s.private(s.source))
	mux.HandleFunc("GET /loop/sources", s.private(s.loopSources))
	mux.HandleFunc("GET /loop/records/{source}", s.records)
	mux.HandleFunc("GET /loop/comparison/{source}", s.private(s.comparison))
	mux.HandleFunc("GET /loop/state", s.private(s.loopState))
	mux.HandleFunc("GET /loop/object", s.private(s.loopObject))
	return mux
}

// asset serves a file of the web page, but no list of a folder.
func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	info, err := fs.Stat(s.assets, r.PathValue("path"))
	if err != nil || info.IsDir() {
		http.NotFound(w, r)
		return
	}
	http.ServeFileFS(w, r, s.assets, r.PathValue("path"))
}

// below returns the path of a file in the checkout.
func (s *Server) below(path string) string { return filepath.Join(s.Root, filepath.FromSlash(path)) }
