package teaching

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"example.com/operator-workshop/scripts/internal/page"
	"example.com/operator-workshop/scripts/internal/testkit"
)

var needsSDK = regexp.MustCompile(`(?m)(^|/)operator-sdk |scaffold\.sh|tools operator-sdk|make bundle`)

// A reader may begin with any page. Before a block that compiles operator-sdk, the page says how long the first time
// takes.
func TestPagesThatNeedOperatorSDKSayHowLongItTakes(t *testing.T) {
	paths, err := page.Find(root)
	testkit.Must(t, err)
	found := 0
	for _, path := range paths {
		p, err := page.Parse(path)
		testkit.Must(t, err)
		before, need := "", false
		for _, part := range p.Parts {
			b := part.Block
			if need = b != nil && b.Lang == "sh" && b.Skip == "" && needsSDK.MatchString(b.Text); need {
				break
			}
			before += " " + part.Prose
		}
		if !need {
			continue
		}
		found++
		if !strings.Contains(strings.Join(strings.Fields(before), " "), "seven minutes of one core") {
			t.Errorf("%s does not say before its first block with operator-sdk that it takes seven minutes of one core", path)
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

// These facts are prose or blocks that are skipped, so no block fails when a rewritten page loses them. A page has each
// of these words.
func TestPagesKeepTheirFacts(t *testing.T) {
	const sdk, book = "05-operator-sdk/", "https://book.kubebuilder.io/"
	for folder, facts := range map[string][]string{
		"01-crd/reference": {book + "cronjob-tutorial/gvks", "`<group>_<plural>.yaml`",
			"/sig-architecture/api-conventions.md"},
		"02-codegen/reference": {"k8s.io/code-generator/cmd/$name-gen@", "sigs.k8s.io/controller-tools/cmd/controller-gen@",
			"## Version skew", book + "reference/markers"},
		sdk: {book + "migration/multi-group"},
		sdk + "commands": {book + "cronjob-tutorial/basic-project", "`<group>_<plural>.yaml`", "with `go get`",
			"operator-sdk before 1.21"},
		sdk + "memcached-operator/reference": {"/building-operators/golang/operator-scope/"},
		sdk + "olm": {"removed with 4.19", "operator-sdk run bundle ",
			"operator-sdk cleanup ", "`--delete-all=false`"},
		sdk + "ways": {"| etcd |", "[Prometheus Operator]", "[cert-manager]", "[CloudNativePG]",
			"Cloud Native Computing Foundation (CNCF)"},
		"06-deploy/operate": {"`name` is `health probe`", "| `became leader` |", "| `Starting EventSource` |", "| `Starting workers` |"},
	} {
		text := testkit.Read(t, filepath.Join(root, folder, "README.md"))
		for _, fact := range facts {
			if !strings.Contains(text, fact) {
				t.Errorf("%s does not have %q", folder, fact)
			}
		}
	}
}
