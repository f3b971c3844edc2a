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

// A credit names an author, what shows the original (an address, or who published it), and the pages that follow it.
type credit struct {
	author  string
	sources []string
	pages   []string
}

var credits = []credit{
	{"莊家雋", []string{"https://github.com/ogre0403/K8S-Summit-2024-Operator101", "Operator 101"},
		[]string{"01-crd", "02-codegen", "03-client-go-controller", "04-controller-runtime", "06-deploy"}},
	{"sangheee", []string{"https://sdk.operatorframework.io/docs/building-operators/golang/tutorial/", "in Korean"},
		[]string{"05-operator-sdk/memcached-operator"}},
	{"沈亚军", []string{"https://github.com/nufy323/kubernetes-article/blob/master/operator/k8s-operator.md",
		"https://github.com/nufy323/nginx-sample-operator", "爱可生开源社区"},
		[]string{"05-operator-sdk/nginx-operator"}},
	{"LeeMinki", []string{"https://github.com/LeeMinki/my-operator"}, []string{"05-operator-sdk/databasebackup-operator"}},
}

// lacks lists the names and sources that a text lacks.
func (c credit) lacks(text string) (missing []string) {
	for _, name := range append([]string{c.author}, c.sources...) {
		if !strings.Contains(text, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// Each author has a row in the list of the README, with the original and the pages that follow it. Each of these pages names
// both. Without one of the names, a row or a page fails.
func TestCreditsAreOnThePagesToo(t *testing.T) {
	_, list, _ := strings.Cut(testkit.Read(t, filepath.Join(root, "README.md")), "\n## Credits\n")
	list, _, _ = strings.Cut(list, "\n## ")
	for _, c := range credits {
		texts := map[string]string{}
		for line := range strings.Lines(list) {
			if strings.HasPrefix(line, "| "+c.author+" |") {
				texts["the list"] = line
			}
		}
		for _, folder := range c.pages {
			if file := folder + "/README.md"; strings.Contains(texts["the list"], "]("+file+")") {
				texts[file] = testkit.Read(t, filepath.Join(root, file))
			} else {
				t.Errorf("the credit of %s does not link to %s", c.author, file)
			}
		}
		for where, text := range texts {
			if missing := c.lacks(text); len(missing) > 0 {
				t.Errorf("%s does not name %q", where, missing)
			}
		}
	}
}
