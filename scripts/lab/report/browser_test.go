package report

import (
	"context"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// measure finds what sticks out of the page, or out of a plot, and letters of a plot that overlap.
const measure = `
const frame = document.querySelector("iframe"), found = [];
frame.onload = () => {
  const page = frame.contentDocument, root = page.documentElement;
  page.querySelectorAll("details").forEach(d => d.open = true);
  if (root.scrollWidth > root.clientWidth)
    found.push("the page scrolls sideways: " + root.scrollWidth + " > " + root.clientWidth);
  page.querySelectorAll("figure > svg").forEach(svg => {
    const name = svg.querySelector("title").textContent, s = svg.getBoundingClientRect();
    const words = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
    words.forEach(([w, a], i) => {
      if (a.left < s.left - 1 || a.right > s.right + 1 || a.top < s.top - 1 || a.bottom > s.bottom + 1)
        found.push(w + " is cut off in " + name);
      words.slice(i + 1).forEach(([v, b]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left),
          high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (wide > 1 && high > 0.4 * Math.min(a.height, b.height)) found.push(w + " overlaps " + v + " in " + name);
      });
    });
  });
  document.title = "measured " + page.querySelectorAll("figure > svg").length + " plots; " + found.join("; ");
};
`

func TestInABrowser(t *testing.T) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && program == "" {
			program = path
		}
	}
	if program == "" {
		t.Skip("neither chromium nor google-chrome is installed")
	}
	for _, width := range []int{360, 1280} {
		for _, names := range [][]string{{"03", "04"}, {"03", "04", "mine"}} {
			t.Run(fmt.Sprintf("%d pixels, %d operators", width, len(names)), func(t *testing.T) {
				dir := t.TempDir()
				page := fmt.Sprintf(`<!doctype html><title>not measured</title>`+
					`<iframe style="width:%dpx;height:800px;border:0" srcdoc="%s"></iframe><script>%s</script>`,
					width, html.EscapeString(htmlOf(t, fixture(names...))), measure)
				file := filepath.Join(dir, "page.html")
				if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				cmd := exec.CommandContext(ctx, program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
					"--no-first-run",
					"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+dir,
					"--window-size=1400,900", "--virtual-time-budget=3000", "--dump-dom", "file://"+file)
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				title := regexp.MustCompile(`(?s)<title>(.*?)</title>`).FindStringSubmatch(string(out))
				if len(title) == 0 || !strings.HasPrefix(title[1], "measured 5 plots") {
					t.Fatalf("the page was not measured: %.300s", out)
				}
				if _, found, _ := strings.Cut(title[1], "; "); found != "" {
					t.Error(html.UnescapeString(found))
				}
			})
		}
	}
}
