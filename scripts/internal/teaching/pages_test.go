package teaching

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

var needsSDK = regexp.MustCompile(`(?m)(^|/)operator-sdk |scaffold\.sh|tools operator-sdk|make bundle`)

// A reader may begin with any page. A page that compiles operator-sdk says how long the first time takes.
func TestPagesThatNeedOperatorSDKSayHowLongItTakes(t *testing.T) {
	paths, err := page.Find(root)
	testkit.Must(t, err)
	found := 0
	for _, path := range paths {
		p, err := page.Parse(path)
		testkit.Must(t, err)
		need := false
		for _, part := range p.Parts {
			b := part.Block
			need = need || b != nil && b.Lang == "sh" && b.Skip == "" && needsSDK.MatchString(b.Text)
		}
		if !need {
			continue
		}
		found++
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(text)), " "), "seven minutes of one core") {
			t.Errorf("%s needs operator-sdk, and does not say that compiling it takes seven minutes of one core (%v)", path, err)
		}
	}
	if found < 6 {
		t.Errorf("only %d pages need operator-sdk", found)
	}
}

var (
	creditRow = regexp.MustCompile(`(?m)^\| (\S+) \| (.*) \| (.*) \|$`)
	localPage = regexp.MustCompile(`\]\(([^):]+\.md)\)`)
	webSource = regexp.MustCompile(`\]\((https://[^)]+)\)`)
)

// Each row of the credits names an author, the original, and the pages that follow it; each of these pages names both.
func TestCreditsAreOnThePagesToo(t *testing.T) {
	text := testkit.Read(t, filepath.Join(root, "README.md"))
	_, credits, _ := strings.Cut(text, "\n## Credits\n")
	credits, _, _ = strings.Cut(credits, "\n## ")
	authors := map[string]bool{}
	for _, row := range creditRow.FindAllStringSubmatch(credits, -1) {
		author, original, pages := row[1], row[2], localPage.FindAllStringSubmatch(row[3], -1)
		authors[author] = len(pages) > 0
		for _, link := range pages {
			follower, err := os.ReadFile(filepath.Join(root, link[1]))
			if err != nil || !strings.Contains(string(follower), author) {
				t.Errorf("%s does not name %s (%v)", link[1], author, err)
			}
			for _, source := range webSource.FindAllStringSubmatch(original, -1) {
				if !strings.Contains(string(follower), source[1]) {
					t.Errorf("%s does not name the source of %s, %s", link[1], author, source[1])
				}
			}
		}
	}
	for _, author := range []string{"莊家雋", "sangheee", "沈亚军", "LeeMinki"} {
		if !authors[author] {
			t.Errorf("the credits do not name %s with a page", author)
		}
	}
}
