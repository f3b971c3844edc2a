package exercise

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"example.com/operator-workshop/scripts/internal/testkit"
	"example.com/operator-workshop/scripts/internal/translation"
)

// texts returns the texts of the Go files below some folders, without those of tests.
func texts(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		testkit.Must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if text, ok := textOf(node); ok {
					all.WriteString(translation.Template(text) + "\n")
					return false
				}
				return true
			})
			return nil
		}))
	}
	return all.String()
}

// textOf returns a text that is written as one literal or as several, with a line break after each other
// part.
func textOf(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(n.Value)
		return text, err == nil && n.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := textOf(n.X)
		right, also := textOf(n.Y)
		if !also {
			right = "\n"
		}
		return left + right, n.Op == token.ADD && (ok || also)
	}
	return "", false
}

// TestSentencesAreThoseOfTheLab: a sentence that the lab has changed is not found by its template any more.
func TestSentencesAreThoseOfTheLab(t *testing.T) {
	var sentences []string
	testkit.Must(t, yaml.UnmarshalStrict(sentencesFile, &sentences))
	source := texts(t, "../../lab", "../../examine", ".")
	number := regexp.MustCompile(`\{\d\}`)
	source = number.ReplaceAllString(source, "\n")
	for _, sentence := range sentences {
		for _, part := range number.Split(sentence, -1) {
			if part = strings.Trim(part, " :,"); !strings.Contains(source, part) {
				t.Errorf("no text of the lab has %q of %q", part, sentence)
			}
		}
	}
}

// TestAnExerciseInAnotherLanguage: the texts are translated, and a failure is recognised by its English sentence.
func TestAnExerciseInAnotherLanguage(t *testing.T) {
	root := t.TempDir()
	testkit.Write(t, filepath.Join(root, "i18n/ja/exercises.po"), `
msgid "Children that come back"
msgstr "戻ってくる子"

msgid "Owns sees the deletion, but the ConfigMap does not name its owner. SetControllerReference does."
msgstr "ConfigMapにオーナーがありません。"

msgid "a watch without an owner reference"
msgstr "オーナー参照のないwatch"

msgid "This looks like a known wrong answer ({1})."
msgstr "よくある誤答です（{1}）。"

msgid "Expected"
msgstr "期待"

msgid "not within {1}: {2}"
msgstr "{1}以内に起きません：{2}"

msgid "the {1} is back"
msgstr "{1}が戻る"
`)
	said, err := translation.Catalogue(root, "ja", "exercises", nil)
	testkit.Must(t, err)
	c := newCourse(t)
	e, err := Find(c.All, "04.3")
	testkit.Must(t, err)
	e = e.In(said)
	v := Result{ID: "behaviour/05-deleted-configmap", Verdict: "failed",
		What: `expected that the ConfigMap is back; but not within 20s: configmaps "web" not found`}
	var out strings.Builder
	e.PrintOwn(&out, []Result{v}, false)
	for _, want := range []string{"  期待:        ConfigMapが戻る\n", `20s以内に起きません：configmaps "web" not found`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if e.Title != "戻ってくる子" || !strings.HasPrefix(e.Story, "A user deletes") {
		t.Errorf("%q, %.50q", e.Title, e.Story)
	}
	_, err = c.Put(e, map[string][]byte{"main.go": []byte("package main\n")})
	testkit.Must(t, err)
	v.Reaction = "The deleted ConfigMap web had no owner reference."
	testkit.Must(t, c.Judged(e, State{Passed: map[string]string{}}, "", Judgement{Own: []Result{v}}))
	s, err := c.State()
	testkit.Must(t, err)
	hint, _ := c.Hint(e, s)
	if want := "よくある誤答です（オーナー参照のないwatch）。\nConfigMapにオーナーがありません。"; hint != want {
		t.Errorf("%q, wanted %q", hint, want)
	}
}

// TestADifferenceOfFieldsInEachLanguage: the paths and the values of fields stay as they are, and the rest is translated.
func TestADifferenceOfFieldsInEachLanguage(t *testing.T) {
	english := regexp.MustCompile(`[A-Za-z]{3,}`)
	c := newCourse(t)
	for language, terms := range map[string][]string{"zh-TW": {"API server", "client", "label"}, "ja": {"API"}, "ko": {"API"}} {
		said, err := translation.Catalogue(c.Root, language, "exercises", nil)
		testkit.Must(t, err)
		for text, paths := range map[string][]string{
			"2 of 3 fields that it sets stayed changed for 5s: .data.color, .data.text": {".data.color, .data.text", "5s"},
			"1 of 4 fields that it sets stayed changed for 5s: .data.color; 1 were not tried; the API server lets no client change 2 others": {".data.color",
				"5s"},
			`not within 20s: spec.replicas is "1"; the wanted value is "2"`: {"spec.replicas", `"1"`, `"2"`, "20s"},
			`spec.type is missing; undisturbed it is "A"`:                   {"spec.type", `"A"`},
			`spec.type is "A"; the wanted value does not exist`:             {"spec.type", `"A"`},
			"an added label is gone from configmaps/a":                      {"configmaps/a"},
		} {
			got := said.SayWhole(text)
			rest := got
			for _, path := range paths {
				if !strings.Contains(got, path) {
					t.Errorf("%s: %q lacks %q", language, got, path)
				}
				rest = strings.ReplaceAll(rest, path, "")
			}
			for _, term := range terms {
				rest = strings.ReplaceAll(rest, term, "")
			}
			if words := english.FindAllString(rest, -1); len(words) > 0 {
				t.Errorf("%s: %q has the English words %q", language, got, words)
			}
		}
	}
}

func TestCodeStaysApartFromProse(t *testing.T) {
	got := reflowed("one\ntwo:\n    code\nthree\nfour\n\nfive\n")
	if want := "one two:\n    code\nthree four\n\nfive"; got != want {
		t.Errorf("%q, wanted %q", got, want)
	}
}
