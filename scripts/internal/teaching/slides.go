// Package teaching shows the slides of TEACHING.md, and checks them.
package teaching

import (
	"context"
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
	"time"
	"unicode/utf8"

	"golang.org/x/tools/present"
)

// The slides, seen from the checkout. They are text; what `.code` names is read when they are shown.
const (
	slidesDir = "scripts/teaching/slides"
	Slides    = "workshop.slide"
)

// What can be read on a slide with the sizes of style.html, and how many slides a workshop bears.
const (
	slideColumns = 120
	slideLines   = 22
	maxSlides    = 40
)

func parseSlides(root string) (*present.Doc, error) {
	path := filepath.Join(root, slidesDir, Slides)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return present.Parse(f, path, 0)
}

// ServeSlides shows them in a browser until ctx ends. The program present listens on this machine alone, and runs no
// code of a slide.
func ServeSlides(ctx context.Context, program, root, port string, out io.Writer) error {
	cmd := exec.CommandContext(ctx, program, "-http=127.0.0.1:"+port, "-play=false", "-notes",
		"-content="+filepath.Join(root, slidesDir))
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); ctx.Err() == nil {
		return err
	}
	return nil
}

// CheckSlides renders all slides, and returns what is wrong with them: an include that is missing, code that does not
// fit, too many slides.
func CheckSlides(ctx context.Context, program, root string) (slides int, err error) {
	doc, err := parseSlides(root)
	if err != nil {
		return 0, err
	}
	slides = len(doc.Sections) + 2 // present adds a first and a last one
	var errs []error
	if slides > maxSlides {
		errs = append(errs, fmt.Errorf("there are %d slides, at most %d are allowed", slides, maxSlides))
	}
	for _, section := range doc.Sections {
		errs = append(errs, fits(section))
	}
	rendered, err := renderSlides(ctx, program, root)
	if n := strings.Count(rendered, "<article"); err == nil && n != slides {
		err = fmt.Errorf("%d slides were rendered, not %d", n, slides)
	}
	return slides, errors.Join(append(errs, err)...)
}

// fits returns an error for text or code that is cut off.
func fits(s present.Section) error {
	var lines []string
	for _, element := range s.Elem {
		switch e := element.(type) {
		case present.Code:
			lines = append(lines, strings.Split(strings.TrimRight(string(e.Raw), "\n"), "\n")...)
		case present.HTML: // of Markdown
			for _, block := range preformatted.FindAllStringSubmatch(string(e.HTML), -1) {
				lines = append(lines, strings.Split(block[1], "\n")...)
			}
		}
	}
	if len(lines) > slideLines {
		return fmt.Errorf("slide %q has %d lines of code, %d fit", s.Title, len(lines), slideLines)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); n > slideColumns {
			return fmt.Errorf("slide %q has a line of %d columns, %d fit: %s", s.Title, n, slideColumns, line)
		}
	}
	return nil
}

var preformatted = regexp.MustCompile(`(?s)<pre><code>(.*?)</code>`)

// renderSlides starts present on a free port of this machine, as ServeSlides does, and fetches the slides. An address
// that another machine could reach is an error.
func renderSlides(ctx context.Context, program, root string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := ServeSlides(ctx, program, root, "0", out)
		out.CloseWithError(errors.Join(errors.New("present ended"), err))
		ended <- err
	}()
	defer func() { cancel(); said.Close(); <-ended }()
	line := make([]byte, 1024)
	n, err := said.Read(line)
	if err != nil {
		return "", err
	}
	address := regexp.MustCompile(`http://\S+`).FindString(string(line[:n]))
	host, _, err := net.SplitHostPort(strings.TrimPrefix(address, "http://"))
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return "", fmt.Errorf("the slides are not served on this machine alone: %s", line[:n])
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	client := http.Client{Timeout: 30 * time.Second}
	answer, err := client.Get(address + "/" + Slides)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("present answers %s: %s", answer.Status, body)
	}
	return string(body), err
}
