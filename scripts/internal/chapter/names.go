package chapter

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// fileName finds the name of a file in prose. The character before it may show that it is a part of something else: of an
// address, of a pattern (*.go), of a name with a placeholder (…_types.go), of a path elsewhere (/etc, ~, $HOME). A line
// number after it (main.go:234) is of a version of another project: lines of this one move.
var fileName = regexp.MustCompile(`(?:^|[^\w./*<>$}{%@:~…-])(?:\.\.?/)*` +
	`(\w[\w./-]*\.(?:go|sh|ya?ml|md|txt|json|mjs|js|css|mk|tmpl|tsv|patch))(?:$|[^\w./*:-]|\.$|\.\W|:$|:\D)`)

// made are names of files that programs write, and elsewhere the first elements of paths: of a folder that a program or
// a reader makes, a placeholder (NAME), or a domain, with which the path of another module begins.
var (
	made      = []string{"examine.json", "examine.md", "verdict.json", "ways.json"}
	elsewhere = regexp.MustCompile(`^(work|out|dist|[A-Z]+|.*\..*)$`)
)

// names returns the files that a line names. `make install.yaml` names a target.
func names(line string) (all []string) {
	for _, at := range fileName.FindAllStringSubmatchIndex(line, -1) {
		name := line[at[2]:at[3]]
		first, _, isPath := strings.Cut(name, "/")
		isTarget := strings.HasSuffix(line[:at[2]], "make ")
		if !isTarget && !slices.Contains(made, path.Base(name)) && (!isPath || !elsewhere.MatchString(first)) {
			all = append(all, name)
		}
	}
	return all
}

// testName finds the name of a test in prose, where … stands for the rest of a name; definedTest finds tests in a file.
var (
	testName    = regexp.MustCompile(`\bTest[A-Z]\w*…?`)
	definedTest = regexp.MustCompile(`(?m)^func (Test[A-Z]\w*)\(`)
)

// CheckNames returns an error for each file or test that a comment or a page names and that does not exist. A comment
// of Go names a file of its module by the end of its path, or any file by its whole path. A comment of YAML, JavaScript,
// a Makefile, a shell script or a template names a file by the end of its path. On a page, a name is only compared with the
// last elements of all paths, because a page also names files that its reader makes in other folders.
func CheckNames(root string) error {
	files, err := filesOf(root)
	if err != nil {
		return err
	}
	texts := map[string][]byte{}
	var tests []string
	for _, file := range files {
		if path.Ext(file) != ".md" && commentOf(file) == nil {
			continue
		}
		if texts[file], err = os.ReadFile(filepath.Join(root, file)); err != nil {
			return err
		}
		if strings.HasSuffix(file, "_test.go") {
			for _, match := range definedTest.FindAllSubmatch(texts[file], -1) {
				tests = append(tests, string(match[1]))
			}
		}
	}
	var wrong []error
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		prose, exists := proseOf(files, file, texts[file])
		for n, line := range prose {
			for _, name := range names(line) {
				if !slices.ContainsFunc(files, func(of string) bool { return exists(name, of) }) {
					wrong = append(wrong, fmt.Errorf("%s:%d names %s, which does not exist", file, n+1, name))
				}
			}
			for _, name := range testName.FindAllString(line, -1) {
				begin, isBegin := strings.CutSuffix(name, "…")
				exists := func(test string) bool { return test == name || isBegin && strings.HasPrefix(test, begin) }
				if !slices.ContainsFunc(tests, exists) {
					wrong = append(wrong, fmt.Errorf("%s:%d names %s, which does not exist", file, n+1, name))
				}
			}
		}
	}
	return errors.Join(wrong...)
}

// proseOf returns the lines of a file with nothing but prose in them, and how this prose names a file.
func proseOf(files []string, file string, text []byte) (prose []string, exists func(name, of string) bool) {
	module := moduleOf(files, path.Dir(file))
	switch {
	case path.Ext(file) == ".go":
		return comments(text), func(name, of string) bool {
			return of == name || moduleOf(files, path.Dir(of)) == module && strings.HasSuffix("/"+of, "/"+name)
		}
	case path.Ext(file) != ".md":
		return lineComments(text, commentOf(file)), func(name, of string) bool { return strings.HasSuffix("/"+of, "/"+name) }
	case strings.HasPrefix(file, "05-") && module == ".": // these compare other projects
		return nil, nil
	}
	return unfenced(text), func(name, of string) bool { return path.Base(of) == path.Base(name) }
}

// filesOf returns the paths of all files of a repository, without those that are made at run time.
func filesOf(root string) (all []string, err error) {
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", ".workshop", "bin", "work", "out", "dist"}, entry.Name()) {
			return filepath.SkipDir
		}
		name, err := filepath.Rel(root, path)
		if entry.Type().IsRegular() {
			all = append(all, filepath.ToSlash(name))
		}
		return err
	})
	return all, err
}

// moduleOf returns the folder of the module of a folder; "." stands for no module.
func moduleOf(files []string, dir string) string {
	for dir != "." && !slices.Contains(files, dir+"/go.mod") {
		dir = path.Dir(dir)
	}
	return dir
}

// comments returns the lines of a Go file, with nothing but the text of comments in them. Indented lines of comments are
// examples, and are left out.
func comments(text []byte) []string {
	lines := make([]string, strings.Count(string(text), "\n")+1)
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		at, kind, comment := s.Scan()
		switch kind {
		case token.EOF:
			return lines
		case token.COMMENT:
			for n, line := range strings.Split(comment, "\n") {
				if line = strings.TrimPrefix(line, "//"); !strings.HasPrefix(line, "\t") {
					lines[file.Line(at)-1+n] = line
				}
			}
		}
	}
}

var hashComment, slashComment = regexp.MustCompile(`(?:^|\s)#.*`), regexp.MustCompile(`(?:^|\s)(?://|/?\*).*`)

// commentOf returns what matches a comment in the lines of a file; nil means that its comments are not checked. The
// gallery is about files of other projects, and vendor has such files.
func commentOf(file string) *regexp.Regexp {
	hash := []string{".yaml", ".yml", ".sh", ".mk", "Makefile", "Dockerfile", ".Dockerfile", "workshop", "run"}
	slash := []string{".js", ".mjs", ".css", ".go"}
	name := strings.TrimSuffix(path.Base(file), ".tmpl")
	switch {
	case strings.HasPrefix(file, "scripts/examine/gallery/"), strings.Contains(file, "/vendor/"):
		return nil
	case slices.Contains(hash, path.Ext(name)), slices.Contains(hash, name):
		return hashComment
	case slices.Contains(slash, path.Ext(name)):
		return slashComment
	}
	return nil
}

// lineComments returns the lines of a file, with nothing but the text of comments in them.
func lineComments(text []byte, comment *regexp.Regexp) []string {
	lines := strings.Split(string(text), "\n")
	for n, line := range lines {
		lines[n] = comment.FindString(line)
	}
	return lines
}

// unfenced returns the lines of a page, with nothing in those of its blocks.
func unfenced(text []byte) []string {
	lines, fenced := strings.Split(string(text), "\n"), false
	for n, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced {
			lines[n] = ""
		}
	}
	return lines
}
