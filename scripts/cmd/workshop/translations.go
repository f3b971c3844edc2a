package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"example.com/operator-workshop/scripts/internal/exercise"
	"example.com/operator-workshop/scripts/internal/translation"
	"example.com/operator-workshop/scripts/internal/window"
)

// complete are the pages and sentences whose translations may not be stale: the README, and the route of 90 minutes.
var complete = []string{"README.md", "01-crd/README.md", "04-controller-runtime/README.md", "exercises"}

// translationsCommand is for a translator.
func translationsCommand() *cobra.Command {
	var language string
	cmd := newCommand("translations [PAGE|window|exercises]...", "Write PO files anew, and list their faults and missing texts",
		cobra.ArbitraryArgs, func(_ *cobra.Command, w workshop, names []string) error {
			languages, err := translation.Languages(w.root)
			if err != nil {
				return err
			}
			for _, l := range languages {
				for _, name := range names {
					if language != "" && l != language {
						continue
					}
					t, err := w.translation(l, name)
					if err == nil {
						err = t.WritePO()
					}
					if err != nil {
						return err
					}
				}
			}
			return w.checkTranslations(os.Stdout, language, false)
		})
	cmd.Flags().StringVar(&language, "language", "", "zh-TW, ja or ko (default: all)")
	return cmd
}

// translation returns the translation of a page, or of a catalogue of sentences.
func (w workshop) translation(language, name string) (*translation.Translation, error) {
	var sentences []translation.Sentence
	var err error
	switch name {
	case "window":
		sentences, err = window.Sentences(w.root)
	case "exercises":
		sentences, err = exercise.Sentences(w.root)
	default:
		return translation.Open(w.root, language, filepath.ToSlash(filepath.Clean(name)))
	}
	if err != nil {
		return nil, err
	}
	return translation.Catalogue(w.root, language, name, sentences)
}

// translations calls a function for each translated page and each catalogue.
func (w workshop) translations(only string, do func(t *translation.Translation, terms translation.Terms) error) error {
	languages, err := translation.Languages(w.root)
	if err != nil {
		return err
	}
	for _, language := range languages {
		if only != "" && language != only {
			continue
		}
		terms, err := translation.LoadTerms(w.root, language)
		if err != nil {
			return err
		}
		all, err := translation.Load(w.root, language)
		if err != nil {
			return err
		}
		for _, name := range translation.Catalogues {
			t, err := w.translation(language, name)
			if err != nil {
				return err
			}
			all = append(all, t)
		}
		for _, t := range all {
			if err := do(t, terms); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeTranslations writes the pages of all languages.
func (w workshop) writeTranslations() error {
	return w.translations("", func(t *translation.Translation, _ translation.Terms) error {
		if t.IsCatalogue() {
			return nil
		}
		return os.WriteFile(t.Made(), []byte(t.Text()), 0o644)
	})
}

// checkTranslations lists stale texts. It fails for translations that are wrong, for a page that may not be stale, and,
// when fresh is true, for a page that was not made again.
func (w workshop) checkTranslations(out io.Writer, language string, fresh bool) error {
	var wrong []error
	err := w.translations(language, func(t *translation.Translation, terms translation.Terms) error {
		for _, fault := range t.Faults(terms) {
			wrong = append(wrong, fmt.Errorf("%s: %s", t.Language, fault))
		}
		for _, one := range t.Obsolete() {
			fmt.Fprintf(out, "%s: not in the source: %s\n", t.Language, one)
		}
		stale := t.Stale()
		for _, one := range stale {
			fmt.Fprintf(out, "%s: not translated: %s\n", t.Language, one)
		}
		if len(stale) > 0 && slices.Contains(complete, t.Page) {
			wrong = append(wrong, fmt.Errorf("%s: %s has %d texts that are not translated", t.Language, t.Page, len(stale)))
		}
		if made, err := os.ReadFile(t.Made()); fresh && !t.IsCatalogue() && (err != nil || string(made) != t.Text()) {
			wrong = append(wrong, fmt.Errorf("%s is not fresh: `make sync`", strings.TrimPrefix(t.Made(), w.root+"/")))
		}
		return nil
	})
	return errors.Join(append(wrong, err)...)
}

// freshTranslations is a step of `make verify`.
func (w workshop) freshTranslations() step {
	return step{"translations", func(_ context.Context, out io.Writer) error { return w.checkTranslations(out, "", true) }}
}
