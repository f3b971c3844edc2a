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

// A server gives out what is in a folder now, because make bundle replaces the folder.
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

// screen is the text that the teacher sees. The web page has no code: an attacker who changes a bundle on its way could
// change the code, too.
const screen = `Attendees open %[1]s in a browser, and copy the line for their machine. It asks for the code:

  %[2]s

Show it, or read it out: it is not on the web page, which a stranger in the network can change. The same lines with
the code, for machines that you prepare:

%[3]s`

const noBundle = `There is no bundle in %s: only the progress of the room is collected. Once make bundle has made one, it
is given out here.

`

const progressScreen = `%[3]sAttendees who want to send you their progress add this to make check, or to make open, with a name of their choice:

  ROOM=%[1]s NAME=…

Its page is for you; anybody with this address sees it:

  %[2]s

Ctrl-C ends it, and forgets all progress.
`

// lines returns the commands that attendees paste, one for each platform; code sets the variable code. An interrupted
// download continues when the command is run again; the checksum shows whether it is complete. Nothing is unpacked or
// run with a wrong code.
func lines(sums, base, code string) string {
	var text strings.Builder
	for entry := range strings.Lines(sums) {
		words := strings.Fields(entry)
		if len(words) != 2 {
			continue
		}
		sha256 := "sha256sum"
		if strings.Contains(words[1], "-darwin-") {
			sha256 = "shasum -a 256"
		}
		file := words[1]
		machine := machines[strings.TrimSuffix(strings.TrimPrefix(file, unbundle.Name), ".tar.gz")]
		fmt.Fprintf(&text, line, machine, code, base, unbundle.SumsFile, file, sha256, unbundle.CodeDigits, unbundle.Top)
	}
	fmt.Fprintf(&text, help, unbundle.Top, base)
	return text.String()
}

// machines describes platforms to an attendee who does not know the platform of her machine.
var machines = map[string]string{
	"linux-amd64":  "Linux, or Windows with WSL2 (linux-amd64):",
	"linux-arm64":  "Linux on an ARM processor (linux-arm64):",
	"darwin-arm64": "A Mac with an M chip (darwin-arm64):",
	"darwin-amd64": "An older Mac, with an Intel processor (darwin-amd64):",
}

// line is a shell command: it compares the code with that of the checksums, and the checksums with the bundle.
const line = `%[1]s

%[2]s; curl -fO %[3]s/%[4]s; curl -fC - -O %[3]s/%[5]s; ` +
	`if [ "$(%[6]s %[4]s | cut -c1-%[7]d)" = "$(echo "$code" | tr -d ' -' | tr A-F a-f)" ]; ` +
	`then grep %[5]s %[4]s | %[6]s -c && tar -xzf %[5]s && make -C %[8]s from-bundle; ` +
	`else echo 'WRONG CODE: nothing was unpacked'; fi

`

const help = `The download breaks off?  Run the same line again: it goes on.
FAILED, but complete?     Remove the file, and run the line again.
WRONG CODE?               The teacher's screen shows it. If yours is the same, do not install this bundle.
from-bundle fails?        Fix what it names, then: make -C %[1]s from-bundle
You have a clone?         Download %[2]s/SHA256SUMS, too. In the clone: make from-bundle FILE=path CODE=…
Only modules are missing? In each terminal: export GOPROXY=%[2]s/modules
`

// hint names an address for a room when only this machine can reach base.
func hint(base string) string {
	if !strings.HasPrefix(base, "http://127.") {
		return ""
	}
	const only = "Only this machine reaches this address. "
	if others := addresses(); len(others) > 1 {
		return fmt.Sprintf(only+"For a room, name one of its addresses: make serve-bundle ADDRESS=%s:8400\n", others[0])
	}
	return only + "It has no other one now, because it is in no network.\n"
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
