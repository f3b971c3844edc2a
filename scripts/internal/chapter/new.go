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

// template is the least chapter that passes its tests and `make verify`.
//
//go:embed files/new
var template embed.FS

// A chapter has a number, which orders it, and a name in lower case.
var newName = regexp.MustCompile(`^[0-9][0-9]-[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// New makes a chapter, and writes it down where it must be known: the copies that it needs, in scripts/sync.yaml, and
// its row in the table of README.md. The caller tidies its go.mod, which is that of 00-env.
func New(root, name string) error {
	if !newName.MatchString(name) {
		return fmt.Errorf("NAME=%s: a chapter is called like 07-something: two digits, a minus sign, lower-case letters",
			name)
	}
	if taken, _ := filepath.Glob(filepath.Join(root, name[:3]+"*")); len(taken) > 0 {
		return fmt.Errorf("NAME=%s: the number %s is taken by %s", name, name[:2], filepath.Base(taken[0]))
	}
	const source = "00-env"
	path := string(module(root, filepath.Join(source, "go.mod")))
	own := strings.TrimSuffix(path, source) + name
	fill := strings.NewReplacer("MODULE", own, "NAME", name, "NUMBER", name[:2], "TITLE",
		strings.ToUpper(name[3:4])+strings.ReplaceAll(name[4:], "-", " "))
	files := map[string][]byte{}
	entries, err := template.ReadDir("files/new")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := template.ReadFile("files/new/" + entry.Name())
		if err != nil {
			return err
		}
		files[strings.TrimSuffix(entry.Name(), ".txt")] = []byte(fill.Replace(string(text)))
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(root, source, file))
		if err != nil {
			return err
		}
		files[file] = []byte(strings.Replace(string(text), "module "+path+"\n", "module "+own+"\n", 1))
	}
	if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
		return err
	}
	for file, text := range files {
		mode := os.FileMode(0o644)
		if strings.HasSuffix(file, ".sh") {
			mode = 0o755
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(root, name, file), text, mode))
	}
	return errors.Join(err,
		insert(filepath.Join(root, "scripts", "sync.yaml"), "- from: 00-env/internal/testenv\n  to:\n",
			"  - "+name+"/internal/testenv\n"),
		insert(filepath.Join(root, "README.md"), lastRow(root),
			fmt.Sprintf("| [%s](%s/README.md) | 10 | how to begin a chapter | an object that is stored |\n", name, name)))
}

// lastRow is the last row of the table of chapters.
func lastRow(root string) string {
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	rows := regexp.MustCompile(`(?m)^\| \[[0-9][0-9]-.*\n`).FindAllString(string(text), -1)
	if err != nil || len(rows) == 0 {
		return "| [00-"
	}
	return rows[len(rows)-1]
}

// insert adds a text to a file, behind another one that must be there.
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
