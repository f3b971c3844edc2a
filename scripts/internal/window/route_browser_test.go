package window

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/operator-workshop/scripts/internal/testkit"
)

// TestTheRouteIsThatOfTheReadme: each step is in the row with its minutes, and its end is on its page.
func TestTheRouteIsThatOfTheReadme(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	_, row, _ := strings.Cut(testkit.Read(t, filepath.Join(root, "README.md")), "\n| have 90 minutes |")
	row, _, _ = strings.Cut(row, "\n")
	for _, one := range route[1:] {
		_, after, found := strings.Cut(row, one.Title)
		if minutes := fmt.Sprintf("(%d)", one.Minutes); !found || !strings.Contains(strings.Split(after, ";")[0], minutes) {
			t.Errorf("the row has no %s %s", one.Title, minutes)
		}
	}
	p, err := findPages(root)
	testkit.Must(t, err)
	for _, one := range route {
		if one.Exercise != "" {
			continue
		}
		html, _, err := (&Server{Config: Config{Root: root}, pages: p, spoken: []spoken{{}}}).render(one.Page, spoken{})
		if err != nil || !strings.Contains(string(html), `id="`+one.Until+`"`) && !strings.Contains(string(html), one.Until) {
			t.Errorf("%s has no %s: %v", one.Page, one.Until, err)
		}
	}
}

// TestTheRouteIsAChecklist: a page is done when its end was seen, also after a reload, and an exercise when it passed.
func TestTheRouteIsAChecklist(t *testing.T) {
	was := route
	t.Cleanup(func() { route = was })
	route = []step{{Title: "the page", Minutes: 10, Page: "README.md", Until: "below"}, {Title: "the exercise", Minutes: 5, Exercise: "04.1"}}
	f := start(t)
	ctx := f.browser(t)
	says(t, ctx, "#route summary", "90 minutes: 0 of 2 done")
	do(t, ctx, chromedp.Evaluate(`localStorage.setItem("workshop route", "of another program")`, nil), chromedp.Reload())
	says(t, ctx, "#route summary", "90 minutes: 0 of 2 done")
	do(t, ctx, chromedp.ScrollIntoView("#below"))
	says(t, ctx, "#route summary", "1 of 2 done")
	do(t, ctx, chromedp.Reload())
	says(t, ctx, "#route li", "✓ done")
	do(t, ctx, chromedp.Click("#route summary"), chromedp.Click(`//nav//button[text()="the exercise"]`))
	says(t, ctx, "#panel-exercises h2", "04.1")
	const passed = "current: \"04.1\"\nexercise: \"04.1\"\nbegun: {04-x: \"04.1\"}\npassed: {\"04.1\": now}\n" // as a check records it
	testkit.Must(t, os.WriteFile(filepath.Join(f.root, "work/.state.yaml"), []byte(passed), 0o644))
	do(t, ctx, chromedp.Click(`//button[text()="Check"]`))
	says(t, ctx, "#route summary", "2 of 2 done")
}
