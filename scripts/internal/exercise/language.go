package exercise

import (
	_ "embed"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/translation"
)

//go:embed sentences.yaml
var sentencesFile []byte

// translated is the chapter whose exercises other languages have.
const translated = "04-controller-runtime"

// Sentences returns the texts of the exercises that other languages have: what a reader reads about an exercise, and
// the sentences of verdicts.
func Sentences(root string) (sentences []translation.Sentence, err error) {
	sentences, err = translation.Marked(root, "scripts/internal/exercise/*.go", "scripts/cmd/workshop/exercise.go")
	if err != nil {
		return nil, err
	}
	add := func(from string, texts ...string) {
		for _, text := range texts {
			for line := range strings.SplitSeq(text, "\n") {
				if strings.TrimLeft(line, " \t") == line { // code is indented
					sentences = append(sentences, translation.Sentence{Text: line, From: from})
				}
			}
		}
	}
	all, err := Load(root)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		if e.Chapter != translated {
			continue
		}
		from := filepath.Join(e.Chapter, File) + " " + e.ID
		add(from, e.Title, reflowed(e.Story), reflowed(e.Hints.Nudge), reflowed(e.Hints.Explanation))
		for _, w := range e.Wrong {
			add(from, w.Name, reflowed(w.Hint))
		}
	}
	add("scripts/internal/exercise/capstone.go", Capstone.Title, reflowed(Capstone.Story))
	for _, experiment := range slices.Sorted(maps.Keys(experimentHints)) {
		h := experimentHints[experiment]
		add("scripts/internal/exercise/capstone/hints.yaml", reflowed(h.Nudge), reflowed(h.Explanation))
	}
	for _, w := range mistakes {
		add("scripts/internal/exercise/mistakes.yaml", w.Name, reflowed(w.Hint))
	}
	for _, f := range facts {
		add("scripts/internal/exercise/facts.yaml", reflowed(f.Says))
	}
	var verdicts []string
	if err := yaml.UnmarshalStrict(sentencesFile, &verdicts); err != nil {
		return nil, err
	}
	add("scripts/internal/exercise/sentences.yaml", verdicts...)
	return sentences, nil
}

// In returns an exercise whose texts are in a language.
func (e Exercise) In(said *translation.Translation) Exercise {
	title := said.Say(e.Title)
	if e.said = said; title == e.Title {
		return e
	}
	e.Title, e.Story = title, said.Say(reflowed(e.Story))
	e.Hints.Nudge, e.Hints.Explanation = said.Say(reflowed(e.Hints.Nudge)), said.Say(reflowed(e.Hints.Explanation))
	e.Wrong = inLanguage(said, e.Wrong)
	return e
}

// inLanguage returns wrong answers whose hints are in a language.
func inLanguage(said *translation.Translation, wrong []Wrong) []Wrong {
	wrong = slices.Clone(wrong)
	for i := range wrong {
		wrong[i].Hint = said.Say(reflowed(wrong[i].Hint))
	}
	return wrong
}

// Sayf returns a formatted sentence in the language of the exercise.
func (e Exercise) Sayf(format string, args ...any) string { return e.said.Sayf(format, args...) }
