package translation

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// A Language is a language in which the workshop is shown.
type Language struct {
	Name string // of its folder
	Tag  string // of HTML
	Self string // in itself
}

// English is the language of the sources.
var English = Language{"en", "en", "English"}

// Spoken returns English and the languages of a checkout.
func Spoken(root string) ([]Language, error) {
	all := []Language{English, {"zh-TW", "zh-Hant-TW", "繁體中文"}, {"ja", "ja", "日本語"}, {"ko", "ko", "한국어"}}
	names, err := Languages(root)
	return slices.DeleteFunc(all, func(l Language) bool { return l != English && !slices.Contains(names, l.Name) }), err
}

// Languages returns the languages of a checkout.
func Languages(root string) (all []string, err error) {
	entries, err := os.ReadDir(filepath.Join(root, Folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() {
			all = append(all, e.Name())
		}
	}
	return all, err
}
