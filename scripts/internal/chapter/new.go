package chapter

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// template is the smallest chapter that passes its tests and `make verify`.
//
//go:embed files/new
var template embed.FS

// A chapter has a number, which gives the order, and a name in lower case.
var newName = regexp.MustCompile(`^[0-9][0-9]-[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// New makes a chapter and registers it: the copies that it needs in scripts/sync.yaml, and its row in the table of
// README.md. Then the caller's finish tidies its go.mod, which is a copy of that of 00-env. After an error New removes
// everything that it has made.
func New(root, name string, finish func() error) (err error) {
	if !newName.MatchString(name) {
		return fmt.Errorf("NAME=%s: a chapter is called like 07-something: two digits, a minus sign, lower-case letters",
			name)
	}
	if taken, _ := filepath.Glob(filepath.Join(root, name[:3]+"*")); len(taken) > 0 {
		return fmt.Errorf("NAME=%s: the number %s is taken by %s", name, name[:2], filepath.Base(taken[0]))
	}
	files, err := newFiles(root, name)
	if err != nil {
		return err
	}
	known := map[string][]byte{}
	for _, file := range []string{"README.md", "scripts/sync.yaml", "scripts/blocks.yaml"} {
		if known[file], err = os.ReadFile(filepath.Join(root, file)); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(root, name)))
		for file, text := range known {
			err = errors.Join(err, os.WriteFile(filepath.Join(root, file), text, 0o644))
		}
	}()
	for file, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(file, ".sh") {
			mode = 0o755
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(root, name, file), text, mode))
	}
	err = errors.Join(err,
		insert(filepath.Join(root, "scripts", "sync.yaml"), "- from: 00-env/internal/testenv/testenv.go\n  to:\n",
			"  - "+name+"/internal/testenv/testenv.go\n"),
		insert(filepath.Join(root, "README.md"), lastRow(root),
			fmt.Sprintf("| [%s](%s/README.md) | 10 | how to begin a chapter | an object that is stored |\n", name, name)))
	if err != nil {
		return err
	}
	return finish()
}

// newFiles are the files of a new chapter.
func newFiles(root, name string) (map[string][]byte, error) {
	const source = "00-env"
	path := string(module(root, filepath.Join(source, "go.mod")))
	own := strings.TrimSuffix(path, source) + name
	fill := strings.NewReplacer("MODULE", own, "NAME", name, "NUMBER", name[:2], "TITLE",
		strings.ToUpper(name[3:4])+strings.ReplaceAll(name[4:], "-", " "))
	files := map[string][]byte{}
	entries, err := template.ReadDir("files/new")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := template.ReadFile("files/new/" + entry.Name())
		if err != nil {
			return nil, err
		}
		files[strings.TrimSuffix(entry.Name(), ".txt")] = []byte(fill.Replace(string(text)))
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, source, file))
		if err != nil {
			return nil, err
		}
		files[file] = []byte(strings.Replace(string(text), "module "+path+"\n", "module "+own+"\n", 1))
	}
	return files, nil
}

// lastRow finds the last row of the table of chapters.
func lastRow(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	rows := regexp.MustCompile(`(?m)^\| \[[0-9][0-9]-.*\n`).FindAllString(string(text), -1)
	if err != nil || len(rows) == 0 {
		return "| [00-"
	}
	return rows[len(rows)-1]
}

// insert adds a text to a file, after another text that the file must have.
func insert(path, behind, text string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, after, ok := strings.Cut(string(data), behind)
	if !ok {
		return fmt.Errorf("%s does not have %q any more", path, behind)
	}
	return os.WriteFile(path, []byte(before+behind+text+after), 0o644)
}
