package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"example.com/operator-workshop/scripts/internal/room"
	"example.com/operator-workshop/scripts/internal/unbundle"
)

// Serve gives the bundles in dir to all clients that reach address, until ctx ends. Its folder modules is a module
// proxy. A bundle that is made meanwhile is served at once. Serve also collects the progress of attendees who send it,
// for the given exercises; for this it needs no bundle.
func Serve(ctx context.Context, dir, address string, exercises []string, out io.Writer) error {
	if err := named(address); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w (ADDRESS=HOST:PORT names another address)", err)
	}
	progress := room.NewServer(listener.Addr().String(), exercises)
	s := server{dir: dir, base: "http://" + listener.Addr().String(), out: out}
	if s.screen(); s.shown == "" {
		fmt.Fprintf(out, noBundle, dir)
	}
	fmt.Fprintf(out, progressScreen, s.base, s.base+progress.Screen(), hint(s.base))
	handler := http.NewServeMux()
	progress.Routes(handler)
	handler.HandleFunc("GET /{$}", s.page)
	handler.HandleFunc("GET /", s.file)
	// A request must be complete soon. Downloads have no time limit, because a room shares its network.
	server := http.Server{Handler: handler, ReadTimeout: readTimeout, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// A server gives out the bundles that a folder has now: make bundle replaces the folder.
type server struct {
	dir, base string
	mu        sync.Mutex
	out       io.Writer
	shown     string // the checksums whose code is on the teacher's screen
}

// screen returns the checksums of the bundles, and shows the teacher their code when it is another one.
func (s *server) screen() (sums string) {
	data, _ := os.ReadFile(filepath.Join(s.dir, unbundle.SumsFile)) // without the file there is no bundle
	sums = string(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sums != "" && sums != s.shown {
		code := unbundle.Code(data)
		fmt.Fprintf(s.out, screen, s.base, code, lines(sums, s.base, "code="+code))
		s.shown = sums
	}
	return sums
}

// page shows the lines that attendees paste.
func (s *server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	text := "There is no bundle here. Ask your instructor for it.\n"
	if sums := s.screen(); sums != "" {
		text = lines(sums, s.base, "printf 'Code: '; read -r code")
	}
	_, _ = io.WriteString(w, text)
}

func (s *server) file(w http.ResponseWriter, r *http.Request) {
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	defer root.Close()
	http.FileServerFS(filesOnly{root.FS()}).ServeHTTP(w, r)
}

// readTimeout is how long a client may take to send a request, with its body.
const readTimeout = 5 * time.Second

// named refuses an address that stands for all addresses of this machine: attendees must be able to type the address.
func named(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("ADDRESS=%s: it must be HOST:PORT, such as 127.0.0.1:8400", address)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fmt.Errorf("ADDRESS=%s: name one address of this machine: %s", address, strings.Join(addresses(), ", "))
	}
	return nil
}

// addresses returns the addresses of this machine that other machines may reach.
func addresses() (found []string) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.IsGlobalUnicast() && ip.To4() != nil {
			found = append(found, ip.String())
		}
	}
	return append(found, "127.0.0.1")
}

// filesOnly hides folders, so that nothing is listed, and all files that are not part of a bundle.
type filesOnly struct{ fs.FS }

var served = regexp.MustCompile(`^(` + unbundle.SumsFile + `|` + unbundle.Name + `[a-z0-9-]+\.tar\.gz|` +
	`modules/.+\.(info|mod|zip))$`)

func (f filesOnly) Open(name string) (fs.File, error) {
	if !served.MatchString(name) {
		return nil, fs.ErrNotExist
	}
	return f.FS.Open(name)
}
