package window

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"example.com/operator-workshop/scripts/internal/teaching"
	"example.com/operator-workshop/scripts/internal/translation"
)

// A spoken is the language in which a browser shows the window.
type spoken struct {
	translation.Language
	// said has the sentences of the window, exercises those of the exercises; both are nil for English.
	said, exercises *translation.Translation
	titles          map[string]string // of pages
	Languages       []translation.Language
}

// T translates a sentence of a template.
func (s spoken) T(sentence string) string { return s.said.Say(sentence) }

// Sentences are for the scripts of the browser.
func (s spoken) Sentences() map[string]string { return s.said.Words() }

// Sentences returns the sentences of the window, and those of the run sheets.
func Sentences(root string) ([]translation.Sentence, error) {
	all, err := translation.Marked(root, "scripts/internal/window/*.go", "scripts/internal/window/web/*.html",
		"scripts/internal/window/web/*.js")
	if err != nil {
		return nil, err
	}
	sheets, err := teaching.Sentences(root)
	return append(all, sheets...), err
}

// speakers reads the sentences of the languages of a checkout; the first one is English.
func speakers(root string) (all []spoken, err error) {
	languages, err := translation.Spoken(root)
	if err != nil {
		return nil, err
	}
	for _, one := range languages {
		s := spoken{Language: one, Languages: languages}
		if one != translation.English {
			if s.said, err = translation.Catalogue(root, one.Name, "window", nil); err != nil {
				return nil, err
			}
			if s.exercises, err = translation.Catalogue(root, one.Name, "exercises", nil); err != nil {
				return nil, err
			}
			pages, err := translation.Load(root, one.Name)
			if err != nil {
				return nil, err
			}
			s.titles = map[string]string{}
			for _, page := range pages {
				s.titles[page.Page] = page.Title()
			}
		}
		all = append(all, s)
	}
	return all, nil
}

// speaking returns the language of a request: the language that the reader chose, or one that the browser accepts.
func (s *Server) speaking(r *http.Request) spoken {
	chosen := ""
	if cookie, err := r.Cookie("language"); err == nil {
		chosen = cookie.Value
	}
	var tags []language.Tag
	for _, one := range s.spoken {
		tags = append(tags, language.Make(one.Tag))
	}
	_, at := language.MatchStrings(language.NewMatcher(tags), chosen, r.Header.Get("Accept-Language"))
	return s.spoken[at]
}

// aYear is how many seconds a browser remembers the chosen language. language.js has it, too.
const aYear = 31536000

// ofLanguage returns the language of a page below i18n, and its English page.
func ofLanguage(file string) (in, english string) {
	if below, found := strings.CutPrefix(file, translation.Folder+"/"); found {
		in, english, _ = strings.Cut(below, "/")
	}
	return in, english
}

// translated returns a message to a tab in the language of the tab.
func translated(piece any, said *translation.Translation) any {
	m, ok := piece.(Message)
	if !ok || said == nil {
		return piece
	}
	m.Refused, m.States = said.Say(m.Refused), slices.Clone(m.States)
	for i, state := range m.States {
		m.States[i].Says = said.Say(state.Says)
	}
	if m.State != nil {
		state := *m.State
		state.Says = said.Say(state.Says)
		m.State = &state
	}
	return m
}

// title returns the title of a page.
func (s spoken) title(p *pages, name string) string {
	return cmp.Or(s.titles[name], p.titles[name])
}
