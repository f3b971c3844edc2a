package window

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"example.com/operator-workshop/scripts/internal/teaching"
	"example.com/operator-workshop/scripts/internal/testkit"
)

// inLanguage returns what the window answers to a browser with a cookie and languages.
func (f *fixture) inLanguage(t *testing.T, path, chosen, accepted string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.host()+path, nil)
	testkit.Must(t, err)
	if chosen != "" {
		request.AddCookie(&http.Cookie{Name: "language", Value: chosen})
	}
	request.Header.Set("Accept-Language", accepted)
	response, err := f.client.Do(request)
	testkit.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return string(body)
}

func TestTheLanguageOfAReader(t *testing.T) {
	f := withSlides(t)
	f.enter(t)
	for name, test := range map[string]struct{ chosen, accepted, want string }{
		"that of the browser":      {"", "ja,en-US;q=0.9", "ja"},
		"with a script":            {"", "zh-Hant-HK, en", "zh-Hant-TW"},
		"chosen":                   {"ko", "ja", "ko"},
		"English, chosen":          {"en", "ja", "en"},
		"another language":         {"", "fr-CH, fr;q=0.9", "en"},
		"the second one":           {"", "fr, ko;q=0.5", "ko"},
		"a choice that is no more": {"xx", "ja", "ja"},
		"no language":              {"", "", "en"},
	} {
		t.Run(name, func(t *testing.T) {
			body := f.inLanguage(t, "/page/README.md", test.chosen, test.accepted)
			if !strings.Contains(body, `<html lang="`+test.want+`"`) {
				t.Errorf("%.60s", body)
			}
		})
	}
}

// The first page of the checkout leads to its languages.
func TestALinkToAnotherLanguageChoosesIt(t *testing.T) {
	f := withSlides(t)
	f.enter(t)
	address := "http://" + f.host() + "/page/README.md"
	if _, body := f.get(t, address); !strings.Contains(body, `href="/page/README.md?language=ko"`) {
		t.Error("no link leads to the page in Korean")
	}
	for _, path := range []string{"?language=ko", ""} {
		if _, body := f.get(t, address+path); !strings.Contains(body, `<html lang="ko"`) {
			t.Errorf("%q: %.60s", path, body)
		}
	}
}

var (
	anchors = regexp.MustCompile(`<h\d id="([^"]*)"`)
	code    = regexp.MustCompile(`(?s)(data-block="\d+")|<pre tabindex="0"><code>(.*?)</code></pre>`)
	places  = regexp.MustCompile(`href="(/[^"]*|#[^"]*)"`)
)

// TestPagesOfEachLanguage compares each page with its English page: a reader runs the same blocks, and a link leads to
// the same place.
func TestPagesOfEachLanguage(t *testing.T) {
	f := withSlides(t)
	for _, in := range f.spoken[1:] {
		if len(in.titles) < 14 {
			t.Errorf("%s has %d pages", in.Name, len(in.titles))
		}
		for name := range in.titles {
			english, _, err := f.render(name, f.spoken[0])
			testkit.Must(t, err)
			body, has, err := f.render(name, in)
			testkit.Must(t, err)
			if has != in.Language {
				t.Errorf("%s is in %s", name, has.Self)
			}
			for what, of := range map[string]*regexp.Regexp{"anchors": anchors, "code": code, "links": places} {
				was, is := found(of, string(english)), found(of, string(body))
				if what == "links" { // a sentence may have another order
					slices.Sort(was)
					slices.Sort(is)
				}
				if !slices.Equal(was, is) {
					t.Errorf("%s, %s: %s became\n%s", in.Name, name, what, cmp.Diff(was, is))
				}
			}
		}
	}
}

// sheetCommands matches the commands in a cell of a run sheet.
var sheetCommands = regexp.MustCompile(`make \w+( [A-Z]+=[\w.]+)*`)

// TestRunSheetsOfEachLanguage: no cell stays English, and a cell has the commands of the English one.
func TestRunSheetsOfEachLanguage(t *testing.T) {
	f := withSlides(t)
	f.enter(t)
	sheets := func(language string) (all []teaching.Sheet) {
		testkit.Must(t, json.Unmarshal([]byte(f.inLanguage(t, "/slides/sheets", language, "")), &all))
		return all
	}
	english := sheets("en")
	for _, in := range f.spoken[1:] {
		for i, sheet := range sheets(in.Name) {
			if name := in.T(sheet.Name); name == sheet.Name {
				t.Errorf("%s, the name of a sheet is English: %s", in.Name, name)
			}
			for j, row := range sheet.Rows {
				was := english[i].Rows[j]
				for cell, is := range map[string]string{was.What: row.What, was.Types: row.Types, was.Then: row.Then, was.Late: row.Late} {
					rest := sheetCommands.ReplaceAllString(cell, "")
					if strings.ContainsFunc(rest, unicode.IsLetter) && is == cell {
						t.Errorf("%s, %s: a cell is English: %s", in.Name, sheet.Name, cell)
					}
					if want, got := sheetCommands.FindAllString(cell, -1), sheetCommands.FindAllString(is, -1); !slices.Equal(got, want) {
						t.Errorf("%s, %s: the commands %q became %q", in.Name, sheet.Name, want, got)
					}
				}
			}
		}
	}
}

func found(of *regexp.Regexp, text string) []string {
	var all []string
	for _, match := range of.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.Join(match[1:], ""))
	}
	return all
}
